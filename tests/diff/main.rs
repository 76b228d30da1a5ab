//! Owns the tests of comparisons as users meet them: what the sides may be, what is shown, how it ends.

#[path = "../common/results.rs"]
mod build;
mod fixture;
mod history;
mod inputs;
mod shown;

use bench::compare::Verdict;
use bench::results::*;
use fixture::{Folder, run};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

/// Case (a): a cell that only the base has is listed, and fails where that is asked for.
#[test]
fn a_cell_only_in_the_base_is_missing() {
    let mut head = run(1.0);
    head.sections[0].cells.retain(|cell| cell.server != "go" || cell.connections != 50);
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &head)]);
    folder.diff(&["a.json", "b.json"]).assert().code(0).stdout(contains("Missing or failed (1)"));
    folder
        .diff(&["a.json", "b.json", "--fail-on", "50%"])
        .assert()
        .code(1)
        .stdout(contains("Go h1 50x1 (Plaintext) is missing"));
    // The other way around it is new, which is no loss.
    folder.diff(&["b.json", "a.json", "--fail-on", "0%"]).assert().code(0).stdout(contains("New (1)"));
}

/// Two servers of one run are compared round by round.
#[test]
fn two_servers_of_a_run_are_compared() {
    let folder = Folder::with(&[("a.json", &run(1.0))]);
    let of = |servers: &'static str| folder.diff(&["a.json", "--servers", servers]).assert();
    // In the fixture Go answers two ninths fewer requests than Rust, with the same noise.
    of("rust,go").code(0).stdout(contains("-22.2 %").and(contains("worse")));
    of("go,Rust").code(0).stdout(contains("+28.6 %").and(contains("better")));
    folder.diff(&["a.json", "--servers", "rust,go", "--fail-on", "rate=5%"]).assert().code(1);
    for (servers, message) in [
        ("rust", "write them like `nginx,caddy`"),
        ("rust,rust", "is not two servers"),
        ("rust,caddy", "--servers: a.json has no server `caddy`; it has rust, go, nginx"),
    ] {
        of(servers).code(2).stderr(contains(message));
    }
    folder.diff(&["a.json", "b.json", "--servers", "rust,go"]).assert().code(2);
    folder.diff(&["a.json"]).assert().code(2).stderr(contains("HEAD"));
}

/// Cases (b), (c): another machine or other settings are not compared, and say what differs.
#[test]
fn other_conditions_are_not_compared() {
    type Bend = fn(&mut Results);
    let cases: [(&str, &str, &str, Bend); 5] = [
        ("CPU model", "Example CPU 9000", "Other CPU 1", |r| {
            r.sessions[0].environment.cpu = "Other CPU 1".into();
        }),
        ("kernel", "Linux 6.12.0 x86_64", "Linux 6.13.0 x86_64", |r| {
            r.sessions[0].environment.kernel = "Linux 6.13.0 x86_64".into();
        }),
        ("warm-up", "2 s", "3 s", |r| r.settings.warmup_s = 3.0),
        ("server workers", "2", "4", |r| r.settings.workers = 4),
        ("workers of go", "2", "4", |r| r.servers[1].workers = Some(4)),
    ];
    for (key, base, head, change) in cases {
        let mut other = run(0.8);
        change(&mut other);
        let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &other)]);
        let refused = folder.diff(&["a.json", "b.json", "--format", "json"]).assert().code(2);
        let output = refused.get_output();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(key) && message.contains("--force"), "{message}");
        let differing = &fixture::json(&output.stdout)["reports"][0]["differing"];
        assert_eq!(differing[0], serde_json::json!({ "key": key, "base": base, "head": head }));
        for format in ["text", "md"] {
            let text = folder.output(&["a.json", "b.json", "--format", format]);
            assert!(text.contains(key) && text.contains(head) && !text.contains("req/s"), "{text}");
        }
        // Figures can be had, a verdict cannot, so that what has to hold cannot be said to.
        let forced = folder.diff(&["a.json", "b.json", "--force", "--format", "md"]).assert().code(0);
        let text = String::from_utf8_lossy(&forced.get_output().stdout).into_owned();
        assert!(
            text.contains("| req/s") && !text.contains("- **worse**: Rust") && !text.contains("### Worse"),
            "{text}"
        );
        folder.diff(&["a.json", "b.json", "--force", "--fail-on", "1%"]).assert().code(2);
    }
}

