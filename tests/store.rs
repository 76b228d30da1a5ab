//! Owns the tests of how results are kept: files of every format, atomic replacement, and a journal
//! cut at any byte.

#[path = "common/results.rs"]
mod build;

use std::fs;

use bench::results::store::{Entry, Journal, assemble, load, parse, save, to_json};
use bench::results::*;
use build::{cell, empty, lost_round, measured, section, server, summarised};
use proptest::prelude::*;

/// The plan of two servers and two cells each.
fn plan() -> Results {
    let cells = ["a", "b"].iter().flat_map(|s| [1, 10].map(|c| cell(s, Protocol::H1, c, 1))).collect();
    Results {
        servers: vec![server("a", "A", "1.0"), server("b", "B", "2.0")],
        sections: vec![section("Plaintext", SectionKind::ClosedLoop, cells)],
        complete: false,
        sessions: vec![build::session("2026-11-30T12:00:00Z", None)],
        ..empty()
    }
}

fn round_entry(server: &str, connections: u32, round: RoundRecord) -> Entry {
    Entry::Round {
        section: 0,
        server: server.into(),
        protocol: Protocol::H1,
        connections,
        concurrency: 1,
        resumption: Resumption::Off,
        requests_per_connection: None,
        generator: None,
        round: Box::new(round),
    }
}

fn start_entry(server: &str, round: u32) -> Entry {
    let start = StartRecord {
        session: 0,
        round,
        section: 0,
        ready_ms: Some(12.5),
        stop_ms: Some(3.0),
        killed: false,
        problem: None,
    };
    Entry::Start { server: server.into(), start }
}

/// What a whole run leaves in its journal.
fn entries() -> Vec<Entry> {
    let mut entries = vec![Entry::Plan(Box::new(plan()))];
    let mut built = server("b", "B", "2.0.1");
    built.build_s = Some(4.5);
    entries.push(Entry::Server(Box::new(built)));
    for number in 1..=3 {
        for name in ["a", "b"] {
            for connections in [1, 10] {
                let rate = 10_000.0 * f64::from(connections);
                let of = measured(cell(name, Protocol::H1, connections, 1), rate, 99.0);
                let mut round = of.rounds[number - 1].clone();
                round.server = None;
                entries.push(round_entry(name, connections, round));
            }
            entries.push(start_entry(name, number as u32));
        }
    }
    entries.push(Entry::Finished { at: "2026-11-30T12:09:00Z".into() });
    entries
}

#[test]
fn a_journal_folds_into_the_results_of_its_run() {
    let results = assemble(&entries()).unwrap();
    assert!(results.complete);
    assert_eq!(results, summarised(results.clone()));
    assert_eq!(results.servers[1].version.as_deref(), Some("2.0.1"));
    assert_eq!(results.servers[1].starts.len(), 3);
    assert_eq!(results.sessions[0].order[..2], ["1 / 1 / a", "1 / 1 / b"]);
    assert_eq!(results.sessions[0].finished_at.as_deref(), Some("2026-11-30T12:09:00Z"));
    assert!(results.sections[0].cells.iter().all(|c| c.summary.verdict == Verdict::Valid));
    // One outcome less, and the run is no longer complete.
    let without =
        entries().into_iter().filter(|e| !matches!(e, Entry::Round { round, .. } if round.round == 2));
    assert!(!assemble(&without.collect::<Vec<_>>()).unwrap().complete);
}

#[test]
fn a_later_outcome_replaces_a_failed_one_and_never_loses_a_measurement() {
    let good = measured(cell("a", Protocol::H1, 1, 1), 10_000.0, 99.0).rounds[0].clone();
    let bad = lost_round(1, CellStatus::Failed, "exit status 1", &[]);
    for (first, second) in [(&good, &bad), (&bad, &good)] {
        let journal = [
            Entry::Plan(Box::new(plan())),
            round_entry("a", 1, first.clone()),
            round_entry("a", 1, second.clone()),
        ];
        let results = assemble(&journal).unwrap();
        assert_eq!(results.sections[0].cells[0].rounds, std::slice::from_ref(&good));
    }
}

