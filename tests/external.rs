//! `bench run` with commands beside the load: generators that are shell scripts, probes and gates that pass,
//! fail, hang and are not there.

#[path = "common/bed.rs"]
mod bed;

use std::fs;
use std::process::Output;

use bed::{Bed, hello, section};
use bench::results::{CellRecord, CellStatus, GateOutcome, ProbeRecord, Results, Verdict};

/// A generator that is a shell script and says what a generator says.
fn script(name: &str, protocols: &str, script: &str) -> String {
    format!(
        "[[generator]]\nkind = \"command\"\nname = \"{name}\"\nprotocols = [{protocols}]\n\
         command = [\"sh\", \"-c\", '''{script}''', \"{{dir}}\", \"{{url}}\", \"{{connections}}x{{concurrency}}\", \"{{duration_s}}\"]\n\
         [generator.output]\nok = 'ok: (\\S+)'\nfailed = 'failed: (\\S+)'\nrequests_per_second = 'rate: (\\S+)'\n\
         latency_mean = 'mean: (\\S+)'\np50 = 'p50: (\\S+)'\nunit = \"ms\"\n"
    )
}

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What a run leaves behind in which not all went well.
fn results_of(bed: &Bed, arguments: &[&str]) -> Results {
    let output = bed.bench().args(arguments).output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    bed.assert_nothing_is_left();
    let results = bed.results();
    assert!(results.complete, "{}", text(&output));
    results
}

fn cell<'a>(results: &'a Results, generator: &str, connections: u32) -> &'a CellRecord {
    let index = results.generators.iter().position(|record| record.name == generator).expect("a generator");
    let mut cells = results.sections[0].cells.iter();
    cells
        .find(|cell| cell.generator == u32::try_from(index).ok() && cell.connections == connections)
        .expect("a cell for each generator")
}

#[test]
fn generators_drive_the_same_cells_as_commands_and_leave_nothing_behind() {
    let bed = Bed::new(
        "rounds = 2\nduration = \"200ms\"\nconnect_timeout = \"200ms\"\ncell_grace = \"1s\"",
        &[
            hello("one", "\"h1\"", ""),
            "[[generator]]\nkind = \"builtin\"\nlabel = \"bench\"\n".into(),
            // 2000 in 0.2 s: what it is told is in what it prints.
            script(
                "steady",
                "\"h1\"",
                "echo \"asked $1 $2 $3\"; echo \"locale $LC_ALL\"; printf 'ok: 2,000\\nfailed: 0\\nrate: 10000.5\\nmean: 0.1\\np50: 90us\\n'",
            ),
            // Its own child outlives it and goes on printing; it is told from others by the folder on its line.
            script("leaver", "\"h1\"", "sh -c 'sleep 1000; echo $0' \"$0\" & printf 'ok: 20\\nrate: 100\\n'"),
            script("limping", "\"h1\"", "echo ok: 2000 rate: 10000; echo 'out of luck' >&2; exit 3"),
            script("liar", "\"h1\"", "printf 'ok: 2000\\nrate: 20000\\n'"),
            script("mute", "\"h1\"", "echo done"),
            script("slow", "\"h1\"", "sleep 1000; echo ok: 1"),
            script("other", "\"h2\"", "echo never run"),
            "[[generator]]\nkind = \"oha\"\nprogram = \"no-such-oha\"\n".into(),
            section("Load", "kind = \"generators\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"2x1\"]"),
        ]
        .concat(),
    );
    let results = results_of(&bed, &[]);
    assert_eq!(results.sections[0].cells.len(), 9 * 2);
    assert_eq!(results.servers[0].starts.len(), 2, "one start for each round");
    let builtin = &results.generators[0];
    assert_eq!((builtin.command[0].as_str(), builtin.unavailable.is_none()), ("bench", true));
    assert!(builtin.version.as_deref().is_some_and(|version| version.starts_with("bench ")), "{builtin:?}");

    for connections in [1, 2] {
        for generator in ["builtin", "steady"] {
            let cell = cell(&results, generator, connections);
            assert_eq!(cell.rounds.len(), 2, "{generator}");
            for round in &cell.rounds {
                assert_eq!(round.status, CellStatus::Measured, "{generator}: {:?}", round.reason);
                let run = round.external.as_ref().expect("what it said");
                assert!(round.measurement.is_none() && round.server.is_some());
                assert!(run.cpu_user_us + run.cpu_system_us > 0 && run.wall_s > 0.0, "{run:?}");
                assert_eq!(run.asked_s, 0.2);
            }
        }
        let steady = cell(&results, "steady", connections);
        let run = steady.rounds[0].external.as_ref().unwrap();
        assert!(run.output.contains(&format!(" {connections}x1 0.2\n")), "{}", run.output);
        assert!(run.output.contains("asked http://localhost:"), "{}", run.output);
        assert!(run.output.contains("locale C\n"), "{}", run.output);
        assert_eq!((run.ok, run.failed, run.requests_per_second), (Some(2000), Some(0), Some(10_000.5)));
        assert_eq!((run.latency_mean_us, run.latency_us.get("50")), (Some(100.0), Some(&90.0)));
        let summary = &steady.summary;
        assert_eq!((summary.requests_per_second, summary.rounds_measured), (Some(10_000.5), 2));
        let cpu = summary.generator_cpu_us_per_request.expect("its CPU time");
        assert!(cpu > 0.0 && cpu.is_finite());
    }
    // 1 in flight by its own account where 2 are offered.
    assert_eq!(cell(&results, "steady", 2).summary.verdicts, [Verdict::Starved]);
    assert!(cell(&results, "leaver", 1).rounds.iter().all(|round| round.status == CellStatus::Measured));
    let reason = |generator: &str| {
        let cell = cell(&results, generator, 1);
        (cell.summary.verdict, cell.summary.reasons.join("; "))
    };
    assert_eq!(reason("limping"), (Verdict::Failed, "limping exited with status 3".into()));
    let log = &cell(&results, "limping", 1).rounds[0].log_tail;
    assert!(log.iter().any(|line| line.contains("out of luck")), "{log:?}");
    assert_eq!(reason("mute"), (Verdict::Failed, "what mute printed has no count of ok responses".into()));
    assert_eq!(reason("slow"), (Verdict::Failed, "slow took longer than 1.6s".into()));
    let (verdict, why) = reason("liar");
    assert_eq!(verdict, Verdict::Failed);
    assert!(
        why.contains("it counts 2\u{202f}000 ok responses, and its rate of 20\u{202f}000 makes"),
        "{why}"
    );
    assert_eq!(reason("other"), (Verdict::Absent, "other does not speak h1".into()));
    let absent = "`no-such-oha` is not installed: it is not on PATH";
    assert_eq!(reason("oha"), (Verdict::Absent, absent.into()));

    let report = fs::read_to_string(bed.report("md")).expect("there is a report");
    assert!(report.contains("**generator CPU µs/req**"), "{report}");
    assert!(report.contains("**limping**, every cell: FAIL: limping exited with status 3"), "{report}");
}

