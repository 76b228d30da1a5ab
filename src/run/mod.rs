//! Owns the orchestrator: servers, sections, cells and rounds in order; the generator is a child.