/// Cells of one size are told apart by what becomes of their connections.
#[test]
fn an_outcome_finds_its_cell_among_those_of_one_size() {
    let ways = [Resumption::Off, Resumption::Ticket, Resumption::ZeroRtt];
    let of = |resumption| CellRecord {
        resumption,
        requests_per_connection: Some(1),
        ..cell("a", Protocol::H3, 1, 1)
    };
    let mut plan = plan();
    plan.sections[0].kind = SectionKind::Handshake;
    plan.sections[0].cells = ways.map(of).to_vec();
    let entry = |resumption, requests_per_connection| Entry::Round {
        section: 0,
        server: "a".into(),
        protocol: Protocol::H3,
        connections: 1,
        concurrency: 1,
        resumption,
        requests_per_connection,
        generator: None,
        round: Box::new(lost_round(1, CellStatus::Failed, &format!("{resumption:?}"), &[])),
    };
    let mut journal = vec![Entry::Plan(Box::new(plan))];
    journal.extend(ways.map(|resumption| entry(resumption, Some(1))));
    let results = assemble(&journal).unwrap();
    for (cell, resumption) in results.sections[0].cells.iter().zip(ways) {
        assert_eq!(cell.summary.reasons[0], format!("{resumption:?}"));
        assert_eq!((cell.resumption, cell.rounds.len()), (resumption, 1));
    }
    journal.push(entry(Resumption::Off, Some(9)));
    let error = assemble(&journal).unwrap_err().0;
    assert!(error.contains("cell a h3 1x1/off, 9 requests on each connection"), "{error}");
}

