//! Owns `bench check`: its arguments and what it prints.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::Exit;
use super::narrow::Narrow;
use crate::results::{Protocol, SectionKind};
use crate::scenario::{
    self, Checked, Expected, GeneratorSpec, Machine, ProbeSpec, Scenario, Section, SectionLimit, ServerSpec,
    format_cpus,
};
use crate::time::Span;
use crate::units::format_duration;
use crate::{sampler, server};

/// Validate a scenario and print its plan: servers, pins, sections, time. Starts nothing
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bench check scenarios/http.toml
  bench check scenarios/http.toml --server nginx --cell 50x1 --rounds 1
  bench check scenarios/http.toml --json | jq .time.total_s

Exit codes: 0 the scenario can be run; 2 it cannot, the message says where and why.")]
pub struct Args {
    /// The scenario file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    narrow: Narrow,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    let machine = sampler::machine();
    let checked = args.narrow.overrides().and_then(|overrides| {
        scenario::check(&args.scenario, &scenario::read_from_disk, &machine, &overrides)
            .map_err(|error| error.to_string())
    });
    let checked = match checked {
        Ok(checked) => checked,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            return Exit::CouldNot;
        }
    };
    let missing = |server: &ServerSpec| server::requirements(server).err().map(|error| error.reason);
    let plan = Plan::new(&checked, &machine, missing);
    let text = if args.json {
        serde_json::to_string_pretty(&plan).expect("a plan has string keys only") + "\n"
    } else {
        plan.to_text()
    };
    // A reader that has seen enough, like `head`, closes the pipe; the scenario is right all the same.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Exit::Measured
}

/// What will be done, in the words it is printed in.
#[derive(Serialize)]
struct Plan {
    scenario: String,
    title: String,
    report: String,
    template: String,
    overrides: Vec<String>,
    warnings: Vec<String>,
    servers: Vec<PlanServer>,
    generators: Vec<PlanGenerator>,
    probes: Vec<PlanProbe>,
    pin: PlanPin,
    expect: String,
    rounds: u32,
    sections: Vec<PlanSection>,
    time: PlanTime,
}

#[derive(Serialize)]
struct PlanServer {
    name: String,
    label: String,
    protocols: Vec<&'static str>,
    command: Vec<String>,
    build: Vec<String>,
    dir: String,
    /// Fixed, or `null` when allocated at the start.
    port: Option<u16>,
    tls_port: Option<u16>,
    /// What is to succeed before it may be best.
    gate: Option<PlanGate>,
    /// Worker threads of its own, or `null` for those of all servers.
    workers: Option<u32>,
    /// Why its cells will be n/a.
    missing: Option<String>,
}

#[derive(Serialize)]
struct PlanGate {
    command: Vec<String>,
    protocol: &'static str,
    deadline_s: f64,
    /// Why it will not be run.
    missing: Option<String>,
}

#[derive(Serialize)]
struct PlanGenerator {
    name: String,
    label: String,
    protocols: Vec<&'static str>,
    command: Vec<String>,
    /// Why its cells will be n/a.
    missing: Option<String>,
}

#[derive(Serialize)]
struct PlanProbe {
    name: String,
    label: String,
    command: Vec<String>,
    figures: Vec<String>,
    deadline_s: f64,
    /// Why it will be n/a.
    missing: Option<String>,
}

#[derive(Serialize)]
struct PlanPin {
    servers: Vec<u32>,
    generator: Vec<u32>,
    why: String,
    workers: u32,
    generator_threads: u32,
    ephemeral_ports: (u16, u16),
}

#[derive(Serialize)]
struct PlanSection {
    number: usize,
    title: String,
    kind: &'static str,
    protocols: Vec<&'static str>,
    cells: Vec<String>,
    warmup_s: f64,
    duration_s: Option<f64>,
    requests: Option<u64>,
    /// Those of each connection of a handshake section; `null` in others.
    requests_per_connection: Option<u32>,
    /// Header fields of its requests by name.
    headers: BTreeMap<String, String>,
    /// Whether the report shows every round.
    runs: bool,
    #[serde(skip)]
    window: String,
}

/// Of the servers that can be started here.
#[derive(Serialize)]
struct PlanTime {
    cells: u64,
    windows: u64,
    windows_by_count: u64,
    starts: u64,
    load_s: f64,
    drains_at_most_s: f64,
    probes_and_gates_at_most_s: f64,
    total_s: f64,
}

