//! Owns `bench history`: its arguments, and which report's commits are read.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{Exit, print};
use crate::compare::Metric;
use crate::git::Repository;
use crate::report::history::{Filter, History};
use crate::report::picture::Theme;
use crate::results::store;

/// Follow figures of a report over the commits that touched it
///
/// The oldest commit comes first. A line says where the machine or the settings changed: figures before and
/// after it cannot be compared. Every cell that matches gets a table.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  bench history reports/HTTP_RESULTS.json --server nginx --cell 50x1
  bench history --section plaintext --server rust-hyper --cell 50x1 --metric cpu
  bench history reports/HTTP_RESULTS.json --server nginx --cell 'h1 50x1' --svg nginx.svg
  bench history reports/HTTP_RESULTS.json --cell 'h1 50x1' --format json

Exit codes: 0 done; 2 there is no such report, commit or cell, or the picture cannot be drawn.")]
pub struct Args {
    /// The report's results file (JSON) [default: the one in the folder `reports`]
    #[arg(value_name = "REPORT.json")]
    report: Option<PathBuf>,

    /// Only cells of sections with this in their title
    #[arg(long, value_name = "TITLE")]
    section: Option<String>,

    /// Only cells of this server, by name or label
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,

    /// Only cells of this size: `10x10`, or with the protocol, `h2 10x10`
    #[arg(long, value_name = "CxM")]
    cell: Option<String>,

    /// Which figure: rate (req/s), p50, p99, cpu (µs per request)
    #[arg(long, value_name = "METRIC", default_value = "rate")]
    metric: Metric,

    /// Up to this revision
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    revision: String,

    /// Only the newest so many commits
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,

    /// Also draw it: an SVG picture of at most 8 cells, lines broken where the conditions changed
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// What page the picture is for
    #[arg(long, value_name = "THEME", default_value = "light", requires = "svg")]
    theme: Page,

    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    format: Format,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// Markdown tables, which line up on a terminal too
    Md,
    /// JSON
    Json,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    /// A light one
    Light,
    /// A dark one
    Dark,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match history(&args).and_then(|history| draw(&args, &history).map(|()| history)) {
        Ok(history) => print(
            match args.format {
                Format::Md => history.markdown(),
                Format::Json => history.json(),
            }
            .as_bytes(),
        ),
        Err(message) => {
            eprintln!("error: {message}");
            Exit::CouldNot
        }
    }
}

fn history(args: &Args) -> Result<History, String> {
    let report = args.report.as_deref();
    let beside = report.and_then(Path::parent).filter(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let repository = Repository::containing(beside).map_err(|error| error.to_string())?;
    let head = repository.resolve(&args.revision).map_err(|error| error.to_string())?;
    let path = match report {
        Some(report) => repository.relative(report).map_err(|error| error.to_string())?,
        None => only_report(&repository, &head)?,
    };
    let mut commits = repository.touching(&head, &path).map_err(|error| error.to_string())?;
    if commits.is_empty() {
        return Err(format!(
            "no commit up to {} touched {path}; name a results file that is committed",
            args.revision
        ));
    }
    commits.truncate(args.last as usize);
    let filter = |all: bool| match all {
        true => Filter::default(),
        false => {
            Filter { section: args.section.clone(), server: args.server.clone(), cell: args.cell.clone() }
        }
    };
    let read = |filter: Filter, commits: &[crate::git::Commit]| {
        let mut history = History::new(&path, args.metric, filter);
        for commit in commits.iter().rev() {
            let results = match repository.read(&commit.hash, &path) {
                Ok(bytes) => store::parse(&String::from_utf8_lossy(&bytes))
                    .map_err(|what| format!("the report cannot be read: {what}")),
                Err(_) => Err("the report is not there".to_owned()),
            };
            let what = (&*commit.hash, &*commit.at, &*commit.subject);
            history.push(what, results.as_ref().map_err(Clone::clone));
        }
        history
    };
    let history = read(filter(false), &commits);
    if history.is_empty() {
        let newest = read(filter(true), &commits[..1]);
        return Err(match newest.is_empty() {
            true => format!("the newest {path} has no cells"),
            false => format!("no cell of {path} matches; the newest has {}", newest.known()),
        });
    }
    Ok(history)
}

/// Writes the picture, where one is asked for.
fn draw(args: &Args, history: &History) -> Result<(), String> {
    let Some(path) = &args.svg else { return Ok(()) };
    if history.len() > PANELS {
        return Err(format!(
            "--svg draws at most {PANELS} cells and {} match; narrow them by --section, --server, --cell: there are {}",
            history.len(),
            history.known()
        ));
    }
    let theme = match args.theme {
        Page::Light => Theme::Light,
        Page::Dark => Theme::Dark,
    };
    store::replace(path, history.picture().svg(theme).as_bytes()).map_err(|error| error.to_string())
}

/// The only results file in `reports`.
fn only_report(repository: &Repository, commit: &str) -> Result<String, String> {
    let folder = repository.relative(Path::new("reports")).map_err(|error| error.to_string())?;
    let mut files = repository.files(commit, &folder).map_err(|error| error.to_string())?;
    files.retain(|file| file.ends_with(".json"));
    match files.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(format!("{folder} has no results files; name one")),
        several => Err(format!("name one of {}", several.join(", "))),
    }
}

/// Cells that a picture has room for.
const PANELS: usize = 8;
