//! Owns a load generator run as a command: its words for a cell, what is done once for each before the first
//! round, and what its run came to. What it prints is read in `output`.

mod output;

use std::collections::BTreeMap;
use std::path::Path;

use super::cell::Ending;
use super::interrupt::Halt;
use crate::load::plan::{Limit, LoadPlan};
use crate::results::{CellStatus, ExternalRun, GeneratorRecord, Unavailable};
use crate::scenario::{GeneratorSpec, OWN_PROGRAM, PROTOCOL_FLAGS, format_cpus, protocol_flags};
use crate::server::{self, Host, How, Ran, Tool, fill};
use crate::time::Span;

pub(crate) use output::number;

/// A generator of which nothing is known but what the scenario says.
pub(crate) fn planned(spec: &GeneratorSpec) -> GeneratorRecord {
    GeneratorRecord {
        name: spec.name.clone(),
        label: spec.label.clone(),
        kind: spec.kind,
        version: None,
        command: spec.command.iter().map(|word| own_program(word, Path::new("bench"))).collect(),
        unavailable: None,
    }
}

/// What is found out about a generator before the first round: whether it is installed, its version.
pub(crate) fn prepare(spec: &GeneratorSpec, exe: &Path) -> GeneratorRecord {
    let none = BTreeMap::new();
    let version: Vec<String> = spec.version.iter().map(|word| own_program(word, exe)).collect();
    let absent = server::installed(&spec.requires, &spec.dir, None).err();
    GeneratorRecord {
        version: if absent.is_none() { server::first_line_of(&version, &spec.dir, &none) } else { None },
        unavailable: absent.map(|error| Unavailable {
            status: CellStatus::Absent,
            reason: error.reason,
            log_tail: error.log_tail,
        }),
        ..planned(spec)
    }
}

/// Runs a generator on the load of `plan`, whose window a duration ends, for `allowed` at most.
///
/// # Errors
/// The end of a cell whose generator could not be started.
pub(crate) fn run(
    spec: &GeneratorSpec,
    plan: &LoadPlan,
    allowed: Span,
    host: &Host,
    halt: &Halt,
) -> Result<(Ran, ExternalRun), Ending> {
    let command = command(spec, plan, &host.exe);
    let tool = Tool {
        name: &format!("{}.generator", spec.name),
        command: &command,
        dir: &spec.dir,
        env: &BTreeMap::new(),
        cpus: &plan.cpus,
        deadline: allowed,
    };
    let ran = tool
        .run(host, &mut || halt.reason())
        .map_err(|error| Ending::Failed(format!("{}: {}", spec.label, error.reason)))?;
    let external = ExternalRun {
        command,
        asked_s: window(plan).as_secs_f64(),
        wall_s: ran.took().as_secs_f64(),
        cpu_user_us: ran.cpu_user_us,
        cpu_system_us: ran.cpu_system_us,
        output: ran.output.clone(),
        ..output::read(spec, &ran.output)
    };
    Ok((ran, external))
}

/// How a cell ended whose generator ran like this.
pub(crate) fn ending(spec: &GeneratorSpec, ran: &Ran, run: &ExternalRun) -> Ending {
    match (&ran.how, run.ok) {
        (How::Halted(reason), _) => Ending::Cut(reason.clone()),
        (How::Badly(how), _) => Ending::Failed(format!("{} {how}", spec.label)),
        (How::Well, None) => {
            Ending::Failed(format!("what {} printed has no count of ok responses", spec.label))
        }
        (How::Well, Some(0)) => Ending::Failed(format!("{} counted no ok response", spec.label)),
        (How::Well, Some(_)) => Ending::Measured,
    }
}