impl Plan {
    /// The plan on `machine`; `missing` says why a server cannot be started there.
    fn new(checked: &Checked, machine: &Machine, missing: impl Fn(&ServerSpec) -> Option<String>) -> Self {
        let scenario = &checked.scenario;
        let absent = |generator: &GeneratorSpec| missing_of(&generator.requires, &generator.dir, None);
        let mut here = scenario.clone();
        here.servers.retain(|server| missing(server).is_none());
        here.probes.retain(|probe| missing_of(&probe.requires, &probe.dir, probe.env.get("PATH")).is_none());
        for section in &mut here.sections {
            section.cells.retain(|cell| {
                let generator = cell.generator.map(|index| &scenario.generators[index]);
                generator.is_none_or(|generator| absent(generator).is_none())
            });
        }
        let estimate = here.estimate();
        let section = |(index, section)| PlanSection::new(index + 1, section);
        Self {
            scenario: scenario.path.clone(),
            title: scenario.title.clone(),
            report: scenario.report.clone(),
            template: scenario.template.clone(),
            overrides: scenario.overrides.clone(),
            warnings: checked.warnings.clone(),
            servers: scenario.servers.iter().map(|spec| PlanServer::new(spec, missing(spec))).collect(),
            generators: scenario
                .generators
                .iter()
                .map(|spec| PlanGenerator::new(spec, absent(spec)))
                .collect(),
            probes: scenario.probes.iter().map(PlanProbe::new).collect(),
            pin: PlanPin::new(scenario, checked.pin_reason.clone(), machine),
            expect: expectation(&scenario.expect),
            rounds: scenario.run.rounds,
            sections: scenario.sections.iter().enumerate().map(section).collect(),
            time: PlanTime {
                cells: estimate.cells,
                windows: estimate.windows,
                windows_by_count: estimate.counted,
                starts: estimate.starts,
                load_s: estimate.load.as_secs_f64(),
                drains_at_most_s: estimate.drains.as_secs_f64(),
                probes_and_gates_at_most_s: estimate.tools.as_secs_f64(),
                total_s: estimate.total().as_secs_f64(),
            },
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{} ({})\n{:<11}{}.json and {}.md, template {}\n{:<11}{}\n",
            self.title,
            self.scenario,
            "report",
            self.report,
            self.report,
            self.template,
            "expect",
            self.expect
        );
        text += "\nservers\n";
        text += &columns(self.servers.iter().map(PlanServer::row));
        for server in &self.servers {
            if let Some(missing) = &server.missing {
                text += &format!("  {} will be n/a: {missing}\n", server.name);
            }
        }
        text += &self.tools();
        text += &format!("\npins       {}\n", self.pin.why);
        text += &columns(self.pin.rows());
        text += "\nsections\n";
        text += &columns(self.sections.iter().map(PlanSection::row));
        text += &format!("\ntime\n  {}\n", self.time.sentence(self.rounds));
        for (heading, lines) in [("overrides", &self.overrides), ("warnings", &self.warnings)] {
            if !lines.is_empty() {
                text += &format!("\n{heading}\n  {}\n", lines.join("\n  "));
            }
        }
        text
    }
}

impl Plan {
    /// Gates, generators and probes; nothing without any.
    fn tools(&self) -> String {
        let gates = self.servers.iter().filter_map(|server| Some((server, server.gate.as_ref()?)));
        let gates = gates.map(|(server, gate)| {
            let row = vec![
                server.name.clone(),
                format!("over {}", gate.protocol),
                format!("at most {}", rounded(gate.deadline_s)),
                shell(&gate.command),
            ];
            (row, gate.missing.as_ref().map(|missing| format!("{} will not be run: {missing}", server.name)))
        });
        let generators = self.generators.iter().map(|generator| {
            let row = vec![
                generator.name.clone(),
                generator.label.clone(),
                generator.protocols.join(", "),
                shell(&generator.command),
            ];
            (row, will_be_absent(&generator.name, &generator.missing))
        });
        let probes = self.probes.iter().map(|probe| {
            let row = vec![
                probe.name.clone(),
                probe.figures.join(", "),
                format!("at most {}", rounded(probe.deadline_s)),
                shell(&probe.command),
            ];
            (row, will_be_absent(&probe.name, &probe.missing))
        });
        let mut text = String::new();
        for (heading, lines) in [
            ("gates", gates.collect()),
            ("generators", generators.collect()),
            ("probes", probes.collect::<Vec<_>>()),
        ] {
            let (rows, missing): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
            if !rows.is_empty() {
                text += &format!("\n{heading}\n{}", columns(rows));
                text.extend(missing.into_iter().flatten().map(|line| format!("  {line}\n")));
            }
        }
        text
    }
}

