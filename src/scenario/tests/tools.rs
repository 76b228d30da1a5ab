//! Owns the tests of `[[generator]]`, `[[probe]]`, gates, and sections of kind `generators`.

use super::*;
use crate::results::GeneratorKind;
use crate::scenario::LatencyUnit;

const SECTION: &str =
    "[[section]]\ntitle = \"g\"\nkind = \"generators\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"8x1\"]\n";

const COMMAND: &str = "[[generator]]\nkind = \"command\"\nname = \"ab\"\nlabel = \"ApacheBench\"\n\
    protocols = [\"h1\"]\ncommand = [\"./ab\", \"-c\", \"{connections}\", \"{ raw }\", \"{url}\"]\nversion = [\"ab\", \"-V\"]\n\
    [generator.output]\nok = 'ok (\\d+)'\nrequests_per_second = 'rate (\\S+)'\np50 = '50% (\\S+)'\np99_9 = '99.9% (\\S+)'\n\
    unit = \"ms\"\n";

const PROBE: &str = "[[probe]]\nname = \"p\"\ncommand = [\"{dir}/p\"]\nenv = { A = \"b\" }\ndeadline = \"5s\"\n\
    figures = [{ name = \"signs\", unit = \"1/s\", pattern = 'a(?:b)(\\d+)' }]\n";

/// A scenario of a server that speaks HTTP/1.1, with these tables.
fn with(tables: &str) -> String {
    text("", &[server("a", "[\"h1\", \"h1s\"]"), tables.to_owned()].concat(), SECTION)
}

#[test]
fn generators_have_defaults_and_each_cell_is_there_for_each() {
    let scenario = checked(&with(&format!(
        "[[generator]]\nkind = \"builtin\"\n[[generator]]\nkind = \"wrk\"\nlabel = \"WRK\"\nprogram = \"/opt/wrk\"\n\
         args = [\"-H\", \"A: {{threads}}\"]\n{COMMAND}"
    )));
    let [builtin, wrk, ab] = &scenario.generators[..] else { panic!("three generators") };
    assert_eq!((builtin.name.as_str(), &builtin.protocols[..]), ("builtin", &Protocol::ALL[..]));
    assert_eq!((builtin.requires.len(), builtin.version[0].as_str()), (0, "{bench}"));
    assert_eq!((wrk.label.as_str(), &wrk.requires), ("WRK", &vec!["/opt/wrk".to_owned()]));
    assert_eq!(wrk.version, ["/opt/wrk", "-v"]);
    assert_eq!(
        wrk.command.join(" "),
        "/opt/wrk --latency -c {connections} -t {threads} -d {duration_s}s -H A: {threads} {url}"
    );
    assert_eq!((ab.kind, ab.dir.as_str()), (GeneratorKind::Command, "/r/scenarios"));
    assert_eq!(ab.requires, ["./ab"]);
    let output = ab.output.as_ref().expect("its patterns");
    assert_eq!(output.unit, LatencyUnit::Millis);
    let percentiles: Vec<_> =
        output.percentiles.iter().map(|(name, pattern)| (*name, pattern.as_str())).collect();
    assert_eq!(percentiles, [("50", "50% (\\S+)"), ("99.9", "99.9% (\\S+)")]);
    assert_eq!(output.ok.find("failed 3, ok 12, ok 13"), Some("12"));

    let cells: Vec<_> =
        scenario.sections[0].cells.iter().map(|cell| (cell.connections, cell.generator)).collect();
    let of = |c: u32| [0, 1, 2].map(|generator| (c, Some(generator)));
    assert_eq!(cells, [of(1), of(8)].concat());
    assert_eq!(scenario.estimate().cells, 6);
    assert_eq!(scenario.estimate().starts, 3, "one for each round");
}

#[test]
fn a_generator_that_cannot_drive_a_cell_says_why() {
    let scenario = checked(&with(
        "[[generator]]\nkind = \"wrk\"\n[[generator]]\nkind = \"oha\"\nprotocols = [\"h2\"]\n[[generator]]\nkind = \"shb\"\n",
    ));
    let obstacles = |scenario: &Scenario| {
        let section = &scenario.sections[0];
        let of = |generator| {
            let cell = Cell { generator: Some(generator), ..Cell::new(1, 1) };
            scenario.obstacle(section, &scenario.servers[0], Protocol::H1, cell)
        };
        [of(0), of(1), of(2)]
    };
    assert_eq!(obstacles(&scenario), [None, Some("oha does not speak h1".into()), None]);
    assert_eq!(scenario.estimate().cells, 4);
    let short = Overrides { duration: Some(Span::from_millis(500)), ..Overrides::default() };
    let text = with(
        "[[generator]]\nkind = \"wrk\"\n[[generator]]\nkind = \"shb\"\n[[generator]]\nkind = \"h2load\"\n",
    );
    let scenario = check_text(&text, &short).unwrap().scenario;
    assert_eq!(obstacles(&scenario), [Some("wrk runs for whole seconds only".into()), None, None]);
}

