//! `bench run` as a whole: real servers and the real generator through the binary, and generators
//! that misbehave through the library.

#[path = "common/bed.rs"]
mod bed;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Output, Stdio};

use bed::{Bed, data, hello, section};
use bench::results::store::{Entry, Journal};
use bench::results::{CellStatus, Protocol, Results, Resumption, Verdict};
use bench::run::{GeneratorCommand, Options, Outcome, RunError};
use bench::scenario::{self, Overrides};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn statuses<'a>(results: &'a Results, server: &'a str) -> impl Iterator<Item = CellStatus> + 'a {
    let cells = results.sections.iter().flat_map(|section| &section.cells);
    cells.filter(move |cell| cell.server == server).flat_map(|cell| &cell.rounds).map(|round| round.status)
}

#[test]
fn a_whole_run_measures_every_cell_and_leaves_nothing_behind() {
    let bed = Bed::new(
        "rounds = 2\nduration = \"100ms\"",
        &[
            hello("one", "\"h1\", \"h1s\"", ""),
            hello("two", "\"h1\"", ""),
            "[[server]]\nname = \"gone\"\nrequires = [\"no-such-program\"]\ncommand = [\"no-such-program\", \"{port}\"]\n\
             protocols = [\"h1\", \"h1s\"]\n"
                .into(),
            section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"4x1\"]"),
            section("Set-up", "kind = \"setup\"\nprotocols = [\"h1\", \"h1s\"]\nconnections = 40\ncells = [\"4x1\"]"),
        ]
        .concat(),
    );
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    bed.assert_nothing_is_left();

    let results = bed.results();
    assert!(results.complete);
    assert_eq!(results.sessions.len(), 1);
    assert!(results.sessions[0].finished_at.is_some());
    let order = ["1 / 1 / one", "1 / 1 / two", "1 / 2 / one", "1 / 2 / one", "1 / 2 / two"];
    let turned = ["2 / 1 / two", "2 / 1 / one"];
    assert_eq!(results.sessions[0].order[..5], order, "{:?}", results.sessions[0].order);
    assert_eq!(results.sessions[0].order[5..7], turned);
    assert!(statuses(&results, "one").all(|status| status == CellStatus::Measured), "{}", text(&output));
    assert_eq!(statuses(&results, "one").count(), 2 * 4);
    assert_eq!(statuses(&results, "two").filter(|status| *status == CellStatus::Measured).count(), 2 * 3);
    assert!(statuses(&results, "gone").all(|status| status == CellStatus::Absent));
    for cell in results.sections.iter().flat_map(|section| &section.cells) {
        for round in cell.rounds.iter().filter(|round| round.status == CellStatus::Measured) {
            let measurement = round.measurement.as_ref().expect("a measured round has a measurement");
            let lifetime = measurement.lifetime;
            assert!(measurement.requests.ok > 0);
            assert_eq!(lifetime.started, lifetime.ok + lifetime.failed + lifetime.unfinished);
            assert!(round.server.is_some(), "the server was sampled at both edges");
        }
    }
    let h1s_of_two =
        &results.sections[1].cells.iter().find(|c| c.server == "two" && c.protocol == Protocol::H1s);
    assert_eq!(h1s_of_two.unwrap().rounds[0].reason.as_deref(), Some("two does not offer h1s"));
    for server in &results.servers[..2] {
        assert!(server.starts.iter().all(|start| start.ready_ms.is_some() && start.stop_ms.is_some()));
    }

    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("[1/14] one h1 1x1 round 1: "), "{stderr}");
    assert!(stderr.contains("[14/14] "), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("SMALL.md"));
    assert!(bed.report("md").exists());
    let mut left: Vec<_> = std::fs::read_dir(bed.root().join("reports"))
        .expect("the folder of reports is there")
        .map(|entry| entry.expect("a readable folder").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["SMALL.json", "SMALL.md"], "no journal, lock or log stays after a good run");
}

