//! Owns how a results file is kept: read with every check, replaced atomically. The journal a run
//! appends to between two replacements is in `journal`; its names are re-exported here.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

pub use super::journal::{Entry, Journal, assemble};
use super::{Results, version};

/// Why a results file or journal could not be read or written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Reads a results file of any format this version may read.
///
/// # Errors
/// Names the file and what is wrong with it, and what to do.
pub fn load(path: &Path) -> Result<Results, StoreError> {
    let text = read(path).map_err(|e| {
        let hint = match e.kind() {
            io::ErrorKind::NotFound => "; `bench run` writes it",
            io::ErrorKind::IsADirectory => "; name the .json file in it",
            _ => "",
        };
        StoreError(format!("{}: cannot be read: {e}{hint}", path.display()))
    })?;
    parse(&text).map_err(|what| StoreError(format!("{}: {what}", path.display())))
}

/// Reads the text of a results file.
///
/// # Errors
/// A fragment: not JSON, not a results file, of a format that may not be read, or with a negative
/// figure in it.
pub fn parse(text: &str) -> Result<Results, String> {
    // The format is looked at first, alone: a file of another one may differ in any other way.
    #[derive(Deserialize)]
    struct Format {
        format: String,
    }
    let Format { format } = serde_json::from_str(text)
        .map_err(|e| format!("not a results file of bench: {e}; name a .json file that `bench run` wrote"))?;
    version::may_read(&format)?;
    let value: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
    if let Some(place) = negative_figure(&value) {
        let place = place.trim_start_matches('.');
        return Err(format!("`{place}` is negative, which no figure can be; the file is damaged"));
    }
    serde_json::from_str(text).map_err(|e| format!("does not follow format {format}: {e}"))
}

/// The text of a results file: what [`save`] writes.
///
/// # Errors
/// Names a figure that is not a number, infinite or negative: JSON has no way to keep the former,
/// and none of them is ever a result.
pub fn to_json(results: &Results) -> Result<String, String> {
    let mut text = serde_json::to_string_pretty(results)
        .map_err(|e| format!("results cannot be written as JSON: {e}"))?;
    text.push('\n');
    // A NaN or an infinity is written as `null` and so does not read back as what it was.
    match parse(&text) {
        Ok(read) if read == *results => Ok(text),
        Ok(_) => Err("a figure is not a number or infinite; this is a bug of bench".into()),
        Err(e) => Err(format!("results would not read back: {e}; this is a bug of bench")),
    }
}

/// Replaces `path` atomically: a reader, or a kill at any moment, sees the old file or the new one.
///
/// # Errors
/// Names the file and the cause.
pub fn save(path: &Path, results: &Results) -> Result<(), StoreError> {
    let text = to_json(results).map_err(|what| StoreError(format!("{}: {what}", path.display())))?;
    replace(path, text.as_bytes())
}

/// Replaces the file `path` by one of these bytes, atomically and durably: temporary file in the
/// same folder, fsync, rename, fsync of the folder.
///
/// # Errors
/// Names the file and the cause.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || -> io::Result<()> {
        let folder = folder(path);
        let mut file = tempfile::Builder::new()
            .prefix(".bench-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(&folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        File::open(&folder)?.sync_all()
    };
    write().map_err(|e| StoreError(format!("{}: cannot be written: {e}", path.display())))
}

/// The folder `path` stands in.
pub(super) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Reads a whole text file of at most [`SIZE_LIMIT`] bytes.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(SIZE_LIMIT + 1).read_to_string(&mut text)?;
    if read as u64 > SIZE_LIMIT {
        return Err(io::Error::other(format!("larger than {} MiB", SIZE_LIMIT >> 20)));
    }
    Ok(text)
}

/// The place of the first negative number, as `.sections[0].cells[2]…`. Only the distance of a
/// sample from its edge has a sign.
fn negative_figure(value: &Value) -> Option<String> {
    match value {
        Value::Number(n) if n.as_f64().is_some_and(|n| n < 0.0) => Some(String::new()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(i, item)| negative_figure(item).map(|rest| format!("[{i}]{rest}"))),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !key.ends_with("_offset_us"))
            .find_map(|(key, field)| negative_figure(field).map(|rest| format!(".{key}{rest}"))),
        _ => None,
    }
}

/// Removes a file and makes that last; one that is not there is no error.
///
/// # Errors
/// Names the file and the cause.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    let outcome = match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => Err(e),
        Ok(()) => File::open(folder(path)).and_then(|f| f.sync_all()),
    };
    outcome.map_err(|e| StoreError(format!("{}: cannot be removed: {e}", path.display())))
}

/// Far above any results file, far below what would exhaust a machine.
const SIZE_LIMIT: u64 = 512 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_file_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("X.json");
        assert!(load(&path).unwrap_err().0.contains("`bench run` writes it"));
        assert!(load(folder.path()).unwrap_err().0.contains("cannot be read"));
        for (text, part) in [
            ("", "not a results file"),
            ("[]", "not a results file"),
            ("{}", "missing field `format`"),
            (r#"{"format": "9.1"}"#, "use a newer bench"),
            (r#"{"format": "1.0"}"#, "does not follow format 1.0: missing field"),
            (r#"{"format": "1.0", "a": [{"b": {"c": [1, -2]}}]}"#, "`a[0].b.c[1]` is negative"),
            (r#"{"format": "1.0", "rate": 1e999}"#, "out of range"),
        ] {
            fs::write(&path, text).unwrap();
            let error = load(&path).unwrap_err().0;
            assert!(error.contains(part) && error.contains("X.json"), "{text}: {error}");
        }
    }

    #[test]
    fn a_replacement_leaves_one_file_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("X.md");
        for text in ["first", "second"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(&folder.path().join("absent/X.md"), b"").unwrap_err().0.contains("absent/X.md"));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