/// A journal of format 1.1 has no word of resumption.
#[test]
fn an_older_journal_is_of_connections_that_are_kept() {
    let mut line = serde_json::to_value(&entries()[2]).unwrap();
    for key in ["resumption", "requests_per_connection"] {
        assert!(line.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    assert_eq!(serde_json::from_value::<Entry>(line).unwrap(), entries()[2]);
}

#[test]
fn a_resumption_is_another_session() {
    let mut journal = entries();
    let cut = journal.split_off(7);
    let mut resumed = plan();
    resumed.sessions[0].started_at = "2026-12-01T09:00:00Z".into();
    journal.push(Entry::Plan(Box::new(resumed)));
    journal.extend(cut);
    let results = assemble(&journal).unwrap();
    assert!(results.complete);
    assert_eq!(results.sessions.len(), 2);
    assert_eq!((&results.sessions[0].finished_at, results.sessions[1].finished_at.is_some()), (&None, true));
}

#[test]
fn the_cells_of_an_unavailable_server_take_its_reason() {
    let mut absent = server("b", "B", "2.0");
    absent.unavailable = Some(Unavailable {
        status: CellStatus::Absent,
        reason: "`b` is not on PATH".into(),
        log_tail: vec![],
    });
    let mut journal = entries();
    journal.retain(|e| !matches!(e, Entry::Round { server, .. } if server == "b"));
    journal.push(Entry::Server(Box::new(absent)));
    let results = assemble(&journal).unwrap();
    assert!(results.complete);
    let verdicts: Vec<_> = results.sections[0].cells.iter().map(|c| c.summary.verdict).collect();
    assert_eq!(verdicts, [Verdict::Valid, Verdict::Valid, Verdict::Absent, Verdict::Absent]);
    assert_eq!(results.sections[0].cells[3].summary.reasons, ["`b` is not on PATH"]);
}

#[test]
fn a_journal_that_contradicts_its_plan_is_refused() {
    let stranger = round_entry("c", 1, lost_round(1, CellStatus::Failed, "", &[]));
    for (journal, part) in [
        (vec![], "does not begin with a plan"),
        (vec![stranger.clone()], "does not begin with a plan"),
        (vec![Entry::Plan(Box::new(plan())), stranger], "cell c h1 1x1"),
        (vec![Entry::Plan(Box::new(plan())), start_entry("c", 1)], "server c"),
    ] {
        let error = assemble(&journal).unwrap_err().0;
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_bad_line_is_named_and_a_newer_plan_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("X.journal");
    assert_eq!(Journal::read(&path).unwrap(), []);
    Journal::open(&path).unwrap().append(&entries()[0]).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{good}{{\"entry\": \"nonsense\"}}\n{good}")).unwrap();
    let error = Journal::read(&path).unwrap_err().0;
    assert!(error.contains("X.journal: line 2"), "{error}");
    fs::write(&path, good.replacen(&format!("\"format\":\"{}\"", version::FORMAT), "\"format\":\"1.7\"", 1))
        .unwrap();
    let error = Journal::read(&path).unwrap_err().0;
    assert!(error.contains("format 1.7 is newer"), "{error}");
}

#[test]
fn files_of_every_format_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut formats = Vec::new();
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap()) {
        let name = file.file_name().into_string().unwrap();
        let Some(format) = name.strip_prefix("results-").and_then(|n| n.strip_suffix(".json")) else {
            continue;
        };
        let results = load(&file.path()).unwrap();
        assert_eq!(results.format, format);
        assert!(!results.sections.is_empty());
        formats.push(format.to_owned());
    }
    assert!(formats.iter().any(|format| format == version::FORMAT), "{formats:?}");
}

#[test]
fn figures_json_cannot_keep_are_refused() {
    let mut results = assemble(&entries()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("X.json");
    save(&path, &results).unwrap();
    let before = fs::read(&path).unwrap();
    for figure in [f64::NAN, f64::INFINITY, -1.0] {
        results.sections[0].cells[0].summary.requests_per_second = Some(figure);
        let error = save(&path, &results).unwrap_err().0;
        assert!(error.contains("bug of bench"), "{figure}: {error}");
    }
    results = assemble(&entries()).unwrap();
    results.settings.duration_s = f64::NAN;
    assert!(save(&path, &results).is_err());
    assert_eq!(fs::read(&path).unwrap(), before, "a refused save leaves the file alone");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_kill_at_any_byte_loses_one_line_at_most(cut in 0.0f64..1.0, more in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("X.journal");
        let all = entries();
        let mut ends = vec![0];
        let mut journal = Journal::open(&path).unwrap();
        for entry in &all {
            journal.append(entry).unwrap();
            ends.push(fs::metadata(&path).unwrap().len());
        }
        let length = (cut * ends[all.len()] as f64) as u64;
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();

        let whole = ends.iter().rposition(|end| *end <= length).unwrap();
        prop_assert_eq!(&Journal::read(&path).unwrap()[..], &all[..whole]);

        // Whoever goes on from there ends where an uncut run ends.
        if more {
            let mut journal = Journal::open(&path).unwrap();
            for entry in &all[whole..] {
                journal.append(entry).unwrap();
            }
            let read = Journal::read(&path).unwrap();
            prop_assert_eq!(&read, &all);
            prop_assert_eq!(assemble(&read).unwrap(), assemble(&all).unwrap());
        }
    }

    #[test]
    fn results_read_back_to_the_bit(rate in 1e-3f64..1e7, mean in 0.5f64..1e6, label in "\\PC{0,12}") {
        let mut results = plan();
        results.servers[0].label = label;
        results.sections[0].cells[0] = measured(cell("a", Protocol::H1, 1, 1), rate, mean);
        let results = summarised(results);
        let text = to_json(&results).unwrap();
        let read = parse(&text).unwrap();
        prop_assert_eq!(&read, &results);
        prop_assert_eq!(to_json(&read).unwrap(), text);
    }
}
