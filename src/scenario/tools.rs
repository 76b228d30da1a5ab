//! Owns what a scenario runs once beside its servers: probes (`[[probe]]`) and the gate of a server; and the
//! patterns by which figures are lifted from the output of a command.

use std::collections::BTreeMap;

use regex::Regex;

use super::ScenarioError;
use super::expand::{Files, one_line};
use super::file::Maybe;
use super::keys::{self, TableKeys};
use super::reader::{FromToml, Value};
use super::servers::{STARTED, check_env, check_name, check_words, plain, words};
use super::settings::positive;
use super::source::{At, Place};
use crate::results::Protocol;
use crate::time::Span;

/// A regular expression with one group: the figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(String);

/// A command that is run for figures of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeSpec {
    /// Unique name.
    pub name: String,
    /// Name in the table.
    pub label: String,
    /// The command.
    pub command: Vec<String>,
    /// Programs that must be there.
    pub requires: Vec<String>,
    /// Command whose first output line is its version; empty: none.
    pub version: Vec<String>,
    /// Longest run.
    pub deadline: Span,
    /// Environment added to the harness's own.
    pub env: BTreeMap<String, String>,
    /// What is lifted from its output.
    pub figures: Vec<FigureSpec>,
    /// Working directory: the scenario's folder. Absolute.
    pub dir: String,
}

/// One figure of a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FigureSpec {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a bare number.
    pub unit: String,
    /// Where it stands.
    pub pattern: Pattern,
}

/// A command that is to succeed against a server before the server may be best.
#[derive(Clone, PartialEq, Debug)]
pub struct GateSpec {
    /// The command, with the placeholders of a server.
    pub command: Vec<String>,
    /// Programs that must be there; without them it is not run.
    pub requires: Vec<String>,
    /// Protocol whose port `{port}` is, and by which the server is found ready.
    pub protocol: Protocol,
    /// Longest run.
    pub deadline: Span,
    /// Environment added to the harness's own.
    pub env: BTreeMap<String, String>,
}

impl Pattern {
    /// What its group matches first in `text`.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let pattern = Regex::new(&self.0).expect("it was compiled when the scenario was checked");
        pattern.captures(text)?.get(1).map(|group| group.as_str())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `[[probe]]` as it was read.
pub(super) struct RawProbe {
    place: Place,
    name: Maybe<String>,
    label: Maybe<String>,
    command: Maybe<Vec<At<String>>>,
    requires: Maybe<Vec<At<String>>>,
    version: Maybe<Vec<At<String>>>,
    deadline: Maybe<Span>,
    env: BTreeMap<String, At<String>>,
    figures: Vec<RawFigure>,
}

struct RawFigure {
    place: Place,
    name: Maybe<String>,
    unit: Maybe<String>,
    pattern: Maybe<Pattern>,
}

/// `gate` of a server as it was read.
#[derive(Clone)]
pub(super) struct RawGate {
    place: Place,
    command: Maybe<Vec<At<String>>>,
    requires: Maybe<Vec<At<String>>>,
    protocol: Maybe<Protocol>,
    deadline: Maybe<Span>,
    env: BTreeMap<String, At<String>>,
}

impl RawProbe {
    pub(super) fn read(value: &Value<'_>, known: TableKeys) -> Result<Self, ScenarioError> {
        let table = value.table(known)?;
        let figures = match table.value("figures") {
            None => Vec::new(),
            Some(value) => match value.as_array() {
                Some(elements) => elements.iter().map(RawFigure::read).collect::<Result<_, _>>()?,
                None => {
                    return Err(value.wrong_type("a list of tables", FIGURES_LIKE));
                }
            },
        };
        Ok(Self {
            place: table.place.clone(),
            name: table.get("name")?,
            label: table.get("label")?,
            command: table.get("command")?,
            requires: table.get("requires")?,
            version: table.get("version")?,
            deadline: table.get("deadline")?,
            env: table.get("env")?.map(|env| env.value).unwrap_or_default(),
            figures,
        })
    }
}

impl RawFigure {
    fn read(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let table = value.table(keys::FIGURES)?;
        Ok(Self {
            place: table.place.clone(),
            name: table.get("name")?,
            unit: table.get("unit")?,
            pattern: table.get("pattern")?,
        })
    }
}

impl RawGate {
    pub(super) fn read(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let table = value.table(keys::GATE)?;
        Ok(Self {
            place: table.place.clone(),
            command: table.get("command")?,
            requires: table.get("requires")?,
            protocol: table.get("protocol")?,
            deadline: table.get("deadline")?,
            env: table.get("env")?.map(|env| env.value).unwrap_or_default(),
        })
    }

