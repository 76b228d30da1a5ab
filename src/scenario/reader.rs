//! Owns strict reading of TOML: known keys only, values of the right type, each with its place.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;

use toml::de::{DeTable, DeValue};

use super::ScenarioError;
use super::keys::{TABLES, TableKeys};
use super::source::{At, Place, Source};
use super::suggest::{instead, nearest};
use crate::time::Span;
use crate::units::parse_duration;

/// A value that is not yet known to be of the right type.
#[derive(Clone)]
pub(super) struct Value<'a> {
    toml: &'a DeValue<'a>,
    pub(super) place: Place,
}

/// A table all of whose keys are known.
pub(super) struct Table<'a> {
    toml: &'a DeTable<'a>,
    pub(super) place: Place,
}

/// What can be read from one TOML value.
pub(super) trait FromToml: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// A value of another type, or out of range, with what to write instead.
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError>;
}

/// Parses the text of a file; `then` gets its top-level table, unchecked.
///
/// # Errors
/// The first mistake of TOML itself, or what `then` finds.
pub(super) fn with_document<T>(
    source: &Rc<Source>,
    then: impl FnOnce(&Value<'_>) -> Result<T, ScenarioError>,
) -> Result<T, ScenarioError> {
    let start = Place::start_of(source);
    let document = DeTable::parse(source.text()).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let place = start.moved(span.start);
        let what = error.message().replace('\n', ", ");
        match source.text().get(span).filter(|piece| !piece.is_empty() && !piece.contains('\n')) {
            Some(piece) => place.mistake(format_args!("not valid TOML: {what}, at `{piece}`")),
            None => place.mistake(format_args!("not valid TOML: {what}")),
        }
    })?;
    let table = DeValue::Table(document.into_inner());
    then(&Value { toml: &table, place: start })
}

impl<'a> Value<'a> {
    /// The table that stands here, after a check that it has only `known` keys.
    ///
    /// # Errors
    /// The first unknown key in the text, with the key it was likely meant to be.
    pub(super) fn table(&self, known: TableKeys) -> Result<Table<'a>, ScenarioError> {
        let DeValue::Table(toml) = self.toml else {
            return Err(self.wrong_type("a table", format_args!("its keys are {}", known.keys.join(", "))));
        };
        let unknown = toml
            .keys()
            .filter(|key| !known.keys.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        if let Some(key) = unknown {
            let place = self.place.child(key.get_ref(), key.span().start);
            return Err(place.mistake(unknown_key(key.get_ref(), known)));
        }
        Ok(Table { toml, place: self.place.clone() })
    }

    /// An entry of the table that stands here, whatever the others are; `None` without one.
    pub(super) fn entry(&self, key: &str) -> Option<Self> {
        let DeValue::Table(toml) = self.toml else { return None };
        Table { toml, place: self.place.clone() }.value(key)
    }

    /// The text, when this is a string.
    pub(super) fn as_str(&self) -> Option<&'a str> {
        self.toml.as_str()
    }

    /// The elements, when this is an array.
    pub(super) fn as_array(&self) -> Option<Vec<Self>> {
        let DeValue::Array(array) = self.toml else { return None };
        let element = |(index, toml): (usize, &'a toml::Spanned<DeValue<'a>>)| Self {
            toml: toml.get_ref(),
            place: self.place.element(index, toml.span().start),
        };
        Some(array.iter().enumerate().map(element).collect())
    }

    pub(super) fn is_integer(&self) -> bool {
        self.toml.is_integer()
    }

    pub(super) fn is_table(&self) -> bool {
        self.toml.is_table()
    }

    /// The mistake of a value that should have been `wanted`.
    pub(super) fn wrong_type(&self, wanted: &str, instead: impl Display) -> ScenarioError {
        let found = match self.toml {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.place.mistake(format_args!("{found} where {wanted} belongs; {instead}"))
    }
}

impl<'a> Table<'a> {
    /// The value of `key`, of whatever type.
    pub(super) fn value(&self, key: &str) -> Option<Value<'a>> {
        let value = self.toml.get(key)?;
        Some(Value { toml: value.get_ref(), place: self.place.child(key, value.span().start) })
    }

    /// The value of `key`; `None` when it is not there.
    ///
    /// # Errors
    /// Those of the value's type.
    pub(super) fn get<T: FromToml>(&self, key: &str) -> Result<Option<At<T>>, ScenarioError> {
        self.value(key).map(|value| at(&value)).transpose()
    }

    /// The place of `key` itself, for mistakes that are about its being there.
    pub(super) fn key_place(&self, key: &str) -> Option<Place> {
        let (found, _) = self.toml.get_key_value(key)?;
        Some(self.place.child(key, found.span().start))
    }
}

