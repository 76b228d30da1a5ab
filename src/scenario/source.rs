//! Owns where a value stands in its file, and the form of a mistake:
//! `file:line:column: key: what is wrong; suggestion`.

use std::fmt::Display;
use std::rc::Rc;

use super::ScenarioError;

/// The text of one file, with the name it has in messages.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    text: String,
}

/// A value's position and the dotted path of its key, e.g. `section[2].cells[1]`; numbers in it
/// count from 1, as `--section` does.
#[derive(Clone, Debug)]
pub(super) struct Place {
    source: Rc<Source>,
    offset: usize,
    key: String,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

impl Source {
    pub(super) fn new(name: String, text: String) -> Rc<Self> {
        Rc::new(Self { name, text })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte offset, both from 1; columns count characters, as editors do.
    fn position(&self, offset: usize) -> (usize, usize) {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl Place {
    pub(super) fn start_of(source: &Rc<Source>) -> Self {
        Self { source: Rc::clone(source), offset: 0, key: String::new() }
    }

    /// The place at `offset` of the same file, of the same key.
    pub(super) fn moved(&self, offset: usize) -> Self {
        Self { offset, ..self.clone() }
    }

    /// The place of `key` inside the table that stands here.
    pub(super) fn child(&self, key: &str, offset: usize) -> Self {
        let key = if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) };
        Self { source: Rc::clone(&self.source), offset, key }
    }

    /// The place of an element of the array that stands here; `index` counts from 0.
    pub(super) fn element(&self, index: usize, offset: usize) -> Self {
        Self { source: Rc::clone(&self.source), offset, key: format!("{}[{}]", self.key, index + 1) }
    }

    /// The place of a key that is missing from the table that stands here.
    pub(super) fn missing(&self, key: &str) -> Self {
        self.child(key, self.offset)
    }

    /// A mistake that stands here. `what` says what is wrong and, after a semicolon, what to do.
    pub(super) fn mistake(&self, what: impl Display) -> ScenarioError {
        let (line, column) = self.source.position(self.offset);
        let file = &self.source.name;
        let key = if self.key.is_empty() { String::new() } else { format!("{}: ", self.key) };
        ScenarioError(format!("{file}:{line}:{column}: {key}{what}"))
    }
}

impl<T> At<T> {
    /// A mistake in this value.
    pub(super) fn mistake(&self, what: impl Display) -> ScenarioError {
        self.place.mistake(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("s.toml".into(), "a = 1\nµs = 2\n".into());
        for (offset, expected) in
            [(0, (1, 1)), (4, (1, 5)), (6, (2, 1)), (7, (2, 1)), (8, (2, 2)), (99, (3, 1))]
        {
            assert_eq!(source.position(offset), expected, "offset {offset}");
        }
    }

    #[test]
    fn a_mistake_names_file_line_column_and_key() {
        let source = Source::new("s.toml".into(), "[run]\nrounds = 0\n".into());
        let place = Place::start_of(&source).child("run", 0).child("rounds", 15);
        assert_eq!(place.mistake("0 rounds").to_string(), "s.toml:2:10: run.rounds: 0 rounds");
        assert_eq!(Place::start_of(&source).mistake("empty").to_string(), "s.toml:1:1: empty");
    }
}