    /// Checks the gate of a server that offers `protocols`; `config` when it renders a file.
    pub(super) fn check(
        &self,
        protocols: &At<Vec<At<Protocol>>>,
        config: bool,
    ) -> Result<GateSpec, ScenarioError> {
        let command = self.command.as_ref().ok_or_else(|| {
            self.place.missing("command").mistake("missing; say what is to succeed, word by word")
        })?;
        check_words(command, STARTED, config)?;
        check_env(&self.env, STARTED, config)?;
        let offered: Vec<Protocol> = protocols.value.iter().map(|protocol| protocol.value).collect();
        let protocol = match &self.protocol {
            Some(protocol) if !offered.contains(&protocol.value) => {
                return Err(protocol.mistake(format_args!(
                    "the server does not offer {}; write one of {}",
                    protocol.value.name(),
                    offered.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(", ")
                )));
            }
            Some(protocol) => protocol.value,
            None => offered[0],
        };
        Ok(GateSpec {
            command: plain(command),
            requires: words(&self.requires, &[], false)?,
            protocol,
            deadline: positive(&self.deadline)?.unwrap_or(DEFAULT_DEADLINE),
            env: plain_env(&self.env),
        })
    }
}

/// Checks the probes.
///
/// # Errors
/// The first mistake.
pub(super) fn probes(raw: &[RawProbe], files: &Files<'_>) -> Result<Vec<ProbeSpec>, ScenarioError> {
    let mut specs: Vec<ProbeSpec> = Vec::with_capacity(raw.len());
    for probe in raw {
        let spec = probe.check(files)?;
        if specs.iter().any(|other| other.name == spec.name) {
            let place = probe.name.as_ref().map_or(&probe.place, |name| &name.place);
            return Err(place.mistake(format_args!(
                "there is a probe `{}` already; give this one another name",
                spec.name
            )));
        }
        specs.push(spec);
    }
    Ok(specs)
}

impl RawProbe {
    fn check(&self, files: &Files<'_>) -> Result<ProbeSpec, ScenarioError> {
        let missing =
            |key: &str, what: &str| self.place.missing(key).mistake(format_args!("missing; {what}"));
        let name = self.name.as_ref().ok_or_else(|| missing("name", "name the probe"))?;
        check_name(name, "probe")?;
        let command =
            self.command.as_ref().ok_or_else(|| missing("command", "say what is run, word by word"))?;
        check_words(command, OF_PROBE, false)?;
        check_env(&self.env, OF_PROBE, false)?;
        if self.figures.is_empty() {
            return Err(missing("figures", FIGURES_LIKE));
        }
        let mut figures: Vec<FigureSpec> = Vec::with_capacity(self.figures.len());
        for raw in &self.figures {
            let missing =
                |key: &str, what: &str| raw.place.missing(key).mistake(format_args!("missing; {what}"));
            let name = raw.name.as_ref().ok_or_else(|| missing("name", "name the figure"))?;
            let pattern = raw
                .pattern
                .as_ref()
                .ok_or_else(|| missing("pattern", "write a regular expression whose group is the figure"))?;
            if figures.iter().any(|other| other.name == name.value) {
                return Err(name.mistake("names two figures of this probe; give each its own name"));
            }
            figures.push(FigureSpec {
                name: one_line(name)?,
                unit: raw.unit.as_ref().map_or(Ok(String::new()), one_line)?,
                pattern: pattern.value.clone(),
            });
        }
        Ok(ProbeSpec {
            label: self.label.as_ref().map_or(Ok(name.value.clone()), one_line)?,
            name: name.value.clone(),
            command: plain(command),
            requires: words(&self.requires, &[], false)?,
            version: words(&self.version, OF_PROBE, false)?,
            deadline: positive(&self.deadline)?.unwrap_or(DEFAULT_DEADLINE),
            env: plain_env(&self.env),
            figures,
            dir: folder(files),
        })
    }
}

impl FromToml for Pattern {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let text = String::from_toml(value)?;
        let pattern = Regex::new(&text).map_err(|error| {
            // The last line of its messages says what is wrong, the others draw where.
            let error = error.to_string();
            let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            value
                .place
                .mistake(format_args!("not a regular expression: {what}; correct it, see docs.rs/regex"))
        })?;
        match pattern.captures_len() - 1 {
            1 => Ok(Self(text)),
            groups => Err(value.place.mistake(format_args!(
                "{groups} groups where the one is the figure; write `( )` around it, and `(?: )` around others"
            ))),
        }
    }
}

fn plain_env(env: &BTreeMap<String, At<String>>) -> BTreeMap<String, String> {
    env.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect()
}

/// The scenario's folder, in which its commands run.
pub(super) fn folder(files: &Files<'_>) -> String {
    files.scenario_dir().to_string_lossy().into_owned()
}

/// Placeholders of a probe.
const OF_PROBE: &[&str] = &["dir"];

const FIGURES_LIKE: &str = "say what is lifted from the output, like `[{ name = \"sign\", unit = \"1/s\", pattern = '(\\S+) sign/s' }]`";

/// Many times what a benchmark of a library or a protocol test takes, and no more than a user waits.
const DEFAULT_DEADLINE: Span = Span::from_secs(60);