/// A run that was continued on another machine cannot be compared, not even with itself.
#[test]
fn a_run_of_two_machines_is_not_compared() {
    let mut mixed = run(1.0);
    let mut second = mixed.sessions[0].clone();
    second.environment.cpu = "Other CPU 1".into();
    mixed.sessions.push(second);
    let folder = Folder::with(&[("a.json", &mixed)]);
    folder.diff(&["a.json", "a.json"]).assert().code(2).stdout(contains("Example CPU 9000; Other CPU 1"));
}

/// Marks that are no verdicts speak against a figure as well, and answers that went wrong fail the gate.
#[test]
fn every_mark_is_told_and_withholds_the_verdict() {
    let mut head = run(0.5);
    for cell in head.sections[0].cells.iter_mut().filter(|cell| cell.server == "go") {
        for m in cell.rounds.iter_mut().filter_map(|round| round.measurement.as_mut()) {
            m.requests.failed = m.requests.ok / 100;
            m.requests.started += m.requests.failed;
        }
    }
    let head = fixture::summarised(fixture::rounds(head, 9));
    let mut base = run(1.0);
    base.settings.rounds = 9;
    let folder =
        Folder::with(&[("a.json", &fixture::summarised(fixture::rounds(base, 9))), ("b.json", &head)]);
    let json = folder.json(&["a.json", "b.json"]);
    let cells = json["reports"][0]["cells"].as_array().unwrap();
    let go = cells.iter().find(|cell| cell["server"] == "go").unwrap();
    assert_eq!(go["marks_gained"], serde_json::json!(["tainted"]));
    assert!(go["changes"].as_array().unwrap().iter().all(|change| change["verdict"] == "cannot-tell"));
    folder
        .diff(&["a.json", "b.json", "--fail-on", "99%"])
        .assert()
        .code(1)
        .stdout(contains("is marked, as the base is not: tainted"));
    // One round of ten is missing: the report marks that.
    let mut fewer = run(0.5);
    fewer.sections[0].cells.iter_mut().for_each(|cell| cell.rounds.truncate(9));
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &fixture::summarised(fewer))]);
    for change in fixture::changes(&folder.json(&["a.json", "b.json"])) {
        assert_eq!(change["reason"], "the head is marked: rounds missing");
    }
    folder.diff(&["a.json", "b.json", "--fail-on", "1%"]).assert().code(2);
}

/// The whole is written beside what is cut.
#[test]
fn the_whole_is_saved() {
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &run(0.9))]);
    folder.diff(&["a.json", "b.json", "--format", "json", "--save", "whole.md"]).assert().code(0);
    let saved = std::fs::read_to_string(folder.path("whole.md")).unwrap();
    assert_eq!(saved, folder.output(&["a.json", "b.json", "--format", "md"]));
}

/// Case (c), the number of connections: another question was asked.
#[test]
fn other_connections_are_another_question() {
    let mut other = run(1.0);
    other.sections[0].cells.iter_mut().filter(|c| c.connections == 50).for_each(|c| c.connections = 64);
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &other)]);
    let refused = folder.diff(&["a.json", "b.json"]).assert().code(2);
    let text = String::from_utf8_lossy(&refused.get_output().stdout).into_owned();
    assert!(text.contains("h1 50x1") && text.contains("h1 64x1"), "{text}");
}

/// Case (d): one round says nothing about noise.
#[test]
fn one_round_each_gives_no_verdict() {
    let single = |factor| fixture::summarised(fixture::rounds(run(factor), 1));
    let folder = Folder::with(&[("a.json", &single(1.0)), ("b.json", &single(0.5))]);
    folder
        .diff(&["a.json", "b.json", "--fail-on", "5%"])
        .assert()
        .code(2)
        .stdout(contains("one round says nothing about noise"))
        .stdout(contains("Nothing could be judged by the limits"));
    for change in fixture::changes(&folder.json(&["a.json", "b.json"])) {
        assert_eq!(change["verdict"], "cannot-tell");
    }
}

/// Case (e): a run beside itself is the same in everything.
#[test]
fn identical_inputs_are_the_same() {
    let folder = Folder::with(&[("a.json", &run(1.0))]);
    folder.diff(&["a.json", "a.json", "--fail-on", "0%"]).assert().code(0);
    let json = folder.json(&["a.json", "a.json"]);
    let changes = fixture::changes(&json);
    assert!(!changes.is_empty());
    for change in changes {
        assert_eq!(
            (&change["change"], &change["verdict"]),
            (&serde_json::json!(0.0), &serde_json::json!("same"))
        );
    }
}

