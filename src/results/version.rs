//! Owns the format number of the results file, its history, and the rule of what may be read.

/// Format written by this version: `major.minor`.
pub const FORMAT: &str = "1.0";