/// Generators check no answers, so what the warm-up before each of them met is held against the cell.
#[test]
fn a_server_with_wrong_bodies_is_found_before_a_generator_is_run() {
    let bed = Bed::new(
        "rounds = 1\nduration = \"200ms\"",
        &[
            // Ready once, then never right again.
            hello("one", "\"h1\"", ", \"wrong-after=1\""),
            script("content", "\"h1\"", "printf 'ok: 2000\\nrate: 10000\\n'"),
            section("Load", "kind = \"generators\"\nprotocol = \"h1\"\ncells = [\"1x1\"]"),
        ]
        .concat(),
    );
    let results = results_of(&bed, &["--warmup", "1s"]);
    let cell = cell(&results, "content", 1);
    let reason = cell.rounds[0].reason.as_deref().unwrap_or_default();
    assert!(
        reason.starts_with("the warm-up before it failed: no response in the window was as expected"),
        "{reason}"
    );
    assert!(cell.rounds[0].external.is_none() && cell.summary.verdict == Verdict::Failed, "{cell:?}");
}

/// A script that counts its runs in a file, so that a test sees how often it ran.
fn counting(bed: &Bed, name: &str) -> usize {
    fs::read_to_string(bed.root().join("scenarios").join(name)).map_or(0, |text| text.lines().count())
}

fn probe<'a>(results: &'a Results, name: &str) -> &'a ProbeRecord {
    results.probes.iter().find(|probe| probe.name == name).expect("the probe")
}

