//! Owns `bench diff`: its arguments, and which reports are compared.

use std::path::PathBuf;

use super::Exit;
use super::comparing::{Comparing, Rules};
use super::run::quoted;
use super::sides::{self, Paired, Report, Side};
use crate::compare;
use crate::report::diff::{self, Diff};

/// Compare two runs: what got better, what got worse, what cannot be told
///
/// Each side is a results file, a folder of them, a revision of the git repository (every *.json in its
/// folder `reports`), or REV:path. A path that exists is taken as one. Reports belong together by file name.
/// Runs on another machine or with other settings are not compared: the keys that differ are listed.
/// With --servers the sides are two servers of one run.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bench diff HEAD~1 HEAD                          what a commit changed in the reports
  bench diff HEAD reports                         what a run changed that is not committed
  bench diff before.json after.json --fail-on 5%  fail when anything is worse by 5 % or more
  bench diff v1.0:reports/HTTP_RESULTS.json reports/HTTP_RESULTS.json --fail-on rate=5%,cpu=3%
  bench diff HEAD~1 HEAD --relative-to nginx      for runs on machines that differ
  bench diff reports/HTTP_RESULTS.json --servers nginx,caddy   is caddy any better, or is it noise?
  bench diff HEAD reports --limit summary >> \"$GITHUB_STEP_SUMMARY\"

Exit codes: 0 compared, and nothing that --fail-on names; 1 something it names; 2 the sides cannot be
read or cannot be compared.")]
pub struct Args {
    /// The older side: a file, a folder, a revision, or REV:path
    #[arg(value_name = "BASE")]
    base: String,

    /// The newer side
    #[arg(value_name = "HEAD", required_unless_present = "servers")]
    head: Option<String>,

    /// Compare two servers of BASE with each other, round by round
    #[arg(long, value_name = "BASE,HEAD", conflicts_with_all = ["head", "relative_to", "force"])]
    servers: Option<String>,

    /// Folder of the reports at a revision
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,

    /// Compare ratios to this server's figures, each to that of the same round; the server has to be the same on both
    /// sides. Makes up for another machine
    #[arg(long, value_name = "SERVER")]
    relative_to: Option<String>,

    /// Show the figures of sides that cannot be compared, without verdicts
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    comparing: Comparing,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match compared(&args) {
        Ok((diff, rules)) => {
            for report in diff.reports.iter().filter(|report| !report.comparison.comparable()) {
                let keys: Vec<&str> = report.comparison.differing.iter().map(|d| d.key.as_str()).collect();
                let hint = if diff.forced { "" } else { "; --force shows figures without verdicts" };
                eprintln!("{}: cannot be compared, these differ: {}{hint}", report.file, keys.join(", "));
            }
            let sides = match (&args.head, &args.servers) {
                (Some(head), _) => quoted(head),
                (None, servers) => format!("--servers {}", quoted(servers.as_deref().unwrap_or_default())),
            };
            let whole = format!("`bench diff {} {sides} --format md`", quoted(&args.base));
            rules.conclude(&diff, &whole)
        }
        Err(message) => {
            eprintln!("error: {message}");
            Exit::CouldNot
        }
    }
}

fn compared(args: &Args) -> Result<(Diff, Rules), String> {
    let rules = args.comparing.rules()?;
    let base = sides::read(&args.base, &args.reports)?;
    let Some(head) = &args.head else {
        return Ok((of_one_run(args, base, &rules)?, rules));
    };
    let head = sides::read(head, &args.reports)?;
    let named = head.name.clone();
    let Paired { pairs, missing, new } = sides::pair(base, head)?;
    let compare = |(base, head): &(Report, Report)| {
        let control =
            args.relative_to.as_deref().map(|control| control_of(control, base, head)).transpose()?;
        let options = compare::Options { relative_to: control, ..rules.options.clone() };
        let comparison = compare::runs((&base.name, &base.results), (&head.name, &head.results), &options);
        Ok(diff::Report { file: head.file.clone(), comparison })
    };
    let diff = Diff {
        base: args.base.clone(),
        head: named,
        reports: pairs.iter().map(compare).collect::<Result<_, String>>()?,
        missing,
        new,
        limits: rules.limits.clone(),
        forced: args.force,
    };
    Ok((diff, rules))
}

/// Two servers of each report of one side.
fn of_one_run(args: &Args, side: Side, rules: &Rules) -> Result<Diff, String> {
    let servers = args.servers.as_deref().unwrap_or_default();
    let (base, head) = servers
        .split_once(',')
        .map(|(base, head)| (base.trim(), head.trim()))
        .filter(|(base, head)| !base.is_empty() && !head.is_empty() && base != head && !head.contains(','))
        .ok_or_else(|| format!("--servers: `{servers}` is not two servers; write them like `nginx,caddy`"))?;
    let compare = |report: &Report| {
        let (base, head) = (server(report, "--servers", base)?, server(report, "--servers", head)?);
        let comparison = compare::servers(&report.results, &base, &head, &rules.options);
        Ok(diff::Report { file: report.file.clone(), comparison })
    };
    Ok(Diff {
        base: base.to_owned(),
        head: head.to_owned(),
        reports: side.reports.iter().map(compare).collect::<Result<_, String>>()?,
        missing: Vec::new(),
        new: Vec::new(),
        limits: rules.limits.clone(),
        forced: false,
    })
}

/// The name of the server that both sides have, by its name or its label on the head.
fn control_of(wanted: &str, base: &Report, head: &Report) -> Result<String, String> {
    let name = server(head, "--relative-to", wanted)?;
    server(base, "--relative-to", &name)
}

/// The name of a server that `option` gives by its name or its label.
fn server(side: &Report, option: &str, wanted: &str) -> Result<String, String> {
    let servers = &side.results.servers;
    let found = servers.iter().find(|server| server.name == wanted);
    let found = found.or_else(|| servers.iter().find(|server| server.label == wanted));
    found.map(|server| server.name.clone()).ok_or_else(|| {
        let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        format!("{option}: {} has no server `{wanted}`; it has {}", side.name, known.join(", "))
    })
}
