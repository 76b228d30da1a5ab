//! Owns which servers of a table had how many worker threads: CPU time per request rises with them, so
//! it is compared between equal numbers only.

use super::Sheet;
use crate::results::{Results, ServerRecord};

/// The worker threads a server was told to use.
pub(in crate::report) fn worker_threads(results: &Results, server: &ServerRecord) -> u32 {
    server.workers.unwrap_or(results.settings.workers)
}

impl Sheet<'_> {
    /// True when all servers of the table were told the same number.
    pub(super) fn equal_workers(&self) -> bool {
        let mut numbers = self.rows.iter().map(|row| worker_threads(self.results, row.server));
        let first = numbers.next();
        numbers.all(|number| Some(number) == first)
    }
}
