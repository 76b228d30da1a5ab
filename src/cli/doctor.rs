//! Owns `bench doctor`: its arguments and what it prints.

use std::io::{self, Write};
use std::path::PathBuf;

use super::Exit;
use crate::results::{Finding, FindingLevel};
use crate::sampler;
use crate::scenario::{self, Overrides, Scenario};

/// Say what on this machine would spoil a measurement
///
/// Changes nothing. Each finding is ok, warn, bad or unknown, the doubtful ones with a remedy.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bench doctor                                         this machine as it is
  bench doctor scenarios/http.toml                     with a scenario's pin sets and ports
  bench doctor --server-cpus 0-1 --generator-cpus 2-3  with pin sets by hand
  bench doctor --json | jq '.[] | select(.level != \"ok\")'

Exit codes: 0 nothing is bad; 1 something is; 2 the scenario is not valid.")]
pub struct Args {
    /// Scenario whose pin sets and listen ports are looked at
    scenario: Option<PathBuf>,
    /// CPUs of the servers, e.g. `0-1,4`; overrides the scenario
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    server_cpus: Option<CpuList>,
    /// CPUs of the generator, e.g. `2-3`; overrides the scenario
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    generator_cpus: Option<CpuList>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// CPUs as given on the command line.
#[derive(Clone, Debug, Default)]
struct CpuList(Vec<u32>);

fn cpu_list(text: &str) -> Result<CpuList, String> {
    let cpus = sampler::parse_cpu_list(text).filter(|cpus| !cpus.is_empty());
    cpus.map(CpuList).ok_or_else(|| "not a list of CPUs; write it like `0-1,4`".into())
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    let mut stdout = io::stdout().lock();
    let scenario = match args.scenario.as_deref().map(load).transpose() {
        Ok(scenario) => scenario,
        Err(message) => {
            // With nowhere left to complain to, the exit code has to do.
            let _ = writeln!(io::stderr(), "bench: {message}");
            return Exit::CouldNot;
        }
    };
    let findings = examine(&args, scenario.as_ref());
    let printed = match args.json {
        true => print_json(&mut stdout, &findings),
        false => print(&mut stdout, &findings),
    };
    match printed {
        // A reader that has seen enough (`| head`) is no failure, and the verdict stands.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::CouldNot,
        _ if findings.iter().any(|finding| finding.level == FindingLevel::Bad) => Exit::Unmet,
        _ => Exit::Measured,
    }
}

fn load(path: &std::path::Path) -> Result<Scenario, String> {
    let read = |path: &std::path::Path| std::fs::read_to_string(path);
    scenario::load(path, &read, &sampler::machine(), &Overrides::default()).map_err(|error| error.to_string())
}

fn examine(args: &Args, scenario: Option<&Scenario>) -> Vec<Finding> {
    let cpus = |given: &Option<CpuList>, of_scenario: fn(&Scenario) -> &Vec<u32>| match given {
        Some(CpuList(cpus)) => cpus.clone(),
        None => scenario.map(of_scenario).cloned().unwrap_or_default(),
    };
    let server = cpus(&args.server_cpus, |scenario| &scenario.pin.servers);
    let generator = cpus(&args.generator_cpus, |scenario| &scenario.pin.generator);
    let servers = scenario.map(|scenario| scenario.servers.as_slice()).unwrap_or_default();
    let ports: Vec<u16> = servers.iter().flat_map(|spec| [spec.port, spec.tls_port]).flatten().collect();
    let mut findings = sampler::doctor(&server, &generator, &ports);
    findings.extend(PROBES.iter().flat_map(|probe| probe()));
    findings
}

/// Findings that are not read but tried out, by layers the sampler does not know.
const PROBES: &[fn() -> Vec<Finding>] = &[|| vec![crate::load::kernel_finding()]];

fn print_json(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, findings)?;
    writeln!(out)
}

/// One line for each finding, its remedy on the line below, and a count of each level at the end.
fn print(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let names = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    for Finding { check, level, found, remedy } in findings {
        let level = level_word(*level);
        writeln!(out, "{level:<LEVEL_WIDTH$}  {check:<names$}  {found}")?;
        if let Some(remedy) = remedy {
            writeln!(out, "{:LEVEL_WIDTH$}  {:names$}  -> {remedy}", "", "")?;
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let levels = [FindingLevel::Bad, FindingLevel::Warn, FindingLevel::Unknown, FindingLevel::Ok];
    let counts: Vec<String> =
        levels.iter().map(|&level| format!("{} {}", count(level), level_word(level))).collect();
    writeln!(out, "\n{}", counts.join(", "))
}

fn level_word(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Ok => "ok",
        FindingLevel::Unknown => "unknown",
        FindingLevel::Warn => "warn",
        FindingLevel::Bad => "bad",
    }
}

/// Width of the longest word for a level.
const LEVEL_WIDTH: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_printed_in_columns_with_remedies_below() {
        let finding = |check: &str, level, found: &str, remedy: Option<&str>| Finding {
            check: check.into(),
            level,
            found: found.into(),
            remedy: remedy.map(Into::into),
        };
        let findings = [
            finding("kernel", FindingLevel::Ok, "Linux 6.18.0", None),
            finding("cgroup-quota", FindingLevel::Bad, "half a CPU", Some("lift it")),
            finding("turbo", FindingLevel::Unknown, "no switch", None),
        ];
        let mut out = Vec::new();
        print(&mut out, &findings).expect("a vector takes everything");
        insta::assert_snapshot!(String::from_utf8(out).expect("text"), @r"
        ok       kernel        Linux 6.18.0
        bad      cgroup-quota  half a CPU
                               -> lift it
        unknown  turbo         no switch

        1 bad, 0 warn, 1 unknown, 1 ok
        ");
    }

    #[test]
    fn cpu_lists_of_nothing_are_refused() {
        assert_eq!(cpu_list("0-1,4").expect("a list").0, [0, 1, 4]);
        for text in ["", ",", "1-0", "all"] {
            assert!(cpu_list(text).is_err(), "{text:?}");
        }
    }
}
