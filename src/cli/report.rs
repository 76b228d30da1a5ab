//! Owns `bench report`: its arguments and what it prints.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Exit, print, publish};
use crate::report::{self, Report};
use crate::results::store::{self, StoreError};
use crate::results::{Results, schema, stats};

/// Render a results file again, measuring nothing
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  bench report reports/HTTP_RESULTS.json           write reports/HTTP_RESULTS.md and its pictures
  bench report --check reports/*.json              fail when one is not what its JSON gives
  bench report --stdout reports/HTTP_RESULTS.json  print it
  bench report --html reports/HTTP_RESULTS.json    write reports/HTTP_RESULTS.html
  bench report --schema                            print the JSON schema of results files

Exit codes: 0 done; 1 with --check, a report differs; 2 a file could not be read or written.")]
pub struct Args {
    /// Results files (JSON) to render; each report goes beside its file, its pictures into a folder there
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    files: Vec<PathBuf>,
    /// Write nothing: exit with 1 when the report on disk differs from what the file renders to
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print the report instead of writing it
    #[arg(long)]
    stdout: bool,
    /// Render one page of HTML instead, with its pictures and every round in it
    #[arg(long)]
    html: bool,
    /// Folder to write the reports to (or, with --check, to look for them in)
    #[arg(long, value_name = "DIR", conflicts_with = "stdout")]
    out: Option<PathBuf>,
    /// Print the JSON schema of results files and exit
    #[arg(long, conflicts_with_all = ["files", "check", "stdout", "html", "out"])]
    schema: bool,
}

/// Runs the command. Every file is tried; the worst outcome decides how it ends.
pub fn run(args: Args) -> Exit {
    if args.schema {
        return print(schema::json().as_bytes());
    }
    let mut worst = Exit::Measured;
    for file in &args.files {
        let exit = one(&args, file).unwrap_or_else(|StoreError(message)| {
            eprintln!("error: {message}");
            Exit::CouldNot
        });
        if exit as u8 > worst as u8 {
            worst = exit;
        }
    }
    worst
}

fn one(args: &Args, file: &Path) -> Result<Exit, StoreError> {
    let results = store::load(file)?;
    let target = target(file, args.out.as_deref(), if args.html { "html" } else { "md" });
    let fault = |e| StoreError(format!("{}: cannot be rendered: {e}", file.display()));
    let report = if args.html {
        Report { text: report::page(&results).map_err(fault)?, pictures: Vec::new() }
    } else {
        report::report(&results, &publish::name(&target)).map_err(fault)?
    };
    if args.stdout {
        return Ok(print(report.text.as_bytes()));
    }
    if args.check {
        if let Some(text) = untraced(&results) {
            eprintln!("error: {}: {text}", file.display());
            return Ok(Exit::Unmet);
        }
        return check(args, &target, &report);
    }
    if args.html {
        store::replace(&target, report.text.as_bytes())?;
    } else {
        publish::write(&target, &report)?;
    }
    Ok(print(format!("{}\n", target.display()).as_bytes()))
}

/// `X.json` becomes `X.md` or `X.html`, beside it or in `out`.
fn target(file: &Path, out: Option<&Path>, ending: &str) -> PathBuf {
    let beside = file.with_extension(ending);
    match (out, beside.file_name()) {
        (Some(out), Some(name)) => out.join(name),
        _ => beside,
    }
}

/// Compares what is on disk with the report, and for one in Markdown its pictures as well.
fn check(args: &Args, target: &Path, report: &Report) -> Result<Exit, StoreError> {
    let text = check_text(target, &report.text);
    if args.html {
        return Ok(text);
    }
    let faults = publish::faults(target, report)?;
    for fault in &faults {
        eprintln!("error: {fault}; render the report again without --check");
    }
    Ok(if faults.is_empty() { text } else { Exit::Unmet })
}

fn check_text(target: &Path, expected: &str) -> Exit {
    let found = match fs::read_to_string(target) {
        Ok(found) => found,
        Err(e) => {
            eprintln!("error: {}: cannot be read: {e}; render it without --check", target.display());
            return Exit::Unmet;
        }
    };
    let Some(hint) = first_difference(&found, expected) else { return Exit::Measured };
    eprintln!("error: {}: {hint}; render it again without --check", target.display());
    Exit::Unmet
}

/// The first cell whose summary is not what its rounds give.
fn untraced(results: &Results) -> Option<String> {
    results.sections.iter().find_map(|section| {
        let cell = section.cells.iter().find(|cell| {
            let of_rounds = stats::summarise(cell, section.kind, &results.settings);
            cell.summary != of_rounds
        })?;
        Some(format!(
            "the summary of {} {}x{} in `{}` does not follow from its rounds; the file was changed by hand, or by another version",
            cell.server, cell.connections, cell.concurrency, section.title
        ))
    })
}

/// Where two texts part, with both lines.
fn first_difference(found: &str, expected: &str) -> Option<String> {
    if found == expected {
        return None;
    }
    let (mut on_disk, mut rendered) = (found.lines(), expected.lines());
    for number in 1.. {
        match (on_disk.next(), rendered.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let show = |line: Option<&str>| match line {
                    Some(line) => format!("`{}`", line.chars().take(LINE_LIMIT).collect::<String>()),
                    None => "the end".into(),
                };
                return Some(format!("line {number} is {} where the results give {}", show(a), show(b)));
            }
        }
    }
    Some("line ends differ".into())
}

const LINE_LIMIT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown_with_both_lines() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        for (found, expected, hint) in [
            ("a\nx\nc\n", "a\nb\nc\n", "line 2 is `x` where the results give `b`"),
            ("a\n", "a\nb\n", "line 2 is the end where the results give `b`"),
            ("a\nb\n", "a\n", "line 2 is `b` where the results give the end"),
            ("a\r\n", "a\n", "line ends differ"),
            ("a", "a\n", "line ends differ"),
        ] {
            assert_eq!(first_difference(found, expected).as_deref(), Some(hint), "{found:?}");
        }
    }

    #[test]
    fn a_report_stands_beside_its_results_or_in_the_folder_asked_for() {
        assert_eq!(target("reports/X.json".as_ref(), None, "md"), PathBuf::from("reports/X.md"));
        assert_eq!(target("reports/X.json".as_ref(), Some("o".as_ref()), "html"), PathBuf::from("o/X.html"));
    }
}