/// Case (f): a base of an older format is read; its missing facts are no difference. That some of the fixtures are of
/// several machines is.
#[test]
fn older_formats_are_read() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let files = std::fs::read_dir(data).expect("the folder of fixtures").map(|file| file.unwrap().path());
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let old: Vec<_> = files.filter(|path| name(path).starts_with("results-")).collect();
    assert!(old.len() >= 4, "a fixture of each format: {old:?}");
    for old in old {
        let folder = Folder::new();
        let old = old.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&old).expect("a fixture of each format");
        let read = store::parse(&text).expect("it can be read");
        folder.write("new.json", &Results { format: version::FORMAT.into(), ..read });
        folder.diff(&[&old, "new.json", "--force"]).assert().code(0);
    }
}

#[test]
fn a_change_for_the_worse_fails_where_it_is_as_large_as_the_limit() {
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &run(0.9)), ("c.json", &run(1.1))]);
    for (head, limits, code) in [
        // The fixture's rate falls by 10 %, its CPU per request rises by 11 %.
        ("b.json", &[][..], 0),
        ("b.json", &["--fail-on", "5%"], 1),
        ("b.json", &["--fail-on", "20%"], 0),
        ("b.json", &["--fail-on", "rate=5%"], 1),
        ("b.json", &["--fail-on", "rate=20%,cpu=5%"], 1),
        ("b.json", &["--fail-on", "rate=20%", "--fail-on", "cpu=20%"], 0),
        ("b.json", &["--fail-on", "20%,cpu=11%"], 1),
        ("c.json", &["--fail-on", "0%"], 0),
    ] {
        let args = [&["a.json", head], limits].concat();
        let assert = folder.diff(&args).assert().code(code);
        let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        let said = match (limits.is_empty(), code) {
            (true, _) => !text.contains("The limits"),
            (false, 0) => text.contains("The limits hold"),
            (false, _) => text.contains("The limits are broken") && text.contains("where the limit is"),
        };
        assert!(said, "{args:?}: {text}");
    }
}

#[test]
fn a_cell_that_failed_on_the_head_fails() {
    let mut head = run(1.0);
    head.sections[0].cells[0].rounds =
        (1..=10).map(|n| build::lost_round(n, CellStatus::Failed, "the server ended", &[])).collect();
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &fixture::summarised(head))]);
    folder.diff(&["a.json", "b.json"]).assert().code(0).stdout(contains("failed"));
    folder
        .diff(&["a.json", "b.json", "--fail-on", "5%"])
        .assert()
        .code(1)
        .stdout(contains("Rust h1 1x1 (Plaintext) failed"));
}

#[test]
fn a_control_makes_up_for_another_machine() {
    // Everything is a fifth slower, the server under test a tenth more.
    let mut head = fixture::scaled(run(1.0), &|server| if server == "rust" { 0.72 } else { 0.8 });
    head.sessions[0].environment.cpu = "Slower CPU".into();
    let folder = Folder::with(&[("a.json", &run(1.0)), ("b.json", &fixture::summarised(head))]);
    folder.diff(&["a.json", "b.json"]).assert().code(2);
    let json = folder.json(&["a.json", "b.json", "--relative-to", "nginx"]);
    for cell in json["reports"][0]["cells"].as_array().expect("cells") {
        let rate = &cell["changes"][0];
        let expected = if cell["server"] == "rust" { Verdict::Worse } else { Verdict::Same };
        assert_eq!(rate["verdict"], serde_json::json!(expected), "{cell}");
        assert!(cell["server"] != "nginx");
    }
    for format in ["text", "md"] {
        let text = folder.output(&["a.json", "b.json", "--relative-to", "nginx", "--format", format]);
        assert!(text.contains("Slower CPU") && text.contains('×'), "{text}");
        assert!(text.contains("assume"), "{text}");
    }
    folder
        .diff(&["a.json", "b.json", "--relative-to", "apache"])
        .assert()
        .code(2)
        .stderr(contains("no server `apache`; it has rust, go, nginx"));
}

#[test]
fn options_that_cannot_be_meant_exit_2() {
    let folder = Folder::with(&[("a.json", &run(1.0))]);
    for (args, part) in [
        (&["--fail-on", "5"][..], "--fail-on: `5` is no percentage; write it like `5%`"),
        (&["--fail-on", "p95=5%"], "no metric `p95`"),
        (&["--level", "0%"], "no level of significance"),
        (&["--level", "50%"], "no level of significance"),
        (&["--margin", "2"], "write it like `5%`"),
        (&["--limit", "comment", "--format", "json"], "--limit cuts Markdown"),
        (&["--whole", "x"], "--limit"),
        (&["--format", "yaml"], "text, md, json"),
    ] {
        let args = [&["a.json", "a.json"], args].concat();
        folder.diff(&args).assert().code(2).stdout("").stderr(contains(part));
    }
}