#[test]
fn generators_are_narrowed_with_their_cells() {
    let text = with(
        "[[generator]]\nkind = \"builtin\"\nlabel = \"bench\"\n[[generator]]\nkind = \"wrk\"\n[[generator]]\nkind = \"shb\"\n",
    );
    let narrowed = |names: &[&str]| {
        let generators = names.iter().map(|name| (*name).to_owned()).collect();
        check_text(&text, &Overrides { generators, ..Overrides::default() })
    };
    let scenario = narrowed(&["shb", "Bench"]).unwrap().scenario;
    let names: Vec<_> = scenario.generators.iter().map(|generator| generator.name.as_str()).collect();
    assert_eq!(names, ["builtin", "shb"]);
    let cells: Vec<_> = scenario.sections[0].cells.iter().map(|cell| cell.generator).collect();
    assert_eq!(cells, [Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(scenario.overrides, ["generators = builtin, shb (scenario: builtin, wrk, shb)"]);
    assert_eq!(
        narrowed(&["wkr"]).unwrap_err().to_string(),
        "--generator wkr: not in the scenario; did you mean `wrk`? it has builtin, wrk, shb"
    );
    let plain = Overrides { generators: vec!["wrk".into()], ..Overrides::default() };
    let error = check_text(&super::text("", &server("a", "[\"h1\"]"), ""), &plain).unwrap_err().to_string();
    assert_eq!(error, "--generator wrk: the scenario compares no generators; leave it out");
}

#[test]
fn probes_and_gates_are_read() {
    let gate = "gate = { command = [\"h2spec\", \"-p\", \"{port}\"], requires = [\"h2spec\"], env = { P = \"{https_port}\" } }\n";
    let scenario = checked(&text("", &format!("{}{gate}{PROBE}", server("a", "[\"h1\", \"h1s\"]")), ""));
    let gate = scenario.servers[0].gate.as_ref().expect("a gate");
    assert_eq!((gate.protocol, gate.deadline, gate.requires.len()), (Protocol::H1, Span::from_secs(60), 1));
    let probe = &scenario.probes[0];
    assert_eq!(
        (probe.label.as_str(), probe.deadline, probe.dir.as_str()),
        ("p", Span::from_secs(5), "/r/scenarios")
    );
    assert_eq!(probe.figures[0].pattern.find("xab12"), Some("12"));
    assert_eq!(scenario.estimate().tools, Span::from_secs(65));
}

/// The message about a scenario with a mistake, without its file and line.
fn mistake(text: &str) -> String {
    let error = check_text(text, &Overrides::default()).map(|_| ()).expect_err(text).to_string();
    error.split_once(": ").expect("a place and a message").1.to_owned()
}

#[test]
fn mistakes_of_generators_say_what_to_do() {
    let command = |from: &str, to: &str| with(&COMMAND.replacen(from, to, 1));
    for (text, message) in [
        (
            with("[[generator]]\nname = \"x\"\n"),
            "generator[1].kind: missing; write one of builtin, shb, h2load, wrk, oha, command",
        ),
        (
            with("[[generator]]\nkind = \"wkr\"\n"),
            "generator[1].kind: unknown kind of generator `wkr`; did you mean `wrk`?",
        ),
        (
            with("[[generator]]\nkind = \"wrk\"\nprotocols = [\"h2\"]\n"),
            "generator[1].protocols[1]: wrk cannot speak h2; leave it out",
        ),
        (
            with("[[generator]]\nkind = \"wrk\"\ncommand = [\"x\"]\n"),
            "generator[1].command: belongs to `kind = \"command\"`; how wrk is called and read is known, add words with `args`",
        ),
        (
            with("[[generator]]\nkind = \"wrk\"\nargs = [\"{conections}\"]\n"),
            "generator[1].args[1]: unknown placeholder {conections}; did you mean `connections`?",
        ),
        (
            with("[[generator]]\nkind = \"wrk\"\nname = \"a b\"\n"),
            "generator[1].name: `a b` cannot name a generator; use letters, digits, `-`, `_` and `.`, and put the rest in `label`",
        ),
        (
            with("[[generator]]\nkind = \"wrk\"\n[[generator]]\nkind = \"wrk\"\n"),
            "generator[2]: there is a generator `wrk`, labelled \"wrk\", already; give this one another `name` and `label`",
        ),
        (
            with("[[generator]]\nkind = \"wrk\"\nprogramm = \"x\"\n"),
            "generator[1].programm: unknown key; did you mean `program`?",
        ),
        (command("name = \"ab\"\n", ""), "generator[1].name: missing; name the generator"),
        (
            command("protocols = [\"h1\"]\n", ""),
            "generator[1].protocols: missing; list what it can drive of h1, h1s, h2c, h2, h3",
        ),
        (
            command("command = ", "args = "),
            "generator[1].args: `args` belongs to the known kinds; write it in `command`",
        ),
        (
            command("ok = ", "p75 = "),
            "generator[1].output.ok: missing; say where the number of ok responses stands in the output, like `'ok: (\\S+)'`",
        ),
        (
            command("'ok (\\d+)'", "'ok (\\d+) (x)'"),
            "generator[1].output.ok: 2 groups where the one is the figure; write `( )` around it, and `(?: )` around others",
        ),
        (
            command("'ok (\\d+)'", "'ok \\d+'"),
            "generator[1].output.ok: 0 groups where the one is the figure; write `( )` around it, and `(?: )` around others",
        ),
        (
            command("'ok (\\d+)'", "'ok (\\d+'"),
            "generator[1].output.ok: not a regular expression: unclosed group; correct it, see docs.rs/regex",
        ),
        (
            command("unit = \"ms\"", "unit = \"min\""),
            "generator[1].output.unit: unknown unit `min`; write one of us, ms, s",
        ),
    ] {
        assert_eq!(mistake(&text), message);
    }
}

#[test]
fn mistakes_of_their_sections_say_what_to_do() {
    let section = |from: &str, to: &str| with("[[generator]]\nkind = \"wrk\"\n").replacen(from, to, 1);
    for (text, message) in [
        (with(""), "section[1].kind: compares generators, and the scenario names none; add [[generator]]"),
        (
            section("cells = [", "requests = 100\ncells = ["),
            "section[1].requests: cannot be told to every generator; a generators section has `cells`, `duration` and `warmup`",
        ),
        (
            section("protocol = \"h1\"", "protocols = [\"h1\", \"h1s\"]"),
            "section[1].protocols[2]: such a section is a table of one protocol; write another [[section]] for the second, or `kind = \"ratio\"` to set them beside each other",
        ),
        (
            section("\"8x1\"", "\"8x2\""),
            "section[1].cells[2]: 8x2 asks for 2 requests at once on a connection, HTTP/1.1 has one; write `16x1`",
        ),
        (
            text("", &format!("{}[[generator]]\nkind = \"wrk\"\n", server("a", "[\"h1\"]")), ""),
            "generator[1]: no section compares generators; write one with `kind = \"generators\"`, or leave this out",
        ),
    ] {
        assert_eq!(mistake(&text), message);
    }
}

#[test]
fn mistakes_of_probes_and_gates_say_what_to_do() {
    let probe = |from: &str, to: &str| {
        with(&format!("[[generator]]\nkind = \"wrk\"\n{}", PROBE.replacen(from, to, 1)))
    };
    let gate = |gate: &str| text("", &format!("{}gate = {{ {gate} }}\n", server("a", "[\"h1\"]")), "");
    for (text, message) in [
        (probe("name = \"p\"\n", ""), "probe[1].name: missing; name the probe"),
        (probe("command = [\"{dir}/p\"]\n", ""), "probe[1].command: missing; say what is run, word by word"),
        (probe("{dir}/p", "{port}"), "probe[1].command[1]: {port} has no value here; this key can use dir"),
        (probe("name = \"signs\", ", ""), "probe[1].figures[1].name: missing; name the figure"),
        (
            probe("(\\d+)", "\\d+"),
            "probe[1].figures[1].pattern: 0 groups where the one is the figure; write `( )` around it, and `(?: )` around others",
        ),
        (
            probe("deadline = \"5s\"", "deadline = \"0s\""),
            "probe[1].deadline: no time at all; write a duration above zero, like `10s`",
        ),
        (
            with(&format!("[[generator]]\nkind = \"wrk\"\n{PROBE}{PROBE}")),
            "probe[2].name: there is a probe `p` already; give this one another name",
        ),
        (gate("requires = [\"x\"]"), "server[1].gate.command: missing; say what is to succeed, word by word"),
        (
            gate("command = [\"x\"], protocol = \"h3\""),
            "server[1].gate.protocol: the server does not offer h3; write one of h1",
        ),
        (
            gate("command = [\"x\", \"{prot}\"]"),
            "server[1].gate.command[2]: unknown placeholder {prot}; did you mean `port`?",
        ),
        (gate("command = []"), "server[1].gate.command: an empty list; name a program, or leave the key out"),
    ] {
        assert_eq!(mistake(&text), message);
    }
}