fn will_be_absent(name: &str, missing: &Option<String>) -> Option<String> {
    missing.as_ref().map(|missing| format!("{name} will be n/a: {missing}"))
}

/// Why a command cannot be run here, when a program it needs is not installed.
fn missing_of(requires: &[String], dir: &str, path: Option<&String>) -> Option<String> {
    server::installed(requires, dir, path).err().map(|error| error.reason)
}

impl PlanGenerator {
    fn new(spec: &GeneratorSpec, missing: Option<String>) -> Self {
        Self {
            name: spec.name.clone(),
            label: spec.label.clone(),
            protocols: spec.protocols.iter().copied().map(Protocol::name).collect(),
            command: spec.command.clone(),
            missing,
        }
    }
}

impl PlanProbe {
    fn new(spec: &ProbeSpec) -> Self {
        Self {
            name: spec.name.clone(),
            label: spec.label.clone(),
            command: spec.command.clone(),
            figures: spec.figures.iter().map(|figure| figure.name.clone()).collect(),
            deadline_s: spec.deadline.as_secs_f64(),
            missing: missing_of(&spec.requires, &spec.dir, spec.env.get("PATH")),
        }
    }
}

impl PlanServer {
    fn new(spec: &ServerSpec, missing: Option<String>) -> Self {
        Self {
            name: spec.name.clone(),
            label: spec.label.clone(),
            protocols: spec.protocols.iter().copied().map(Protocol::name).collect(),
            command: spec.command.clone(),
            build: spec.build.clone(),
            dir: spec.dir.clone(),
            port: spec.port,
            tls_port: spec.tls_port,
            gate: spec.gate.as_ref().map(|gate| PlanGate {
                command: gate.command.clone(),
                protocol: gate.protocol.name(),
                deadline_s: gate.deadline.as_secs_f64(),
                missing: missing_of(&gate.requires, &spec.dir, gate.env.get("PATH")),
            }),
            workers: spec.workers,
            missing,
        }
    }

    fn row(&self) -> Vec<String> {
        let ports = match (self.port, self.tls_port) {
            (None, None) => "ports allocated".to_owned(),
            (Some(port), None) => format!("port {port}, TLS allocated"),
            (None, Some(tls)) => format!("port allocated, TLS {tls}"),
            (Some(port), Some(tls)) => format!("port {port}, TLS {tls}"),
        };
        let workers = match self.workers {
            None => String::new(),
            Some(1) => ", 1 worker thread".to_owned(),
            Some(workers) => format!(", {workers} worker threads"),
        };
        let how = ports + &workers;
        vec![self.name.clone(), self.label.clone(), self.protocols.join(", "), how, shell(&self.command)]
    }
}

impl PlanPin {
    fn new(scenario: &Scenario, why: String, machine: &Machine) -> Self {
        Self {
            servers: scenario.pin.servers.clone(),
            generator: scenario.pin.generator.clone(),
            why,
            workers: scenario.pin.workers,
            generator_threads: scenario.pin.generator_threads,
            ephemeral_ports: machine.ephemeral_ports,
        }
    }

    fn rows(&self) -> [Vec<String>; 3] {
        let side = |name: &str, cpus: &[u32], threads: u32, what: &str| {
            let cpus = if cpus.is_empty() { "unpinned".into() } else { format!("CPU {}", format_cpus(cpus)) };
            vec![name.into(), cpus, format!("{threads} {what}{}", if threads == 1 { "" } else { "s" })]
        };
        let (first, last) = self.ephemeral_ports;
        [
            side("servers", &self.servers, self.workers, "worker thread"),
            side("generator", &self.generator, self.generator_threads, "thread"),
            vec!["ports".into(), "allocated".into(), format!("outside the ephemeral range {first}-{last}")],
        ]
    }
}

