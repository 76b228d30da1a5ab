//! Owns the table of QUIC's health: for each cell over QUIC what was lost, and how datagrams were
//! batched.

use super::{Grid, Group, Row, Sheet, Shown};
use crate::report::quic::Health;
use crate::report::text::{self, MISSING};
use crate::units::group_thousands;

/// The table; `None` when no cell was measured over QUIC.
pub(super) fn table(sheet: &Sheet<'_>) -> Option<Grid> {
    let groups: Vec<Group> = sheet
        .columns
        .iter()
        .filter_map(|column| {
            let row = |of: &Row<'_>| {
                let cell = sheet.cell(*of, column).filter(|cell| cell.summary.rounds_measured > 0)?;
                Some((of.name(), row(&Health::of(cell)?)))
            };
            let rows: Vec<_> = sheet.rows.iter().filter_map(row).collect();
            (!rows.is_empty()).then(|| Group { title: column.title.clone(), rows })
        })
        .collect();
    let header = HEADER.map(str::to_owned).to_vec();
    (!groups.is_empty()).then_some(Grid { header, groups })
}

fn row(health: &Health) -> Vec<Shown> {
    let missing = || MISSING.to_owned();
    let ratio = |ratio: Option<f64>| ratio.map_or_else(missing, text::micros);
    let bytes = |bytes: Option<f64>| bytes.map_or_else(missing, |n| group_thousands(n.round() as u64));
    let lost = match health.loss().filter(|loss| *loss > 0.0) {
        Some(loss) => format!("{} ({:.2} %)", group_thousands(health.packets_lost), loss * 100.0),
        None => group_thousands(health.packets_lost),
    };
    let texts = [
        lost,
        group_thousands(health.probe_timeouts),
        group_thousands(health.retries),
        health.server_drops.map_or_else(missing, group_thousands),
        group_thousands(health.generator_drops),
        ratio(health.per_send),
        ratio(health.per_receive),
        bytes(health.bytes_sent),
        bytes(health.bytes_received),
    ];
    texts.into_iter().map(|text| Shown { text, best: false, marks: vec![] }).collect()
}

const HEADER: [&str; 9] = [
    "packets lost",
    "PTOs",
    "Retries",
    "drops, server",
    "drops, generator",
    "datagrams/send",
    "datagrams/receive",
    "bytes/datagram sent",
    "bytes/datagram received",
];
