//! Owns the tests of a cell's history over commits.

use bench::results::*;
use predicates::prelude::*;
use predicates::str::contains;

use crate::build;
use crate::fixture::{Folder, json, run};

/// A report that was measured, went missing, came back from another machine, lost a cell, and was damaged.
fn repository() -> Folder {
    let folder = Folder::new();
    let elsewhere = |factor: f64| {
        let mut results = run(factor);
        results.sessions[0].environment.cpu = "Other | CPU".into();
        results
    };
    folder.write("reports/A.json", &run(1.0));
    folder.commit("first | of all");
    folder.write_text("README.md", "not about the report");
    folder.commit("unrelated");
    folder.write("reports/A.json", &run(0.9));
    folder.commit("slower");
    std::fs::remove_file(folder.path("reports/A.json")).expect("it is there");
    folder.commit("removed");
    folder.write("reports/A.json", &elsewhere(0.5));
    folder.commit("elsewhere");
    let mut without = elsewhere(0.5);
    without.sections[0].cells.retain(|cell| cell.server != "rust");
    folder.write("reports/A.json", &without);
    folder.commit("without rust");
    folder.write_text("reports/A.json", "{");
    folder.commit("damaged");
    let mut unstable = elsewhere(0.5);
    let rates: Vec<f64> = (0..10).map(|n| if n % 2 == 0 { 8_000.0 } else { 4_000.0 }).collect();
    let cell = &mut unstable.sections[0].cells[0];
    *cell = build::with_rounds(cell.clone(), &rates, 120.0);
    unstable.servers[0].label = "Rust, renamed".into();
    folder.write("reports/A.json", &build::summarised(unstable));
    folder.commit("unstable");
    folder
}

fn history(folder: &Folder, args: &[&str]) -> assert_cmd::Command {
    folder.bench("", &[&["history"], args].concat())
}

#[test]
fn a_cell_is_followed_over_the_commits_that_touched_its_report() {
    let folder = repository();
    let assert = history(&folder, &["--server", "rust", "--cell", "1x1"]).assert().code(0);
    // Hashes depend on the time of the commits.
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    let plain: Vec<String> = text
        .lines()
        .map(|line| match line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
            ["", hash, date, subject, ..] if hash.len() == 12 && date.len() == 10 => {
                let at = line.find(subject).unwrap_or(0);
                format!("| HASH | DATE | {}", &line[at..])
            }
            _ => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(plain.join("\n"));
}

#[test]
fn the_json_has_every_commit_and_point() {
    let folder = repository();
    let args = ["reports/A.json", "--section", "PLAIN", "--metric", "cpu", "--format", "json"];
    let assert = history(&folder, &args).assert().code(0);
    let json = json(&assert.get_output().stdout);
    assert_eq!((&json["report"], &json["metric"]), (&"reports/A.json".into(), &"cpu".into()));
    let commits = json["commits"].as_array().expect("commits");
    let subjects: Vec<&str> = commits.iter().filter_map(|commit| commit["subject"].as_str()).collect();
    assert_eq!(
        subjects,
        ["first | of all", "slower", "removed", "elsewhere", "without rust", "damaged", "unstable"]
    );
    let changed = |at: usize| commits[at]["changed"].as_array().expect("changes").len();
    assert_eq!((0..7).map(changed).collect::<Vec<_>>(), [0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(commits[2]["problem"], "the report is not there");
    let cells = json["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 6);
    for cell in cells {
        let points = cell["points"].as_array().expect("points");
        let there: Vec<bool> = points.iter().map(|point| point["figure"].is_f64()).collect();
        let rust = cell["server"] == "rust";
        assert_eq!(there, [true, true, false, true, !rust, false, true], "{cell}");
    }
}

#[test]
fn the_picture_is_broken_where_the_conditions_changed() {
    let folder = repository();
    let draw = |file: &str, more: &[&str]| {
        let args = [&["--server", "rust", "--cell", "1x1", "--metric", "p99", "--svg", file], more].concat();
        history(&folder, &args).assert().code(0).stdout(contains("conditions changed"));
        std::fs::read_to_string(folder.path(file)).expect("it is drawn")
    };
    let svg = draw("a.svg", &[]);
    assert!(svg.contains("class=\"break\"") && svg.contains("p99 (ms)") && svg.contains('†'), "{svg}");
    assert!(!svg.contains("NaN"));
    assert_eq!(svg, draw("b.svg", &[]));
    assert_ne!(svg, draw("c.svg", &["--theme", "dark"]));
    let into = history(&folder, &["--svg", "nosuch/x.svg"]).assert().code(2);
    into.stderr(contains("nosuch/x.svg"));
}

#[test]
fn commits_are_bounded_by_revision_and_number() {
    let folder = repository();
    history(&folder, &["--last", "0"]).assert().code(2).stderr(contains("--last"));
    for (args, count) in [(&[][..], 7), (&["--last", "2"], 2), (&["--revision", "HEAD~2"], 5)] {
        let args = [&["--server", "go", "--format", "json"], args].concat();
        let assert = history(&folder, &args).assert().code(0);
        let json = json(&assert.get_output().stdout);
        assert_eq!(json["commits"].as_array().map(Vec::len), Some(count), "{args:?}");
    }
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let folder = repository();
    for (args, part) in [
        (&["--server", "apache"][..], "the servers rust, go, nginx; the cells h1 1x1, h1 50x1"),
        (&["--section", "TLS"], "the sections Plaintext;"),
        (&["--cell", "2x2"], "no cell of reports/A.json matches"),
        (&["reports/B.json"], "no commit up to HEAD touched reports/B.json"),
        (&["--revision", "nosuch"], "`nosuch` is no revision"),
        (&["/A.json"], "not a git repository"),
        (&["--metric", "p95"], "there are rate, p50, p99, cpu"),
    ] {
        history(&folder, args).assert().code(2).stdout("").stderr(contains(part));
    }
    folder.write("reports/B.json", &run(1.0));
    folder.commit("a second report");
    history(&folder, &[]).assert().code(2).stderr(contains("name one of reports/A.json, reports/B.json"));
    Folder::with(&[("reports/A.json", &run(1.0))])
        .bench("", &["history", "reports/A.json"])
        .assert()
        .code(2)
        .stderr(contains("error: ").and(contains("not a git repository")));
}

#[test]
fn every_format_there_was_is_followed() {
    let folder = Folder::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    for minor in 0..3 {
        let text = std::fs::read_to_string(format!("{data}/results-1.{minor}.json")).expect("a fixture");
        folder.write_text("reports/A.json", &text);
        folder.commit(&format!("1.{minor}"));
    }
    let assert = history(&folder, &["--format", "json"]).assert().code(0);
    let json = json(&assert.get_output().stdout);
    for commit in json["commits"].as_array().expect("commits") {
        assert_eq!(commit["problem"], serde_json::Value::Null, "{}", version::FORMAT);
    }
}
