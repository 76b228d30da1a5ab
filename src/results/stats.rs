//! Owns the figures derived from raw rounds: medians, spread, Little's law, verdicts. Pure.

use super::{CellRecord, SectionKind, Settings, Summary};

/// Figures and verdict of a cell over its rounds (`docs/methodology.md`).
pub fn summarise(cell: &CellRecord, kind: SectionKind, settings: &Settings) -> Summary {
    let _ = (cell, kind, settings);
    unimplemented!("results helper")
}
