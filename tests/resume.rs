//! `bench run --resume`: after SIGKILL at any moment, after failures, and when it must refuse.

#[path = "common/bed.rs"]
mod bed;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use bed::{Bed, data, hello, section};
use bench::results::store::{Entry, Journal};
use bench::results::{CellStatus, Results, RoundRecord};

/// Two servers, two cells, three rounds.
fn small_run() -> Bed {
    Bed::new(
        "rounds = 3\nduration = \"150ms\"",
        &[
            hello("one", "\"h1\"", ""),
            hello("two", "\"h1\"", ""),
            section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"2x1\"]"),
        ]
        .concat(),
    )
}

/// The measured rounds by server, C and round.
fn measured(results: &Results) -> BTreeMap<(String, u32, u32), RoundRecord> {
    let mut rounds = BTreeMap::new();
    for cell in results.sections.iter().flat_map(|section| &section.cells) {
        for round in cell.rounds.iter().filter(|round| round.status == CellStatus::Measured) {
            let key = (cell.server.clone(), cell.connections, round.round);
            assert!(rounds.insert(key, round.clone()).is_none(), "a round stands once");
        }
    }
    rounds
}

/// The measured rounds of a journal, in order, counted by lines alone.
fn lines_of_rounds(bed: &Bed) -> usize {
    let entries = Journal::read(&bed.report("journal")).expect("a journal stays readable");
    entries.iter().filter(|entry| matches!(entry, Entry::Round { .. })).count()
}

#[test]
fn a_run_killed_at_any_moment_continues_where_it_was() {
    let bed = small_run();
    let mut seen = BTreeMap::new();
    for attempt in 0..5u64 {
        let mut child = bed
            .bench()
            .args((attempt > 0).then_some("--resume"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bench can be started");
        // The moment is drawn from the line it is at and a pause that shifts from attempt to attempt:
        // it falls into builds, starts, cells, saving and stops alike.
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut told = 0;
        for line in stderr.lines() {
            told += usize::from(line.expect("text").starts_with('['));
            if told > usize::from(attempt > 0) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(attempt * 37 % 90));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        bed.assert_nothing_is_left();
        // Every cell it told of is kept.
        assert!(lines_of_rounds(&bed) >= seen.len() + told, "attempt {attempt}");
        let entries = Journal::read(&bed.report("journal")).expect("a journal stays readable");
        let results = bench::results::store::assemble(&entries).expect("it folds");
        let now = measured(&results);
        for (key, round) in &seen {
            assert_eq!(now.get(key), Some(round), "an earlier measurement stays as it was");
        }
        seen = now;
        if results.complete {
            break;
        }
    }
    let output = bed.bench().arg("--resume").output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let results = bed.results();
    assert!(results.complete);
    assert!(results.sessions.len() > 1, "a mixed run is labelled");
    let all = measured(&results);
    assert_eq!(all.len(), 2 * 2 * 3);
    for (key, round) in &seen {
        assert_eq!(all.get(key), Some(round));
    }
    assert!(!bed.report("journal").exists());
}

#[test]
fn what_failed_in_a_finished_run_is_measured_again_and_nothing_else() {
    let bed = small_run();
    let server = bed.root().join("scenarios/hello.py");
    std::fs::write(&server, "import sys; sys.exit(3)").unwrap();
    let first =
        bed.bench().args(["--server", "one", "--server", "two"]).output().expect("bench can be started");
    assert_eq!(first.status.code(), Some(1), "{}", String::from_utf8_lossy(&first.stderr));
    assert!(bed.results().complete && measured(&bed.results()).is_empty());
    std::fs::copy(data("hello.py"), &server).unwrap();
    let resumed = || {
        let again = ["--server", "one", "--server", "two", "--resume"];
        bed.bench().args(again).output().expect("bench can be started")
    };
    let second = resumed();
    assert_eq!(second.status.code(), Some(0), "{}", String::from_utf8_lossy(&second.stderr));
    assert_eq!(measured(&bed.results()).len(), 12);
    let before = bed.results();
    let third = resumed();
    assert_eq!(third.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&third.stderr).contains("nothing to resume: every cell has been measured")
    );
    assert_eq!(bed.results(), before);
}

#[test]
fn another_question_is_refused() {
    let bed = small_run();
    let first = bed.bench().args(["--rounds", "1"]).output().expect("bench can be started");
    assert_eq!(first.status.code(), Some(0), "{}", String::from_utf8_lossy(&first.stderr));
    let refused = |change: &[&str]| {
        let output = bed.bench().args(change).arg("--resume").output().expect("bench can be started");
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let other_rounds = refused(&["--rounds", "2"]);
    assert!(other_rounds.contains("cannot resume: `overrides`"), "{other_rounds}");
    let text = std::fs::read_to_string(bed.scenario()).unwrap();
    std::fs::write(bed.scenario(), text.replace("150ms", "140ms")).unwrap();
    let other_text = refused(&["--rounds", "1"]);
    assert!(
        other_text.contains("was `duration = \"150ms\"` and is now `duration = \"140ms\"`"),
        "{other_text}"
    );
}

#[test]
fn nothing_to_resume_is_a_fresh_start() {
    let bed = small_run();
    let output = bed.bench().args(["--resume", "--rounds", "1"]).output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("starting from the beginning"));
    assert_eq!(bed.results().sessions.len(), 1);
}