fn at<T: FromToml>(value: &Value<'_>) -> Result<At<T>, ScenarioError> {
    Ok(At { value: T::from_toml(value)?, place: value.place.clone() })
}

fn unknown_key(key: &str, known: TableKeys) -> String {
    let elsewhere = TABLES.iter().find(|other| other.table != known.table && other.keys.contains(&key));
    match (nearest(key, known.keys), elsewhere) {
        (Some(near), Some(other)) => {
            format!("unknown key; did you mean `{near}`? `{key}` itself belongs in {}", other.table)
        }
        (Some(near), None) => format!("unknown key; did you mean `{near}`?"),
        (None, Some(other)) => format!("unknown key in {}; it belongs in {}", known.table, other.table),
        (None, None) => format!("unknown key; {} takes {}", known.table, known.keys.join(", ")),
    }
}

/// Reads a word that stands for one of `names`; `what` is the kind of thing they name.
///
/// # Errors
/// A value that is no string, or no such name, with the nearest or all names.
pub(super) fn one_of<T: Copy>(
    value: &Value<'_>,
    what: &str,
    names: &[(&str, T)],
) -> Result<T, ScenarioError> {
    let word = String::from_toml(value)?;
    if let Some((_, found)) = names.iter().find(|(name, _)| *name == word) {
        return Ok(*found);
    }
    let all: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    Err(value.place.mistake(format_args!("unknown {what} `{word}`; {}", instead(&word, &all))))
}

impl FromToml for String {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let Some(text) = value.as_str() else {
            return Err(value.wrong_type("a string", "write it in quotes"));
        };
        if text.contains('\0') {
            return Err(value.place.mistake("holds a NUL character; leave it out"));
        }
        Ok(text.to_owned())
    }
}

impl FromToml for i64 {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let DeValue::Integer(integer) = value.toml else {
            return Err(value.wrong_type("an integer", "write a whole number without quotes"));
        };
        Self::from_str_radix(integer.as_str(), integer.radix())
            .map_err(|_| value.place.mistake("beyond 64 bits; write a smaller number"))
    }
}

impl FromToml for f64 {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let number = match value.toml {
            DeValue::Float(float) => float.as_str().parse().unwrap_or(Self::NAN),
            DeValue::Integer(_) => i64::from_toml(value)? as Self,
            _ => return Err(value.wrong_type("a number", "write it without quotes")),
        };
        if number.is_finite() {
            Ok(number)
        } else {
            Err(value.place.mistake("not a finite number; write one like `99.9`"))
        }
    }
}

impl FromToml for bool {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        value.toml.as_bool().ok_or_else(|| value.wrong_type("a boolean", "write `true` or `false`"))
    }
}

impl FromToml for Span {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        if let DeValue::Integer(number) = value.toml {
            return Err(value.wrong_type("a duration", format_args!("give it a unit, like `\"{number}s\"`")));
        }
        parse_duration(&String::from_toml(value)?).map_err(|what| value.place.mistake(what))
    }
}

impl<T: FromToml> FromToml for Vec<At<T>> {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let Some(elements) = value.as_array() else {
            let instead = match value.toml {
                DeValue::String(text) => text.split_whitespace().map(|word| format!("{word:?}")).collect(),
                DeValue::Integer(number) => vec![number.to_string()],
                DeValue::Float(number) => vec![number.as_str().to_owned()],
                _ => Vec::new(),
            };
            let instead = format!("write it in brackets, like `[{}]`", instead.join(", "));
            return Err(value.wrong_type("an array", instead));
        };
        elements.iter().map(at).collect()
    }
}

impl FromToml for BTreeMap<String, At<String>> {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let DeValue::Table(toml) = value.toml else {
            return Err(value.wrong_type("a table", "write it like `{ NAME = \"value\" }`"));
        };
        let table = Table { toml, place: value.place.clone() };
        let mut map = Self::new();
        for key in toml.keys() {
            let key = key.get_ref().as_ref();
            if let Some(entry) = table.get(key)? {
                map.insert(key.to_owned(), entry);
            }
        }
        Ok(map)
    }
}
