//! Owns the options of every command that compares, what it prints, and how it ends.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::run::width;
use super::{Exit, print};
use crate::compare::Options;
use crate::compare::gate::Limits;
use crate::report::diff::{self, Diff, Room};
use crate::results::store;
use crate::units::parse_percent;

/// How to compare, and what to make of it.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Comparing")]
pub struct Comparing {
    /// Changes within this are the same to you
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    margin: f64,

    /// Share of false ones among the changes called, over all cells and figures of a report together
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = level)]
    level: f64,

    /// Exit with 1 when a figure is worse by this or more, or a cell is missing or failed: `5%`, or
    /// by figure, `rate=5%,cpu=3%` (rate, p50, p99, cpu)
    #[arg(long, value_name = "LIMITS")]
    fail_on: Vec<String>,

    /// How to print it [default: text; md with --limit]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Cut the Markdown to what GitHub takes as a comment (65 536 characters) or as the summary of a
    /// step (1 MiB), the least interesting rows first
    #[arg(long, value_name = "WHERE")]
    limit: Option<Where>,

    /// Write the whole comparison as Markdown to this file as well, whatever is printed
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Where the whole is, for a text that was cut: an address, a path [default: the command that prints it]
    #[arg(long, value_name = "TEXT", requires = "limit")]
    whole: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// Tables for a terminal
    Text,
    /// Markdown
    Md,
    /// JSON
    Json,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    /// A comment on GitHub
    Comment,
    /// The summary of a step of a GitHub workflow
    Summary,
}

/// The options, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Rules {
    /// How to compare.
    pub options: Options,
    /// What has to hold.
    pub limits: Option<Limits>,
    form: Form,
    save: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Debug)]
enum Form {
    Text,
    Markdown { room: Option<Room>, whole: Option<String> },
    Json,
}

impl Comparing {
    /// The options, before anything is done.
    ///
    /// # Errors
    /// Limits that cannot be read, options that contradict each other.
    pub fn rules(&self) -> Result<Rules, String> {
        let limits = (!self.fail_on.is_empty()).then(|| Limits::parse(&self.fail_on)).transpose();
        let room = self.limit.map(|limit| match limit {
            Where::Comment => Room::Comment,
            Where::Summary => Room::Summary,
        });
        let form = match (self.format, room) {
            (Some(Format::Md), room) | (None, room @ Some(_)) => {
                Form::Markdown { room, whole: self.whole.clone() }
            }
            (Some(Format::Text | Format::Json), Some(_)) => {
                return Err("--limit cuts Markdown; leave it out or use --format md".into());
            }
            (Some(Format::Json), None) => Form::Json,
            (Some(Format::Text) | None, None) => Form::Text,
        };
        Ok(Rules {
            options: Options { margin: self.margin, level: self.level, ..Options::default() },
            limits: limits.map_err(|what| format!("--fail-on: {what}"))?,
            form,
            save: self.save.clone(),
        })
    }
}

impl Rules {
    /// Prints a comparison and says how the command ends. `whole` is the command that prints all of it.
    pub fn conclude(&self, diff: &Diff, whole: &str) -> Exit {
        if let Some(file) = &self.save
            && let Err(error) = save(diff, whole, file)
        {
            eprintln!("error: {error}");
            return Exit::CouldNot;
        }
        let text = match &self.form {
            Form::Text => Ok(diff::terminal(diff, width(), colour())),
            Form::Markdown { room, whole: named } => {
                diff::markdown(diff, *room, named.as_deref().unwrap_or(whole))
            }
            Form::Json => Ok(diff::json(diff)),
        };
        let printed = match text {
            Ok(text) => print(text.as_bytes()),
            Err(error) => {
                eprintln!("error: {error}");
                Exit::CouldNot
            }
        };
        if printed != Exit::Measured {
            return printed;
        }
        outcome(diff)
    }
}

/// Writes the whole comparison to a file.
fn save(diff: &Diff, whole: &str, file: &Path) -> Result<(), String> {
    let text = diff::markdown(diff, None, whole).map_err(|error| error.to_string())?;
    store::replace(file, text.as_bytes()).map_err(|error| error.to_string())
}

/// How a comparison ends. What has to hold cannot be said to where there are no verdicts.
fn outcome(diff: &Diff) -> Exit {
    if !diff.comparable() && (!diff.forced || diff.limits.is_some()) {
        Exit::CouldNot
    } else if diff.broken() {
        Exit::Unmet
    } else if diff.unjudged() {
        Exit::CouldNot
    } else {
        Exit::Measured
    }
}

/// Whether standard output takes colours: a terminal does, unless the environment has `NO_COLOR`.
fn colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !refused
}

fn level(text: &str) -> Result<f64, String> {
    parse_percent(text).and_then(|level| match level {
        level if level > 0.0 && level < 0.5 => Ok(level),
        _ => Err(format!("`{text}` is no level of significance; use one above 0% and below 50%, such as 5%")),
    })
}