impl PlanSection {
    fn new(number: usize, section: &Section) -> Self {
        let (duration, requests) = match section.limit {
            SectionLimit::Duration(duration) => (Some(duration), None),
            SectionLimit::Requests(count) => (None, Some(count)),
        };
        let (kind, counted) = match section.kind {
            SectionKind::ClosedLoop => ("closed-loop", "requests"),
            SectionKind::Setup => ("setup", "connections"),
            SectionKind::Ratio => ("ratio", "requests"),
            SectionKind::Handshake => ("handshake", "requests"),
            SectionKind::Generators => ("generators", "requests"),
        };
        let mut cells: Vec<String> = section.cells.iter().map(ToString::to_string).collect();
        // Each of them is there for every generator.
        cells.dedup();
        let requests_per_connection = section.cells.iter().find_map(|cell| cell.requests_per_connection);
        let window = match (section.limit, requests_per_connection) {
            (SectionLimit::Duration(duration), _) => format_duration(duration),
            (SectionLimit::Requests(count), None) => format!("{count} {counted}"),
            (SectionLimit::Requests(count), Some(1)) => format!("{count} connections"),
            (SectionLimit::Requests(count), Some(each)) => {
                format!("{} connections of {each} requests", count / u64::from(each.max(1)))
            }
        };
        Self {
            number,
            title: section.title.clone(),
            kind,
            protocols: section.protocols.iter().copied().map(Protocol::name).collect(),
            cells,
            warmup_s: section.warmup.as_secs_f64(),
            duration_s: duration.map(Span::as_secs_f64),
            requests,
            requests_per_connection,
            headers: section.headers.iter().cloned().collect(),
            runs: section.runs,
            window: match section.warmup {
                Span::ZERO => format!("{window} without warm-up"),
                warmup => format!("{window} after {} of warm-up", format_duration(warmup)),
            },
        }
    }

    fn row(&self) -> Vec<String> {
        let headers = self.headers.iter().map(|(name, value)| format!(", {name}: {value}"));
        vec![
            self.number.to_string(),
            self.title.clone(),
            self.kind.to_owned(),
            self.protocols.join(if self.kind == "ratio" { " against " } else { ", " }),
            self.cells.join(", "),
            headers.fold(self.window.clone(), |window, field| window + &field),
        ]
    }
}

impl PlanTime {
    fn sentence(&self, rounds: u32) -> String {
        let guess = match self.windows_by_count {
            0 => String::new(),
            counted => format!(" (a guess for the {counted} windows that a count ends)"),
        };
        let longest = if self.probes_and_gates_at_most_s > 0.0 { "drain, probe and gate" } else { "drain" };
        format!(
            "{} cells x {rounds} rounds = {} windows, with {} server starts\n  about {} of load, {} with every \
             {longest} at its longest{guess}; builds, starts and stops come on top",
            self.cells,
            self.windows,
            self.starts,
            rounded(self.load_s),
            rounded(self.total_s),
        )
    }
}

/// What every response must be, as one phrase.
fn expectation(expect: &Expected) -> String {
    let mut parts = vec![match expect.status {
        Some(status) => format!("status {status}"),
        None => "any 2xx or 3xx".to_owned(),
    }];
    match (&expect.body, expect.length) {
        (Some(body), _) => parts.push(format!("this body of {} bytes", body.len())),
        (None, Some(length)) => parts.push(format!("{length} bytes of body")),
        (None, None) => {}
    }
    format!("{} at {}", parts.join(", "), expect.path)
}

/// Whole seconds, and tenths below ten.
fn rounded(seconds: f64) -> String {
    let tenths = if seconds < 10.0 { (seconds * 10.0).round() } else { seconds.round() * 10.0 };
    format_duration(Span::from_millis(tenths as u64 * 100))
}