/// What servers make of a section's headers, each found out before the window, and within it.
#[test]
fn answers_are_decoded_and_held_to_what_they_were() {
    let ways = ["well", "varying", "drifting", "wrong", "bomb", "unknown"];
    let servers = ways.map(|way| hello(way, "\"h1\"", &format!(", \"encode={way}\"")));
    let section = section(
        "Encoded",
        "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"2x1\"]\nruns = true\n\
         headers = { Accept-Encoding = \"gzip\" }",
    );
    let bed = Bed::new(
        "rounds = 1\nduration = \"100ms\"",
        &[&servers.concat(), &hello("plain", "\"h1\"", ""), &section].map(String::as_str).concat(),
    );
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    bed.assert_nothing_is_left();
    let results = bed.results();
    let record = &results.sections[0];
    assert!(record.runs);
    assert_eq!(
        (record.headers[0].name.as_str(), record.headers[0].value.as_str()),
        ("Accept-Encoding", "gzip")
    );
    let round = |name: &str| {
        &record.cells.iter().find(|cell| cell.server == name).expect("a cell for each server").rounds[0]
    };
    for (name, encoding, body_bytes, repeats, problem) in [
        ("plain", "identity", Some(3), true, None),
        ("well", "gzip", Some(3), true, None),
        ("varying", "gzip", Some(3), false, None),
        ("drifting", "gzip", Some(3), true, None),
        (
            "wrong",
            "gzip",
            Some(3),
            true,
            Some("the body, after gzip is taken off, is not the expected one from byte 1 on"),
        ),
        (
            "bomb",
            "gzip",
            None,
            true,
            Some("the body, after gzip is taken off, is over 64 MiB, which is as far as it is checked"),
        ),
        (
            "unknown",
            "snappy",
            None,
            true,
            Some(
                "the content coding `snappy` is not known (gzip, deflate, br, zstd are): the body cannot be checked",
            ),
        ),
    ] {
        let round = round(name);
        let answer = round.answer.as_ref().unwrap_or_else(|| panic!("{name}: {:?}", round.reason));
        assert_eq!((answer.status, answer.encoding.as_str()), (200, encoding), "{name}");
        assert_eq!((answer.body_bytes, answer.repeats), (body_bytes, repeats), "{name}");
        assert_eq!(answer.problem.as_deref(), problem, "{name}");
        let status = if problem.is_some() { CellStatus::Failed } else { CellStatus::Measured };
        assert_eq!((round.status, round.reason.as_deref()), (status, problem), "{name}");
        let Some(measurement) = &round.measurement else { continue };
        assert_eq!(measurement.sample, None, "the window keeps no response");
        assert_eq!(measurement.requests.failed > 0, name == "drifting", "{name}: {:?}", measurement.errors);
    }
    let report = std::fs::read_to_string(bed.report("md")).expect("a report");
    assert!(report.contains("Every request carries `Accept-Encoding: gzip`."), "{report}");
    assert!(report.contains("varying: gzip, 23 of 3 bytes, differing from answer to answer"), "{report}");
    assert!(report.contains("plain: identity, 3 bytes"), "{report}");
}

#[test]
fn a_server_that_dies_fails_its_cell_and_is_started_again() {
    let bed = Bed::new(
        "rounds = 1\nduration = \"100ms\"",
        &[
            hello("mortal", "\"h1\"", ", \"die-after=50\""),
            hello("good", "\"h1\"", ""),
            section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"2x1\"]"),
        ]
        .concat(),
    );
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    bed.assert_nothing_is_left();
    let results = bed.results();
    assert!(results.complete);
    assert!(statuses(&results, "good").all(|status| status == CellStatus::Measured));
    for cell in results.sections[0].cells.iter().filter(|cell| cell.server == "mortal") {
        let round = &cell.rounds[0];
        assert_eq!(round.status, CellStatus::Failed);
        assert_eq!(round.reason.as_deref(), Some("the server exited with status 7 during the cell"));
        assert!(round.log_tail.iter().any(|line| line.contains("this is the end")), "{:?}", round.log_tail);
    }
    assert_eq!(results.servers[0].starts.len(), 2);
    assert!(bed.report("logs").exists(), "logs stay when something failed");
}

