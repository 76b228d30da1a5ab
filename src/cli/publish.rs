//! Owns how a report and its pictures come to stand on disk, and whether those on disk are the ones that
//! the results give.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::Report;
use crate::report::picture::{self, Theme};
use crate::results::store::{self, StoreError};

/// Writes the pictures of a report, then the report itself to `target`, and removes pictures of an earlier
/// one that it does not show.
pub(super) fn write(target: &Path, report: &Report) -> Result<(), StoreError> {
    let folder = folder(target);
    let files = files(report);
    if !files.is_empty() {
        fs::create_dir_all(&folder)
            .map_err(|e| StoreError(format!("{}: cannot be made: {e}", folder.display())))?;
    }
    for (name, svg) in &files {
        store::replace(&folder.join(name), svg.as_bytes())?;
    }
    store::replace(target, report.text.as_bytes())?;
    for path in stale(&folder, &files)? {
        store::remove(&path)?;
    }
    if files.is_empty() {
        // Fails where something of the user's is in it, which then stays.
        let _ = fs::remove_dir(&folder);
    }
    Ok(())
}

/// What is wrong with the pictures beside `target`, file by file; empty when nothing is.
pub(super) fn faults(target: &Path, report: &Report) -> Result<Vec<String>, StoreError> {
    let folder = folder(target);
    let files = files(report);
    let mut faults = Vec::new();
    for (name, svg) in &files {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(found) if found == svg.as_bytes() => {}
            Ok(_) => faults.push(format!("{}: is not what the results give", path.display())),
            Err(e) => faults.push(format!("{}: cannot be read: {e}", path.display())),
        }
    }
    let stale = stale(&folder, &files)?;
    faults.extend(stale.iter().map(|path| format!("{}: the report does not show it", path.display())));
    Ok(faults)
}

/// The folder of the pictures of the report at `target`.
fn folder(target: &Path) -> PathBuf {
    target.with_file_name(picture::folder(&name(target)))
}

/// The name of a report by its path: the file's without its ending.
pub(super) fn name(target: &Path) -> String {
    target.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Every picture by the name of its file.
fn files(report: &Report) -> Vec<(String, String)> {
    let both =
        |picture: &picture::Picture| Theme::ALL.map(|theme| (picture.file_name(theme), picture.svg(theme)));
    report.pictures.iter().flat_map(both).collect()
}

/// Pictures in the folder that are none of these, in order. Nothing that is named otherwise is ever one.
fn stale(folder: &Path, files: &[(String, String)]) -> Result<Vec<PathBuf>, StoreError> {
    let fault = |e: io::Error| StoreError(format!("{}: cannot be read: {e}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(fault(e)),
    };
    let mut stale = Vec::new();
    for entry in entries {
        let name = entry.map_err(fault)?.file_name();
        let is_picture = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_digit())
                && Theme::ALL.iter().any(|theme| name.ends_with(&format!("-{}.svg", theme.name())))
        };
        if name.to_str().is_some_and(is_picture) && files.iter().all(|(known, _)| name != known.as_str()) {
            stale.push(folder.join(name));
        }
    }
    stale.sort();
    Ok(stale)
}
