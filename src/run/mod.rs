//! Owns the orchestrator: servers, sections, cells and rounds in order; the generator is a child.

mod cell;
#[cfg(test)]
mod fixture;
mod generator;
mod interrupt;
mod plan;
mod probe;
mod schedule;