#[test]
fn a_server_that_answers_wrongly_is_never_ready() {
    let bed = Bed::new(
        "rounds = 1\nduration = \"100ms\"\nstart_deadline = \"1s\"",
        &[
            hello("one", "\"h1\"", ""),
            section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\"]"),
        ]
        .concat(),
    );
    let path = bed.scenario();
    let scenario = std::fs::read_to_string(&path).unwrap().replace("body = \"hi\\n\"", "body = \"hello\"");
    std::fs::write(&path, scenario).unwrap();
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    bed.assert_nothing_is_left();
    let results = bed.results();
    let reason = results.sections[0].cells[0].rounds[0].reason.clone().expect("a failure has a reason");
    assert!(reason.starts_with("the server did not start: not ready within 1s"), "{reason}");
    assert!(reason.contains("not as `expect` asks"), "{reason}");
}

/// A server of HTTP/1.1 that is said to speak HTTP/2 as well: in cleartext it answers the preface in its
/// own version, over TLS it agrees on nothing by ALPN.
#[test]
fn a_server_of_http1_never_stands_under_http2() {
    let bed = Bed::new(
        "rounds = 1\nduration = \"100ms\"",
        &[
            hello("old", "\"h1\", \"h1s\", \"h2c\", \"h2\"", ""),
            section("Clear", "kind = \"ratio\"\nprotocols = [\"h2c\", \"h1\"]\ncells = [\"2x1\"]"),
            section("Many", "kind = \"closed-loop\"\nprotocol = \"h2c\"\ncells = [\"1x1\", \"2x10\"]"),
            section(
                "Set-up",
                "kind = \"setup\"\nprotocols = [\"h2\", \"h1s\"]\ncells = [\"2x1\"]\nconnections = 20",
            ),
        ]
        .concat(),
    );
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    bed.assert_nothing_is_left();
    let results = bed.results();
    assert!(results.complete);
    let cells = || results.sections.iter().flat_map(|section| &section.cells);
    assert_eq!(cells().count(), 6);
    for cell in cells() {
        let (s, name) = (&cell.summary, cell.protocol.name());
        if cell.protocol.is_http1() {
            assert_eq!(cell.rounds[0].status, CellStatus::Measured, "{name}: {:?}", s.reasons);
        } else {
            assert_eq!((s.verdict, s.requests_per_second), (Verdict::WrongProtocol, None), "{name}");
            assert!(s.reasons[0].starts_with("no HTTP/2 "), "{name}: {:?}", s.reasons);
        }
    }
    let report = std::fs::read_to_string(bed.report("md")).expect("there is a report");
    assert!(report.contains("FAIL: no HTTP/2 over TLS: asked for h2 by ALPN, "), "{report}");
}

/// A run in its second cell, which lasts ten minutes, and the rest of its standard error.
/// A server on TCP that is said to speak HTTP/3 as well: nobody answers on the UDP port of its number.
#[test]
fn a_server_on_tcp_never_stands_under_http3() {
    let bed = Bed::new(
        "rounds = 1\nduration = \"100ms\"\nstart_deadline = \"2s\"",
        &[
            hello("old", "\"h1s\", \"h3\"", ""),
            section("Many", "kind = \"closed-loop\"\nprotocol = \"h3\"\ncells = [\"1x1\", \"2x10\"]"),
            section(
                "Handshakes",
                "kind = \"handshake\"\nprotocols = [\"h3\", \"h1s\"]\nresumption = [\"off\", \"ticket\"]\n\
                 connections = 20\nwarmup = \"50ms\"",
            ),
        ]
        .concat(),
    );
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    bed.assert_nothing_is_left();
    let results = bed.results();
    assert!(results.complete);
    let cells = || results.sections.iter().flat_map(|section| &section.cells);
    assert_eq!(cells().count(), 2 + 4);
    for cell in cells() {
        let (s, key) = (&cell.summary, cell.key());
        if cell.protocol == Protocol::H3 {
            assert_eq!((s.verdict, s.requests_per_second), (Verdict::Failed, None), "{key}");
            let asked = "the server did not start: not ready within 2s: no HTTP/3: nothing answers QUIC on the UDP port";
            assert!(s.reasons[0].starts_with(asked), "{key}: {:?}", s.reasons);
        } else {
            assert_eq!(cell.rounds[0].status, CellStatus::Measured, "{key}: {:?}", s.reasons);
            let counts = cell.rounds[0].measurement.as_ref().and_then(|m| m.connection.handshakes);
            assert!(counts.is_some_and(|counts| counts.full + counts.resumed > 0), "{key}: {counts:?}");
        }
    }
    let report = std::fs::read_to_string(bed.report("md")).expect("there is a report");
    assert!(report.contains("FAIL: the server did not start: not ready within 2s: no HTTP/3: "), "{report}");
}

