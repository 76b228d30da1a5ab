//! Owns how results are kept: read, atomic replacement, and the journal that a run appends each
//! outcome to the moment it has it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Protocol, Results, RoundRecord, StartRecord};

/// Why a results file or journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Reads a results file of any format this version may read.
///
/// # Errors
/// Names the file and what is wrong with it, and what to do.
pub fn load(path: &Path) -> Result<Results, StoreError> {
    let _ = path;
    unimplemented!("results helper")
}

/// Replaces `path` atomically (temporary file, fsync, rename).
///
/// # Errors
/// Names the file and the cause.
pub fn save(path: &Path, results: &Results) -> Result<(), StoreError> {
    let _ = (path, results);
    unimplemented!("results helper")
}

/// One line of a journal, in the order of happening.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first line, and one more for each resumption: the run without any round.
    Plan(Box<Results>),
    /// A server was started and stopped.
    Start {
        /// Name of the server.
        server: String,
        /// The record.
        start: StartRecord,
    },
    /// A round of a cell has an outcome.
    Round {
        /// Index into `sections`.
        section: u32,
        /// Name of the server.
        server: String,
        /// Protocol.
        protocol: Protocol,
        /// C.
        connections: u32,
        /// M.
        concurrency: u32,
        /// The record.
        round: Box<RoundRecord>,
    },
}

/// An append-only file of [`Entry`] lines beside the results file.
#[derive(Debug)]
pub struct Journal {
    _path: PathBuf,
}

impl Journal {
    /// Opens `path` for appending, creating it.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { _path: path.into() })
    }

    /// Appends one line and syncs it to disk.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let _ = entry;
        unimplemented!("results helper")
    }

    /// Reads what is in `path`; a last line cut short by a kill is left out, any other bad line is
    /// an error. A missing file is an empty journal.
    ///
    /// # Errors
    /// Names the file, the line and the cause.
    pub fn read(path: &Path) -> Result<Vec<Entry>, StoreError> {
        let _ = path;
        unimplemented!("results helper")
    }
}