#[test]
fn probes_and_gates_run_once_and_a_resumed_run_makes_up_for_those_that_failed() {
    let probe_of = |name: &str, script: &str, more: &str| {
        format!(
            "[[probe]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", '''{script}''', \"{{dir}}\"]\n{more}\n\
             figures = [{{ name = \"signs\", unit = \"1/s\", pattern = 'signs (\\S+)' }}, {{ name = \"none\", pattern = '(nothing)' }}]\n"
        )
    };
    let gate = |script: &str, more: &str| {
        format!("gate = {{ command = [\"sh\", \"-c\", \"{script}\", \"{{dir}}\"]{more} }}\n")
    };
    let bed = Bed::new(
        "rounds = 1\nduration = \"100ms\"",
        &[
            probe_of(
                "good",
                "echo once >> \"$0/good\"; echo signs 1,234.5",
                "version = [\"echo\", \"sign 1.0\"]",
            ),
            probe_of(
                "bad",
                "echo once >> \"$0/bad\"; test -e \"$0/mended\" || { echo broken; exit 4; }; echo signs 7",
                "",
            ),
            probe_of("gone", "echo signs 1", "requires = [\"no-such-tool\"]"),
            probe_of("hangs", "echo signs 1; test -e \"$0/mended\" || sleep 1000", "deadline = \"300ms\""),
            hello("passes", "\"h1\", \"h1s\"", ""),
            gate("echo once >> $0/gate; test {port} -gt 0", ", protocol = 'h1s', env = { P = '{port}' }"),
            hello("fails", "\"h1\"", ""),
            gate("echo not my protocol; exit 1", ""),
            hello("unknown", "\"h1\"", ""),
            gate("exit 1", ", requires = ['no-such-h2spec']"),
            section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\"]"),
        ]
        .concat(),
    );
    let results = results_of(&bed, &[]);
    let good = probe(&results, "good");
    assert_eq!((good.status, good.version.as_deref()), (CellStatus::Measured, Some("sign 1.0")));
    assert_eq!((good.figures[0].value, good.figures[1].value), (Some(1234.5), None));
    let bad = probe(&results, "bad");
    assert_eq!((bad.status, bad.reason.as_deref()), (CellStatus::Failed, Some("it exited with status 4")));
    assert_eq!((bad.figures[0].value, &bad.log_tail[..]), (None, &["broken".to_owned()][..]));
    let hangs = probe(&results, "hangs");
    assert_eq!(
        (hangs.status, hangs.reason.as_deref()),
        (CellStatus::Failed, Some("it took longer than 300ms"))
    );
    assert_eq!(hangs.figures[0].value, None, "what a probe says that failed is no figure");
    assert_eq!(probe(&results, "gone").status, CellStatus::Absent);
    let gates: Vec<_> = results.servers.iter().map(|server| server.gate.as_ref().expect("a gate")).collect();
    let outcomes: Vec<_> = gates.iter().map(|gate| gate.outcome).collect();
    assert_eq!(outcomes, [GateOutcome::Passed, GateOutcome::Failed, GateOutcome::NotRun]);
    assert_eq!(gates[1].log_tail, ["not my protocol"]);
    assert_eq!(gates[2].reason.as_deref(), Some("`no-such-h2spec` is not installed: it is not on PATH"));
    assert!(!gates[0].command.iter().any(|word| word.contains("{port}")), "{:?}", gates[0].command);

    let report = fs::read_to_string(bed.report("md")).expect("there is a report");
    for line in
        ["| **req/s**", "fails ✗", "✗ gate failed: fails: it exited with status 1.", "**unknown**: not run: "]
    {
        assert!(report.contains(line), "{line}: {report}");
    }
    let rows = report.lines().filter_map(|line| line.split_once("| fails ✗"));
    let figures: Vec<&str> = rows.map(|(_, figures)| figures).collect();
    assert!(!figures.is_empty() && figures.iter().all(|row| !row.contains("**")), "never best: {report}");

    fs::write(bed.root().join("scenarios/mended"), "").expect("a file");
    // The gate that failed has: nothing but another run undoes it.
    let results = results_of(&bed, &["--resume"]);
    assert_eq!(probe(&results, "bad").figures[0].value, Some(7.0));
    assert_eq!(probe(&results, "hangs").status, CellStatus::Measured);
    assert_eq!(probe(&results, "good").figures[0].value, Some(1234.5));
    assert_eq!((counting(&bed, "good"), counting(&bed, "bad"), counting(&bed, "gate")), (1, 2, 1));
    let outcomes: Vec<_> =
        results.servers.iter().map(|server| server.gate.as_ref().map(|gate| gate.outcome)).collect();
    assert_eq!(outcomes[..2], [Some(GateOutcome::Passed), Some(GateOutcome::Failed)]);
}
