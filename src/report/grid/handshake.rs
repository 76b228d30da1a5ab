//! Owns the table of handshakes: times, rates and cost of single connections, full, resumed and with
//! early data beside each other.

use super::{Grid, Sheet};
use crate::report::marks::{Figure, SetupTime};
use crate::results::{CellRecord, Handshakes};

/// The table of figures.
pub(super) fn figures(sheet: &Sheet<'_>) -> Grid {
    let group = |(title, figure): (&str, Figure)| sheet.group(title, figure);
    Grid {
        header: sheet.columns.iter().map(|column| column.title.clone()).collect(),
        groups: MEASURES.into_iter().map(group).collect(),
    }
}

/// A count of handshakes.
pub(super) type Kind = fn(&Handshakes) -> u64;

/// Handshakes of one kind over the rounds of a cell; `None` when they are not known.
pub(super) fn count(cell: &CellRecord, kind: Kind) -> Option<u64> {
    cell.summary.handshake.as_ref().map(|figures| kind(&figures.handshakes))
}

/// The kinds, as the table of what stands behind the figures has them.
pub(super) const KINDS: [(&str, Kind); 4] = [
    ("full handshakes", |h| h.full),
    ("resumed", |h| h.resumed),
    ("early data accepted", |h| h.early_accepted),
    ("early data rejected", |h| h.early_rejected),
];

const MEASURES: [(&str, Figure); 7] = [
    ("handshake min (ms)", Figure::Setup(SetupTime::Least)),
    ("handshake p50 (ms)", Figure::Setup(SetupTime::P50)),
    ("handshake p99 (ms)", Figure::Setup(SetupTime::P99)),
    ("first response p50 (ms)", Figure::FirstResponse),
    ("conn/s", Figure::Connections),
    ("req/s", Figure::Rate),
    ("CPU µs/conn", Figure::CpuPerConnection),
];
