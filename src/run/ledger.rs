//! Owns what a run has found out so far: every entry goes to the journal the moment it is there, and
//! the results file is replaced after each cell. Both are folded from the same entries.

use std::fs;

use super::RunError;
use super::outputs::Outputs;
use crate::results::Results;
use crate::results::store::{self, Entry, Journal};

/// Where outcomes are kept: a [`Ledger`], or a list in tests.
pub(crate) trait Keep {
    /// Keeps one entry.
    ///
    /// # Errors
    /// When it cannot be kept: a run that cannot save its figures must not go on measuring.
    fn keep(&mut self, entry: Entry) -> Result<(), RunError>;

    /// Brings the results file up to date.
    ///
    /// # Errors
    /// As for [`Keep::keep`].
    fn save(&mut self) -> Result<(), RunError>;
}

/// The entries of a run, its journal and its results file.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    outputs: &'a Outputs,
    journal: Journal,
    entries: Vec<Entry>,
}

impl<'a> Ledger<'a> {
    /// Opens a session by its `plan`. `earlier` is what the session continues; when it is empty, the
    /// journal of an unfinished run is set aside.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(crate) fn open(outputs: &'a Outputs, earlier: Vec<Entry>, plan: Results) -> Result<Self, RunError> {
        let path = outputs.journal();
        let mut unwritten = Vec::new();
        if earlier.is_empty() {
            set_aside(outputs)?;
        } else if !path.exists() {
            unwritten = earlier.clone();
        }
        let mut ledger = Self { outputs, journal: Journal::open(&path)?, entries: earlier };
        for entry in &unwritten {
            ledger.journal.append(entry)?;
        }
        ledger.keep(Entry::Plan(Box::new(plan)))?;
        Ok(ledger)
    }

    /// The results so far.
    ///
    /// # Errors
    /// When the entries contradict each other, which is a bug.
    pub(crate) fn results(&self) -> Result<Results, RunError> {
        Ok(store::assemble(&self.entries)?)
    }

    /// Ends the session at time of day `at`: saves, and removes the journal of a run that is complete.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(crate) fn close(mut self, at: String) -> Result<Results, RunError> {
        self.keep(Entry::Finished { at })?;
        self.save()?;
        let results = self.results()?;
        if results.complete {
            store::remove(&self.outputs.journal())?;
        }
        Ok(results)
    }
}

impl Keep for Ledger<'_> {
    fn keep(&mut self, entry: Entry) -> Result<(), RunError> {
        self.journal.append(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn save(&mut self) -> Result<(), RunError> {
        Ok(store::save(&self.outputs.results(), &self.results()?)?)
    }
}

fn set_aside(outputs: &Outputs) -> Result<(), RunError> {
    match fs::rename(outputs.journal(), outputs.old_journal()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(RunError(format!(
            "{}: an unfinished run's journal cannot be set aside: {error}; remove it",
            outputs.journal().display()
        ))),
        _ => Ok(()),
    }
}
