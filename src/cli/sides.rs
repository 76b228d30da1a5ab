//! Owns what the sides of a comparison are: results files, folders of them, revisions, named by one
//! argument each, and which reports of both belong together.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::git::{GitError, Repository};
use crate::results::{Results, store};

/// The reports of one side.
#[derive(Debug)]
pub(super) struct Side {
    /// What the user named it.
    pub name: String,
    pub reports: Vec<Report>,
    /// True when one report was named, so that the other side's others are not asked for.
    one: bool,
}

/// A report of a side.
#[derive(Debug)]
pub(super) struct Report {
    /// Its file name, by which it finds its counterpart.
    pub file: String,
    /// Where it is: a path, or `REV:path`.
    pub name: String,
    pub results: Results,
}

/// Reports of both sides.
#[derive(Debug, Default)]
pub(super) struct Paired {
    pub pairs: Vec<(Report, Report)>,
    /// File names of reports that the base alone has.
    pub missing: Vec<String>,
    /// File names of reports that the head alone has.
    pub new: Vec<String>,
}

/// Reads what an argument names: a path that exists, `REV:path`, or a revision, of which the reports are those of
/// the folder `reports`.
///
/// # Errors
/// It names nothing, or what it names cannot be read.
pub(super) fn read(argument: &str, reports: &Path) -> Result<Side, String> {
    let path = Path::new(argument);
    let (reports, one) = if path.is_dir() {
        (folder(path)?, false)
    } else if path.exists() {
        let results = store::load(path).map_err(told)?;
        (vec![Report { file: file_name(argument), name: argument.to_owned(), results }], true)
    } else {
        revision(argument, reports)?
    };
    if reports.is_empty() {
        return Err(format!(
            "{argument} has no results files (*.json); `bench run` writes them, --reports says where they are"
        ));
    }
    Ok(Side { name: argument.to_owned(), reports, one })
}

/// The reports of both sides by file name. Where each side is one report, these two belong together
/// whatever their names; where one side is, the other's others are left out.
///
/// # Errors
/// No report is on both sides.
pub(super) fn pair(mut base: Side, mut head: Side) -> Result<Paired, String> {
    if base.one && head.one {
        let pairs = base.reports.into_iter().zip(head.reports).collect();
        return Ok(Paired { pairs, ..Paired::default() });
    }
    let none = format!(
        "no report is on both sides: {} has {}; {} has {}",
        base.name,
        files(&base),
        head.name,
        files(&head)
    );
    if base.one {
        head.reports.retain(|report| report.file == base.reports[0].file);
    } else if head.one {
        base.reports.retain(|report| report.file == head.reports[0].file);
    }
    let mut paired = Paired::default();
    let mut earlier = base.reports;
    for later in head.reports {
        match earlier.iter().position(|report| report.file == later.file) {
            Some(at) => paired.pairs.push((earlier.remove(at), later)),
            None => paired.new.push(later.file),
        }
    }
    paired.missing = earlier.into_iter().map(|report| report.file).collect();
    if paired.pairs.is_empty() { Err(none) } else { Ok(paired) }
}

/// Every results file of a folder, by name.
fn folder(path: &Path) -> Result<Vec<Report>, String> {
    let unreadable = |error: std::io::Error| format!("{}: cannot be read: {error}", path.display());
    let entries = fs::read_dir(path).map_err(unreadable)?.collect::<Result<Vec<_>, _>>();
    let mut files: Vec<PathBuf> = entries.map_err(unreadable)?.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json") && file.is_file());
    files.sort();
    let load = |file: &PathBuf| {
        let name = file.display().to_string();
        match store::load(file) {
            Err(_) if fs::read_to_string(file).is_ok_and(|text| is_something_else(&text)) => {
                left_out(&name);
                None
            }
            results => {
                Some(results.map(|results| Report { file: file_name(&name), name, results }).map_err(told))
            }
        }
    };
    files.iter().filter_map(load).collect()
}

/// What `REV:path` or a revision has, and whether it is one report by name.
fn revision(argument: &str, reports: &Path) -> Result<(Vec<Report>, bool), String> {
    let neither = |GitError(why): GitError| {
        format!(
            "`{argument}` is neither a file or folder here nor a revision: {why}; name a results file, a folder of \
             them, a revision, or REV:path"
        )
    };
    let repository = Repository::containing(Path::new(".")).map_err(neither)?;
    // A revision can have a colon in it too, as in `HEAD^{/fix: this}`.
    let at = argument.split_once(':').filter(|(revision, _)| !revision.is_empty());
    let at = at.and_then(|(revision, path)| Some((repository.resolve(revision).ok()?, revision, path)));
    let (commit, revision, path) = match at {
        Some((commit, revision, path)) => {
            // As git has it: from the root, unless it says that it is from here.
            let here = path.starts_with("./") || path.starts_with("../");
            let path =
                if here { repository.relative(Path::new(path)).map_err(told)? } else { path.to_owned() };
            (commit, revision, path)
        }
        None => {
            let commit = repository.resolve(argument).map_err(neither)?;
            (commit, argument, repository.relative(reports).map_err(told)?)
        }
    };
    let path = path.trim_end_matches('/');
    let found = repository.files(&commit, path).map_err(told)?;
    let read = |file: &str| -> Result<Option<Report>, String> {
        let name = format!("{revision}:{file}");
        let bytes = repository.read(&commit, file).map_err(told)?;
        let text = String::from_utf8(bytes).map_err(|_| {
            format!("{name}: not UTF-8, so not a results file; name a .json file that `bench run` wrote")
        })?;
        match store::parse(&text) {
            Err(_) if found.len() > 1 && is_something_else(&text) => {
                left_out(&name);
                Ok(None)
            }
            Err(what) => Err(format!("{name}: {what}")),
            Ok(results) => Ok(Some(Report { file: file_name(file), name, results })),
        }
    };
    if found == [path.to_owned()] {
        return Ok((read(path)?.into_iter().collect(), true));
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let below = |file: &str| {
        file.strip_prefix(&prefix).is_some_and(|rest| rest.ends_with(".json") && !rest.contains('/'))
    };
    let files: Vec<&String> = found.iter().filter(|file| below(file)).collect();
    if files.is_empty() {
        let place = if path.is_empty() { "its topmost folder" } else { path };
        return Err(format!(
            "{revision} has no results files (*.json) in {place}; --reports DIR or REV:path says where they are"
        ));
    }
    let reports: Result<Vec<_>, _> = files.iter().map(|file| read(file)).collect();
    Ok((reports?.into_iter().flatten().collect(), false))
}

/// True for JSON that does not claim to be a results file. What is damaged may have been one.
fn is_something_else(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Claim {
        format: Option<IgnoredAny>,
        sections: Option<IgnoredAny>,
    }
    match serde_json::from_str::<Claim>(text) {
        Ok(claim) => claim.format.is_none() && claim.sections.is_none(),
        Err(error) => error.is_data(),
    }
}

fn left_out(name: &str) {
    eprintln!("note: {name} is left out: it is no results file");
}

fn files(side: &Side) -> String {
    side.reports.iter().map(|report| report.file.as_str()).collect::<Vec<_>>().join(", ")
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
