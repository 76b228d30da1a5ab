//! Owns `bench diff`: its arguments, and which reports are compared.

use std::path::PathBuf;

use super::comparing::{Comparing, Rules};
use super::run::quoted;
use super::sides::{self, Report};
use super::{Exit, sides::Paired};
use crate::compare;
use crate::report::diff::{self, Diff};

/// Compare two runs: what got better, what got worse, what cannot be told
///
/// Each side is a results file, a folder of them, a revision of the git repository (every *.json in its
/// folder `reports`), or REV:path. A path that exists is taken as one. Reports belong together by file name.
/// Runs on another machine or with other settings are not compared: the keys that differ are listed.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bench diff HEAD~1 HEAD                          what a commit changed in the reports
  bench diff HEAD reports                         what a run changed that is not committed
  bench diff before.json after.json --fail-on 5%  fail when anything is worse by 5 % or more
  bench diff v1.0:reports/HTTP_RESULTS.json reports/HTTP_RESULTS.json --fail-on rate=5%,cpu=3%
  bench diff HEAD~1 HEAD --relative-to nginx      for runs on machines that differ
  bench diff HEAD reports --limit summary >> \"$GITHUB_STEP_SUMMARY\"

Exit codes: 0 compared, and nothing that --fail-on names; 1 something it names; 2 the sides cannot be
read or cannot be compared.")]
pub struct Args {
    /// The older side: a file, a folder, a revision, or REV:path
    #[arg(value_name = "BASE")]
    base: String,

    /// The newer side
    #[arg(value_name = "HEAD")]
    head: String,

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
            let whole = format!("`bench diff {} {} --format md`", quoted(&args.base), quoted(&args.head));
            rules.conclude(&diff, &whole)
        }
        Err(message) => {
            eprintln!("error: {message}");
            Exit::CouldNot
        }
    }
}

fn compared(args: &Args) -> Result<(Diff, Rules), String> {
    let mut rules = args.comparing.rules()?;
    let base = sides::read(&args.base, &args.reports)?;
    let head = sides::read(&args.head, &args.reports)?;
    let Paired { pairs, missing, new } = sides::pair(base, head)?;
    rules.options.force = args.force;
    let compare = |(base, head): &(Report, Report)| {
        let control =
            args.relative_to.as_deref().map(|control| control_of(control, base, head)).transpose()?;
        let options = compare::Options { relative_to: control, ..rules.options.clone() };
        let comparison = compare::runs((&base.name, &base.results), (&head.name, &head.results), &options);
        Ok(diff::Report { file: head.file.clone(), comparison })
    };
    let diff = Diff {
        base: args.base.clone(),
        head: args.head.clone(),
        reports: pairs.iter().map(compare).collect::<Result<_, String>>()?,
        missing,
        new,
        limits: rules.limits.clone(),
        forced: args.force,
    };
    Ok((diff, rules))
}

/// The name of the server that both sides have, by its name or its label on the head.
fn control_of(wanted: &str, base: &Report, head: &Report) -> Result<String, String> {
    let named = |side: &Report, wanted: &str| {
        let servers = &side.results.servers;
        let found = servers.iter().find(|server| server.name == wanted);
        let found = found.or_else(|| servers.iter().find(|server| server.label == wanted));
        found.map(|server| server.name.clone()).ok_or_else(|| {
            let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            format!("--relative-to: {} has no server `{wanted}`; it has {}", side.name, known.join(", "))
        })
    };
    let name = named(head, wanted)?;
    named(base, &name)
}