/// A command as one would type it, for reading; words with blanks stand in quotes.
fn shell(words: &[String]) -> String {
    let quote = |word: &String| match word {
        word if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'') => {
            format!("{word:?}")
        }
        word => word.clone(),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Rows with their columns aligned, indented by two.
fn columns(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(length).max().unwrap_or(0);
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line += &format!("  {cell:<width$}", width = width(column));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::path::Path;

    use super::*;
    use crate::scenario::Overrides;

    const TEXT: &str = r#"format = 1
title = "Two servers"
[run]
rounds = 2
duration = "10s"
[expect]
status = 200
body = "Hello, World!\n"
[[server]]
name = "one"
label = "One"
command = ["one", "--port", "{port}"]
protocols = ["h1", "h1s"]
port = 8080
[[server]]
name = "another"
command = ["sh", "-c", "exec another"]
protocols = ["h1"]
[[section]]
title = "Plaintext"
kind = "closed-loop"
protocol = "h1"
cells = ["1x1", "50x1"]
[[section]]
title = "Set-up"
kind = "setup"
protocols = ["h1", "h1s"]
connections = 1000
[[section]]
title = "Handshakes"
kind = "handshake"
protocols = ["h1s"]
resumption = ["off", "ticket"]
connections = 500
requests = 3
"#;

    fn machine() -> Machine {
        Machine {
            cpus: vec![0, 1],
            cores: vec![vec![0], vec![1]],
            fd_hard_limit: 1024,
            ephemeral_ports: (32768, 60999),
            reserved_ports: Vec::new(),
        }
    }

    fn plan() -> Plan {
        let machine = machine();
        let read = |path: &Path| match path.to_str() {
            Some("/r/two.toml") => Ok(TEXT.to_owned()),
            _ => Err(Error::from(ErrorKind::NotFound)),
        };
        let overrides = Overrides { duration: Some(Span::from_millis(50)), ..Overrides::default() };
        let checked = scenario::check(Path::new("/r/two.toml"), &read, &machine, &overrides).unwrap();
        let missing =
            |server: &ServerSpec| (server.name == "another").then(|| "another is not on PATH".into());
        Plan::new(&checked, &machine, missing)
    }

    #[test]
    fn the_plan_reads_like_this() {
        insta::assert_snapshot!(plan().to_text());
    }

    #[test]
    fn the_plan_as_json_has_units_in_its_keys() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&plan()).unwrap());
    }

    /// Beside servers, in the words they are printed in.
    #[test]
    fn generators_probes_and_gates_are_told_with_their_time() {
        let text = TEXT.replacen(
            "[[section]]",
            "gate = { command = [\"no-such-gate\", \"{port}\"], requires = [\"no-such-gate\"], deadline = \"5s\" }\n\
             [[generator]]\nkind = \"builtin\"\n[[generator]]\nkind = \"wrk\"\nprogram = \"no-such-wrk\"\n\
             [[probe]]\nname = \"p\"\ncommand = [\"sh\"]\nfigures = [{ name = \"f\", pattern = \"(x)\" }]\n\
             [[section]]\ntitle = \"Load\"\nkind = \"generators\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"8x1\"]\n[[section]]",
            1,
        );
        let machine = machine();
        let read = |_: &Path| Ok(text.clone());
        let checked = scenario::check(Path::new("/r/two.toml"), &read, &machine, &Overrides::default());
        let plan = Plan::new(&checked.unwrap(), &machine, |_| None);
        let told = plan.to_text();
        for line in [
            "\ngates\n  another  over h1  at most 5s  no-such-gate {port}\n  another will not be run: `no-such-gate` is not \
             installed: it is not on PATH\n",
            "\ngenerators\n  builtin  builtin  h1, h1s, h2c, h2, h3  {bench} load --json",
            "  wrk      wrk      h1, h1s               no-such-wrk --latency",
            "\n  wrk will be n/a: `no-such-wrk` is not installed: it is not on PATH\n",
            "\nprobes\n  p  f  at most 1m  sh\n",
            "  1  Load        generators   h1       1x1, 8x1",
            "with every drain, probe and gate at its longest",
        ] {
            assert!(told.contains(line), "{line}\n{told}");
        }
        // Two servers, two cells, the one generator that is there; the other sections have nine windows more.
        assert_eq!((plan.time.cells, plan.time.probes_and_gates_at_most_s), (4 + 9, 65.0));
    }

    #[test]
    fn times_are_rounded_for_reading() {
        for (seconds, text) in [(0.04, "0s"), (1.26, "1.3s"), (12.7, "13s"), (59.6, "1m"), (125.0, "2m5s")] {
            assert_eq!(rounded(seconds), text);
        }
    }

    /// The options shared with other commands must not take this command's own help away.
    #[test]
    fn help_names_the_command_and_every_option() {
        use clap::Args as _;
        let mut command = Args::augment_args(clap::Command::new("check"));
        let help = command.render_long_help().to_string();
        for word in ["Starts nothing", "SCENARIO", "--json", "--server", "--section", "--cell", "--warmup"] {
            assert!(help.contains(word), "{word} in {help}");
        }
    }
}