/// The command of a generator for the load of `plan`.
fn command(spec: &GeneratorSpec, plan: &LoadPlan, exe: &Path) -> Vec<String> {
    let values = BTreeMap::from([
        ("url", plan.target.url.clone()),
        ("protocol", plan.protocol.name().to_owned()),
        ("connections", plan.connections.to_string()),
        ("concurrency", plan.concurrency.to_string()),
        ("threads", plan.threads.to_string()),
        ("cpus", format_cpus(&plan.cpus)),
        ("duration_s", window(plan).as_secs_f64().to_string()),
        ("dir", spec.dir.clone()),
    ]);
    let mut command = Vec::with_capacity(spec.command.len() + 2);
    for word in &spec.command {
        let word = own_program(word, exe);
        let flags = protocol_flags(spec.kind, plan.protocol).unwrap_or_default();
        let words: &[&str] = if word == PROTOCOL_FLAGS { flags } else { &[&word] };
        for word in words {
            let filled =
                fill(word, |name| Ok::<_, std::convert::Infallible>(values.get(name).map(String::as_str)));
            match filled {
                Ok(word) => command.push(word),
                Err(never) => match never {},
            }
        }
    }
    command
}

fn own_program(word: &str, exe: &Path) -> String {
    if word == OWN_PROGRAM { exe.to_string_lossy().into_owned() } else { word.to_owned() }
}

/// A count is refused in sections that compare generators, see `scenario`.
fn window(plan: &LoadPlan) -> Span {
    match plan.limit {
        Limit::DurationNs(nanos) => Span::from_nanos(nanos),
        Limit::Requests(_) => Span::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Protocol;
    use crate::run::{fixture, plan, schedule};
    use crate::server::Ports;

    /// The words that each known generator gets for a load.
    #[test]
    fn known_generators_are_called_like_this() {
        let known = |kind: &str| {
            let text = format!(
                "format = 1\ntitle = \"T\"\n[[server]]\nname = \"a\"\ncommand = [\"a\"]\nprotocols = [\"h1\"]\n\
                 [[generator]]\nkind = \"{kind}\"\n[[section]]\ntitle = \"t\"\nkind = \"generators\"\n\
                 protocol = \"h1\"\ncells = [\"1x1\"]\n"
            );
            let machine = crate::scenario::Machine {
                cpus: vec![0],
                cores: vec![vec![0]],
                fd_hard_limit: 1024,
                ephemeral_ports: (32768, 60999),
                reserved_ports: vec![],
            };
            let scenario = crate::scenario::load(
                Path::new("/a.toml"),
                &|_| Ok(text.clone()),
                &machine,
                &Default::default(),
            );
            scenario.expect("the scenario is right").generators.remove(0)
        };
        let words = |kind: &str, protocol| {
            let mut scenario = fixture::scenario(1, &["a"], &[&[protocol]], &[8]);
            scenario.servers[0].protocols = vec![protocol];
            scenario.sections[0].limit = crate::scenario::SectionLimit::Duration(Span::from_millis(2500));
            scenario.sections[0].cells[0].concurrency = 4;
            (scenario.pin.generator_threads, scenario.pin.generator) = (2, vec![2, 3]);
            let visit = schedule::visits(&scenario)[0];
            let plan = plan::cell(&scenario, &visit, Ports { http: 20080, https: 20443 });
            command(&known(kind), &plan, Path::new("/opt/bench")).join(" ")
        };
        let (plain, tls) = ("http://localhost:20080/", "https://localhost:20443/");
        for (kind, protocol, expected) in [
            (
                "builtin",
                Protocol::H3,
                format!("/opt/bench load --json --wait sleep -c 8 -m 4 --protocol h3 -t 2 -z 2.5s {tls}"),
            ),
            ("shb", Protocol::H1, format!("shb --json -c 8 -t 2 -z 2.5s {plain}")),
            ("shb", Protocol::H2, format!("shb --json -c 8 --http2 -p 4 -t 2 -z 2.5s {tls}")),
            ("shb", Protocol::H3, format!("shb --json -c 8 --http3 -p 4 -t 2 -z 2.5s {tls}")),
            ("h2load", Protocol::H1s, format!("h2load -c 8 -m 4 --h1 -t 2 -D 2.5s {tls}")),
            ("h2load", Protocol::H2c, format!("h2load -c 8 -m 4 -t 2 -D 2.5s {plain}")),
            ("wrk", Protocol::H1, format!("wrk --latency -c 8 -t 2 -d 2.5s {plain}")),
            (
                "oha",
                Protocol::H2c,
                format!(
                    "oha --no-tui --insecure --output-format json -c 8 --http2 -p 4 --worker-threads 2 -z 2.5s {plain}"
                ),
            ),
        ] {
            assert_eq!(words(kind, protocol), expected);
        }
    }
}
