//! Owns the tests of the scenarios that come with the project, and of `bench check` as a program.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use bench::results::{Protocol, SectionKind};
use bench::scenario::{self, Machine, Overrides, Scenario};
use predicates::prelude::*;

fn in_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A laptop of four cores, so that the tests do not depend on where they run.
fn laptop() -> Machine {
    Machine {
        cpus: vec![0, 1, 2, 3],
        cores: vec![vec![0], vec![1], vec![2], vec![3]],
        fd_hard_limit: 4096,
        ephemeral_ports: (32768, 60999),
        reserved_ports: Vec::new(),
    }
}

fn load(name: &str) -> Scenario {
    let path = in_project("scenarios").join(name);
    scenario::load(&path, &scenario::read_from_disk, &laptop(), &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_is_right_and_begins_with_its_question() {
    let mut count = 0;
    for entry in std::fs::read_dir(in_project("scenarios")).expect("the project has scenarios") {
        let name = entry.expect("the folder can be listed").file_name().into_string().expect("a plain name");
        let scenario = load(&name);
        let question = scenario.text.split("\nformat").next().unwrap_or_default();
        assert!(question.starts_with("# ") && question.contains('?'), "{name}");
        count += 1;
    }
    assert!(count >= 2);
}

#[test]
fn the_quick_look_measures_for_less_than_a_minute() {
    let scenario = load("quick.toml");
    assert_eq!(scenario.report, "QUICK_RESULTS");
    assert!(scenario.estimate().total().as_secs_f64() < 60.0, "{:?}", scenario.estimate());
    let rust =
        scenario.servers.iter().find(|server| server.name == "rust-hyper").expect("the one always there");
    assert_eq!(rust.requires, ["cargo"], "it needs the Rust toolchain alone");
    let offers = |protocol| rust.protocols.contains(protocol);
    assert!(scenario.sections.iter().all(|section| section.protocols.iter().all(offers)));
    assert!(scenario.sections.iter().any(|section| section.kind == SectionKind::Setup));
}

#[test]
fn the_full_comparison_has_the_published_cells_and_takes_ten_minutes_at_most() {
    let scenario = load("http.toml");
    assert_eq!(scenario.report, "HTTP_RESULTS");
    assert!(scenario.estimate().total().as_secs_f64() < 600.0, "{:?}", scenario.estimate());
    assert_eq!(scenario.servers.len(), 5);
    for section in scenario.sections.iter().filter(|section| section.kind == SectionKind::ClosedLoop) {
        let cells: Vec<String> = section.cells.iter().map(ToString::to_string).collect();
        assert_eq!(cells, ["1x1", "10x1", "50x1", "200x1"], "{}", section.title);
    }
}

#[test]
fn the_comparison_over_http2_has_the_published_cells_and_takes_twelve_minutes_at_most() {
    let scenario = load("h2.toml");
    assert_eq!((scenario.report.as_str(), scenario.template.as_str()), ("HTTP2_RESULTS", "http2"));
    assert!(scenario.estimate().total().as_secs_f64() < 720.0, "{:?}", scenario.estimate());
    let servers: Vec<&str> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(servers, ["rust-hyper", "go", "node", "nginx", "caddy", "h2o"]);
    let sections: Vec<_> =
        scenario.sections.iter().map(|section| (section.kind, section.protocols.as_slice())).collect();
    let compared: [(SectionKind, &[Protocol]); 5] = [
        (SectionKind::ClosedLoop, &[Protocol::H2c]),
        (SectionKind::Ratio, &[Protocol::H2c, Protocol::H1]),
        (SectionKind::ClosedLoop, &[Protocol::H2]),
        (SectionKind::Ratio, &[Protocol::H2, Protocol::H1s]),
        (SectionKind::Setup, &[Protocol::H2, Protocol::H1s]),
    ];
    assert_eq!(sections, compared);
    for section in &scenario.sections {
        let cells: Vec<String> = section.cells.iter().map(ToString::to_string).collect();
        let published: &[&str] = match section.kind {
            SectionKind::ClosedLoop => &["1x1", "1x10", "1x100", "10x1", "10x10", "50x1", "50x10"],
            SectionKind::Ratio => &["1x1", "10x1", "50x1"],
            SectionKind::Setup => &["20x1"],
            SectionKind::Handshake | SectionKind::Generators => panic!("not in this scenario"),
        };
        assert_eq!(cells, published, "{}", section.title);
    }
}

#[test]
fn the_comparison_over_http3_has_the_published_cells_and_takes_twelve_minutes_at_most() {
    let scenario = load("h3.toml");
    assert_eq!((scenario.report.as_str(), scenario.template.as_str()), ("HTTP3_RESULTS", "http3"));
    assert!(scenario.estimate().total().as_secs_f64() < 720.0, "{:?}", scenario.estimate());
    let servers: Vec<&str> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
    let stacks = ["rust-quinn", "quiche", "go-quic", "caddy", "s2n-quic", "bun", "python-aioquic"];
    assert!(servers.starts_with(&stacks[..3]) && stacks.iter().all(|stack| servers.contains(stack)));
    assert!(scenario.servers.iter().all(|server| server.protocols.contains(&Protocol::H3)));
    let compared: Vec<_> =
        scenario.sections.iter().map(|section| (section.kind, section.protocols.as_slice())).collect();
    let all: &[Protocol] = &[Protocol::H3, Protocol::H2, Protocol::H1s];
    let expected: [(SectionKind, &[Protocol]); 4] = [
        (SectionKind::ClosedLoop, &[Protocol::H3]),
        (SectionKind::Ratio, &[Protocol::H3, Protocol::H2]),
        (SectionKind::Setup, all),
        (SectionKind::Handshake, all),
    ];
    assert_eq!(compared, expected);
    for section in &scenario.sections {
        let cells: Vec<String> = section.cells.iter().map(ToString::to_string).collect();
        let published: &[&str] = match section.kind {
            SectionKind::ClosedLoop => &["1x1", "1x10", "1x100", "10x1", "10x10", "50x1", "50x10"],
            SectionKind::Ratio => &["1x1", "10x1", "50x1"],
            SectionKind::Setup => &["20x1"],
            SectionKind::Handshake => &["1x1/off", "1x1/ticket", "1x1/0rtt"],
            SectionKind::Generators => panic!("not in this scenario"),
        };
        assert_eq!(cells, published, "{}", section.title);
    }
}

#[test]
fn the_comparison_of_codings_asks_for_each_over_two_protocols() {
    let scenario = load("encodings.toml");
    assert_eq!((scenario.report.as_str(), scenario.template.as_str()), ("ENCODING_RESULTS", "encodings"));
    assert!(scenario.estimate().total().as_secs_f64() < 720.0, "{:?}", scenario.estimate());
    let mut asked = Vec::new();
    for section in &scenario.sections {
        assert!(section.runs && section.kind == SectionKind::ClosedLoop, "{}", section.title);
        asked.push((section.protocols[0], section.headers[0].1.as_str()));
    }
    let codings = |protocol| ["identity", "gzip", "br"].map(|coding| (protocol, coding));
    assert_eq!(asked, [codings(Protocol::H1s), codings(Protocol::H2)].concat());
}

/// Variants are built one after the other: what one build writes, another must not.
#[test]
fn the_variants_of_one_server_do_not_overwrite_each_other() {
    let scenario = load("variants.toml");
    assert!(scenario.estimate().total().as_secs_f64() < 1200.0, "{:?}", scenario.estimate());
    assert!(scenario.servers.iter().all(|s| s.variant.as_ref().is_some_and(|v| v.of == "rust-hyper")));
    let workers: Vec<u32> = scenario.servers.iter().filter_map(|server| server.workers).collect();
    assert_eq!(workers, [1, 2, 4]);
    for a in &scenario.servers {
        assert_eq!(a.command[0], a.version[0], "{}", a.name);
        for b in &scenario.servers {
            assert_eq!(a.build == b.build, a.command == b.command, "{} and {}", a.name, b.name);
        }
    }
}

fn bench_check() -> Command {
    let mut command = Command::cargo_bin("bench").expect("cargo builds the program for its tests");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("check");
    command
}

#[test]
fn check_prints_the_plan() {
    bench_check()
        .args(["scenarios/quick.toml", "--rounds", "1"])
        .assert()
        .success()
        .stdout(predicate::str::contains("rounds = 1 (scenario: 3)"))
        .stdout(predicate::str::contains("rust-hyper").and(predicate::str::contains("pins")))
        .stderr("");
}

#[test]
fn check_prints_the_plan_as_json() {
    let output = bench_check().args(["scenarios/http.toml", "--json", "--cell", "50x1"]).output().unwrap();
    assert!(output.status.success());
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the plan is JSON");
    assert_eq!(plan["report"], "HTTP_RESULTS");
    assert_eq!(plan["sections"].as_array().map(Vec::len), Some(2));
    assert_eq!(plan["sections"][0]["cells"], serde_json::json!(["50x1"]));
    assert!(plan["time"]["total_s"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[test]
fn check_says_where_a_mistake_is_and_exits_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    let section = "[[section]]\ntitle = \"t\"\nkind = \"closed-loop\"\nprotocol = \"h1\"\nconections = [1]\n";
    std::fs::write(&path, format!("format = 1\ntitle = \"T\"\n{section}")).unwrap();
    bench_check().arg(&path).assert().code(2).stdout("").stderr(format!(
        "{}:7:1: section[1].conections: unknown key; did you mean `connections`?\n",
        path.display()
    ));
    bench_check()
        .args(["scenarios/none.toml"])
        .assert()
        .code(2)
        .stderr(predicate::str::starts_with("scenarios/none.toml: cannot read the scenario"));
    bench_check()
        .args(["scenarios/quick.toml", "--duration", "5"])
        .assert()
        .code(2)
        .stderr(predicate::str::starts_with("--duration: no unit"));
}