fn in_a_long_cell() -> (Bed, Child, BufReader<ChildStderr>) {
    let bed = Bed::new(
        "rounds = 2\nduration = \"100ms\"",
        &[
            hello("one", "\"h1\"", ""),
            section("Short", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\"]"),
            section(
                "Long",
                "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\"]\nduration = \"10m\"",
            ),
        ]
        .concat(),
    );
    let mut child =
        bed.bench().stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bench can be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("[1/4]") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).expect("text"), 0, "it ended before its first cell");
    }
    (bed, child, stderr)
}

fn interrupt(child: &Child) {
    let pid = i32::try_from(child.id()).expect("process ids are small");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("it was not waited for yet");
}

#[test]
fn ctrl_c_saves_what_was_measured_and_says_how_to_go_on() {
    let (bed, child, mut stderr) = in_a_long_cell();
    interrupt(&child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{rest}");
    bed.assert_nothing_is_left();
    assert!(rest.contains("stopped: interrupted by SIGINT; continue with: "), "{rest}");
    assert!(rest.trim_end().ends_with("--resume"), "{rest}");
    let results = bed.results();
    assert!(!results.complete);
    assert_eq!(results.sections[0].cells[0].rounds[0].status, CellStatus::Measured);
    assert!(bed.report("md").exists() && bed.report("journal").exists());
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_no_server() {
    let (bed, mut child, _stderr) = in_a_long_cell();
    interrupt(&child);
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    bed.assert_nothing_is_left();
    let entries = Journal::read(&bed.report("journal")).expect("the journal is whole");
    let rounds = entries.iter().filter(|entry| matches!(entry, Entry::Round { .. })).count();
    assert!(rounds >= 1, "what was measured is kept");
}

#[test]
fn mistakes_end_before_anything_is_written() {
    let bed = Bed::new("rounds = 0", "");
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(!bed.root().join("reports").exists());
}

/// Runs a scenario whose servers only sleep, with a generator that behaves as told.
fn run_with_fake(behaviour: &str) -> (Bed, Result<Outcome, RunError>) {
    let plain = section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"2x1\"]");
    run_fake_on(behaviour, 1, &[idle("idle", "\"h1\""), plain].concat())
}

/// A server that only sleeps.
fn idle(name: &str, protocols: &str) -> String {
    format!(
        "[[server]]\nname = \"{name}\"\nlabel = \"{name}\"\nprotocols = [{protocols}]\n\
         command = [\"sh\", \"-c\", \"echo up; exec sleep 3600\", \"{{port}}\"]\n"
    )
}

fn run_fake_on(behaviour: &str, rounds: u32, servers_and_sections: &str) -> (Bed, Result<Outcome, RunError>) {
    let times = "duration = \"20ms\"\ncell_grace = \"1s\"\nconnect_timeout = \"100ms\"";
    let bed = Bed::new(&format!("rounds = {rounds}\n{times}"), servers_and_sections);
    let machine = bench::sampler::machine();
    let scenario =
        scenario::load(&bed.scenario(), &scenario::read_from_disk, &machine, &Overrides::default())
            .expect("the scenario is right");
    let script = data("fake_generator.py");
    let options = Options {
        out: None,
        resume: false,
        keep_logs: false,
        every_server: false,
        command: vec!["bench".into()],
        environment: bench::sampler::environment(bed.root(), &[], &[]),
        exe: env!("CARGO_BIN_EXE_bench").into(),
        generator: GeneratorCommand {
            program: "python3".into(),
            args: vec![script.into(), behaviour.into()],
        },
    };
    let outcome = bench::run::run(&scenario, options);
    bed.assert_nothing_is_left();
    (bed, outcome)
}

#[test]
fn a_generator_that_misbehaves_costs_its_cells_and_no_more() {
    for (behaviour, reason) in [
        ("silent", "the generator ended without a measurement (exit status: 3: out of luck)"),
        ("garbage", "the generator printed `{\\\"event\\\": \\\"window\\\", \\\"opens` is no event"),
        ("hang", "the generator did not finish within 1.33s"),
        ("endless-line", "the generator printed a line of over 16777216 bytes"),
        ("error", "the generator could not measure: too many open files"),
    ] {
        let (bed, outcome) = run_with_fake(behaviour);
        let outcome = outcome.unwrap_or_else(|error| panic!("{behaviour}: {error}"));
        assert!(outcome.results.complete && !outcome.all_measured(), "{behaviour}");
        assert_eq!(outcome.results, bed.results(), "{behaviour}");
        for cell in &outcome.results.sections[0].cells {
            let round = &cell.rounds[0];
            assert_eq!(round.status, CellStatus::Failed, "{behaviour}");
            let given = round.reason.as_deref().expect("a failure has a reason");
            assert!(given.starts_with(reason), "{behaviour}: {given}");
            assert_eq!(round.log_tail, ["up"], "{behaviour}");
        }
    }
}

#[test]
fn a_generator_that_behaves_is_measured() {
    let (_bed, outcome) = run_with_fake("good");
    let outcome = outcome.expect("it runs");
    assert!(outcome.all_measured());
    assert!(outcome.overhead.is_some());
}

const RATIO: &str = "kind = \"ratio\"\nprotocols = [\"h2c\", \"h1\"]\ncells = [\"1x1\", \"2x1\"]";

#[test]
fn a_ratio_drives_both_protocols_and_leaves_out_who_has_one() {
    let servers = [idle("both", "\"h1\", \"h2c\""), idle("half", "\"h2c\"")].concat();
    let (_bed, outcome) = run_fake_on("good", 2, &[servers, section("Both", RATIO)].concat());
    let outcome = outcome.expect("it runs");
    assert!(outcome.all_measured(), "what a server does not offer is no failure");
    let results = &outcome.results;
    let cells: Vec<_> = results.sections[0]
        .cells
        .iter()
        .map(|cell| (cell.server.as_str(), cell.protocol.name(), cell.connections, cell.summary.verdict))
        .collect();
    let absent = Verdict::Absent;
    // The fake measures no latency and so starves nothing.
    let measured = Verdict::Valid;
    assert_eq!(
        cells,
        [
            ("both", "h2c", 1, measured),
            ("both", "h2c", 2, measured),
            ("both", "h1", 1, measured),
            ("both", "h1", 2, measured),
            ("half", "h2c", 1, absent),
            ("half", "h2c", 2, absent),
            ("half", "h1", 1, absent),
            ("half", "h1", 2, absent),
        ]
    );
    let reason = "half does not offer h1, and a ratio needs both";
    assert!(results.sections[0].cells[4..].iter().all(|cell| cell.summary.reasons == [reason]));
    // Two rounds, a fresh start for each protocol; the half is never started.
    let starts: Vec<usize> = results.servers.iter().map(|server| server.starts.len()).collect();
    assert_eq!(starts, [4, 0]);
    let urls: Vec<&str> = results.sections[0].cells[..4]
        .iter()
        .flat_map(|cell| &cell.rounds)
        .filter_map(|round| round.measurement.as_ref())
        .map(|measurement| measurement.url.as_str())
        .collect();
    assert_eq!(urls.len(), 8);
    assert!(urls.iter().all(|url| *url == urls[0]), "one listener: {urls:?}");
}

#[test]
fn handshakes_are_measured_cell_by_cell_on_one_start_of_each_protocol() {
    let keys = "kind = \"handshake\"\nprotocols = [\"h3\", \"h1s\"]\nresumption = [\"off\", \"ticket\", \"0rtt\"]\n\
                connections = 50\nrequests = 2\nwarmup = \"10ms\"";
    let servers = [idle("both", "\"h1s\", \"h3\""), idle("half", "\"h1s\"")].concat();
    let (_bed, outcome) = run_fake_on("good", 2, &[servers, section("Handshakes", keys)].concat());
    let outcome = outcome.expect("it runs");
    assert!(outcome.all_measured(), "what a server does not offer is no failure");
    let cells = &outcome.results.sections[0].cells;
    let ways = ["h3 1x1/off", "h3 1x1/ticket", "h3 1x1/0rtt", "h1s 1x1/off", "h1s 1x1/ticket"];
    let all: Vec<String> = cells.iter().map(|cell| format!("{} {}", cell.server, cell.key())).collect();
    let each = "2 requests on each connection";
    let expected = ["both", "half"].map(|server| ways.map(|way| format!("{server} {way}, {each}")));
    assert_eq!(all, expected.concat());
    for cell in cells {
        let (s, key) = (&cell.summary, cell.key());
        if cell.server == "half" && cell.protocol == Protocol::H3 {
            assert_eq!(s.reasons, ["half does not offer h3"], "{key}");
            continue;
        }
        assert_eq!((s.verdict, cell.rounds.len()), (Verdict::Valid, 2), "{key}: {:?}", s.reasons);
        for m in cell.rounds.iter().filter_map(|round| round.measurement.as_ref()) {
            assert_eq!((m.resumption, m.requests_per_connection), (cell.resumption, Some(2)), "{key}");
            assert_eq!((m.window.asked_requests, m.connections, m.keepalive), (Some(100), 1, true), "{key}");
        }
        let counts = s.handshake.as_ref().expect("the fake says what kind they were").handshakes;
        let resumed = if cell.resumption == Resumption::Off { 0 } else { 200 };
        assert_eq!((counts.full, counts.resumed), (200 - resumed, resumed), "{key}");
    }
    // Two rounds, a start for each protocol, whose cells follow one another on it.
    let starts: Vec<usize> = outcome.results.servers.iter().map(|server| server.starts.len()).collect();
    assert_eq!(starts, [4, 2]);
}

#[test]
fn a_server_of_another_protocol_fails_at_once_and_never_has_a_figure() {
    let servers = idle("old", "\"h1\", \"h2c\"");
    let (_bed, outcome) = run_fake_on("http1-only", 1, &[servers, section("Both", RATIO)].concat());
    let outcome = outcome.expect("it runs");
    assert!(outcome.results.complete && !outcome.all_measured());
    for cell in &outcome.results.sections[0].cells {
        let s = &cell.summary;
        if cell.protocol == Protocol::H1 {
            assert_eq!(s.verdict, Verdict::Valid, "{:?}", s.reasons);
        } else {
            assert_eq!(cell.rounds[0].status, CellStatus::WrongProtocol);
            assert_eq!((s.verdict, s.requests_per_second), (Verdict::WrongProtocol, None));
            assert_eq!(s.reasons, ["no HTTP/2 in cleartext: the server answered in HTTP/1.1"]);
        }
    }
    let problem = outcome.results.servers[0].starts[0].problem.as_deref();
    assert_eq!(problem, Some("no HTTP/2 in cleartext: the server answered in HTTP/1.1"));
}

#[test]
fn a_generator_that_cannot_work_here_is_one_message() {
    let (bed, outcome) = run_with_fake("refuse");
    let message = "io_uring is refused here; ask the container's owner";
    assert_eq!(outcome.map(|_| ()), Err(RunError(message.into())));
    assert!(!bed.report("json").exists());
}
