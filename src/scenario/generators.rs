//! Owns the load generators that a scenario compares, `[[generator]]`: what is known of five of them, how
//! any other is described, and their part in sections of kind `generators`.

use super::ScenarioError;
use super::expand::{Files, one_line};
use super::file::Maybe;
use super::keys::{self, TableKeys};
use super::model::{Cell, Scenario, Section, SectionLimit, ServerSpec};
use super::reader::{FromToml, Value, one_of};
use super::servers::{self, check_name, check_protocols, check_words, plain, words};
use super::source::{At, Place};
use super::suggest::instead;
use super::tools::{Pattern, folder};
use crate::results::Protocol::{self, H1, H1s, H2, H2c, H3};
use crate::results::{GeneratorKind, SectionKind};

/// A load generator of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct GeneratorSpec {
    /// Unique name.
    pub name: String,
    /// Name in tables.
    pub label: String,
    /// How its output is read.
    pub kind: GeneratorKind,
    /// Its command, with the placeholders of [`GENERATOR_PLACEHOLDERS`].
    pub command: Vec<String>,
    /// Programs that must be there.
    pub requires: Vec<String>,
    /// What it can drive.
    pub protocols: Vec<Protocol>,
    /// Command whose first output line is its version; empty: none.
    pub version: Vec<String>,
    /// How the output of a generator that is not known is read.
    pub output: Option<OutputSpec>,
    /// Working directory: the scenario's folder. Absolute.
    pub dir: String,
}

/// Where the figures of a generator stand in its output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputSpec {
    /// Count of ok responses.
    pub ok: Pattern,
    /// Count of failed requests.
    pub failed: Option<Pattern>,
    /// Rate.
    pub requests_per_second: Pattern,
    /// Mean latency.
    pub latency_mean: Option<Pattern>,
    /// Largest latency.
    pub latency_max: Option<Pattern>,
    /// Percentiles, by their keys in results: `99.9`.
    pub percentiles: Vec<(&'static str, Pattern)>,
    /// What a latency without a unit of its own is in.
    pub unit: LatencyUnit,
}

/// Unit of a latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatencyUnit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
}

/// Placeholders of a generator's command, with their meaning.
pub const GENERATOR_PLACEHOLDERS: &[(&str, &str)] = &[
    ("url", "what is asked for: scheme, host, port, path"),
    ("protocol", "the protocol's name: `h1`, `h1s`, `h2c`, `h2`, `h3`"),
    ("connections", "C"),
    ("concurrency", "M, requests at a time on each connection"),
    ("threads", "threads to use, at most C"),
    ("cpus", "the CPUs it is pinned to, like `2-3`; empty when unpinned"),
    ("duration_s", "length of its run in seconds, like `10` or `0.5`"),
    ("dir", "folder of the scenario"),
];

/// In the command of a known generator: the program this is.
pub const OWN_PROGRAM: &str = "{bench}";

/// In the command of a known generator: the words that choose the protocol, see [`protocol_flags`].
pub const PROTOCOL_FLAGS: &str = "{protocol_flags}";

/// What is known of a generator.
struct Known {
    name: &'static str,
    kind: GeneratorKind,
    /// Its program, and what every run of it is told before and after the words of the protocol.
    command: (&'static [&'static str], &'static [&'static str]),
    version: &'static [&'static str],
    /// What it drives as it is commonly built; see [`protocol_flags`] for what it can be built with.
    protocols: &'static [Protocol],
}

const KNOWN: &[Known] = &[
    Known {
        name: "builtin",
        kind: GeneratorKind::Builtin,
        command: (
            // One that polls uses all of its CPUs whatever it is asked for: its cost would compare nothing.
            &[OWN_PROGRAM, "load", "--json", "--wait", "sleep", "-c", "{connections}", "-m", "{concurrency}"],
            &["-t", "{threads}", "-z", "{duration_s}s"],
        ),
        version: &["--version"],
        protocols: &Protocol::ALL,
    },
    Known {
        name: "shb",
        kind: GeneratorKind::Shb,
        command: (&["shb", "--json", "-c", "{connections}"], &["-t", "{threads}", "-z", "{duration_s}s"]),
        // It has no option for it.
        version: &[],
        protocols: &Protocol::ALL,
    },
    Known {
        name: "h2load",
        kind: GeneratorKind::H2load,
        command: (
            &["h2load", "-c", "{connections}", "-m", "{concurrency}"],
            &["-t", "{threads}", "-D", "{duration_s}s"],
        ),
        version: &["--version"],
        protocols: &[H1, H1s, H2c, H2],
    },
    Known {
        name: "wrk",
        kind: GeneratorKind::Wrk,
        command: (&["wrk", "--latency", "-c", "{connections}"], &["-t", "{threads}", "-d", "{duration_s}s"]),
        version: &["-v"],
        protocols: &[H1, H1s],
    },
    Known {
        name: "oha",
        kind: GeneratorKind::Oha,
        command: (
            &["oha", "--no-tui", "--insecure", "--output-format", "json", "-c", "{connections}"],
            &["--worker-threads", "{threads}", "-z", "{duration_s}s"],
        ),
        version: &["--version"],
        protocols: &[H1, H1s, H2c, H2],
    },
];

/// The words by which a known generator is told the protocol; `None` when it cannot speak it.
pub fn protocol_flags(kind: GeneratorKind, protocol: Protocol) -> Option<&'static [&'static str]> {
    match (kind, protocol) {
        (GeneratorKind::Builtin, _) => Some(&["--protocol", "{protocol}"]),
        (GeneratorKind::Shb | GeneratorKind::Wrk | GeneratorKind::Oha, H1 | H1s) => Some(&[]),
        (GeneratorKind::Shb, H2c | H2) => Some(&["--http2", "-p", "{concurrency}"]),
        (GeneratorKind::Shb, H3) => Some(&["--http3", "-p", "{concurrency}"]),
        (GeneratorKind::H2load, H1 | H1s) => Some(&["--h1"]),
        (GeneratorKind::H2load, H2c | H2) => Some(&[]),
        (GeneratorKind::H2load, H3) => Some(&["--h3"]),
        (GeneratorKind::Oha, H2c | H2) => Some(&["--http2", "-p", "{concurrency}"]),
        (GeneratorKind::Oha, H3) => Some(&["--http-version", "3", "-p", "{concurrency}"]),
        (GeneratorKind::Wrk, H2c | H2 | H3) => None,
        (GeneratorKind::Command, _) => Some(&[]),
    }
}

/// `[[generator]]` as it was read.
pub(super) struct RawGenerator {
    place: Place,
    kind: Maybe<GeneratorKind>,
    name: Maybe<String>,
    label: Maybe<String>,
    program: Maybe<String>,
    args: Maybe<Vec<At<String>>>,
    command: Maybe<Vec<At<String>>>,
    requires: Maybe<Vec<At<String>>>,
    protocols: Maybe<Vec<At<Protocol>>>,
    version: Maybe<Vec<At<String>>>,
    output: Option<RawOutput>,
}

struct RawOutput {
    place: Place,
    ok: Maybe<Pattern>,
    failed: Maybe<Pattern>,
    requests_per_second: Maybe<Pattern>,
    latency_mean: Maybe<Pattern>,
    latency_max: Maybe<Pattern>,
    percentiles: Vec<(&'static str, Pattern)>,
    unit: Maybe<LatencyUnit>,
}

impl RawGenerator {
    pub(super) fn read(value: &Value<'_>, known: TableKeys) -> Result<Self, ScenarioError> {
        let table = value.table(known)?;
        Ok(Self {
            place: table.place.clone(),
            kind: table.get("kind")?,
            name: table.get("name")?,
            label: table.get("label")?,
            program: table.get("program")?,
            args: table.get("args")?,
            command: table.get("command")?,
            requires: table.get("requires")?,
            protocols: table.get("protocols")?,
            version: table.get("version")?,
            output: table.value("output").map(|value| RawOutput::read(&value)).transpose()?,
        })
    }
}

impl RawOutput {
    fn read(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let table = value.table(keys::OUTPUT)?;
        let mut percentiles = Vec::new();
        for (key, percentile) in PERCENTILES {
            if let Some(pattern) = table.get::<Pattern>(key)? {
                percentiles.push((*percentile, pattern.value));
            }
        }
        Ok(Self {
            place: table.place.clone(),
            ok: table.get("ok")?,
            failed: table.get("failed")?,
            requests_per_second: table.get("requests_per_second")?,
            latency_mean: table.get("latency_mean")?,
            latency_max: table.get("latency_max")?,
            percentiles,
            unit: table.get("unit")?,
        })
    }

    fn check(self) -> Result<OutputSpec, ScenarioError> {
        let needed = |pattern: Maybe<Pattern>, key: &str, what: &str| {
            pattern.map(|pattern| pattern.value).ok_or_else(|| {
                self.place.missing(key).mistake(format_args!(
                    "missing; say where {what} stands in the output, like `'{key}: (\\S+)'`"
                ))
            })
        };
        let plain = |pattern: Maybe<Pattern>| pattern.map(|pattern| pattern.value);
        Ok(OutputSpec {
            ok: needed(self.ok, "ok", "the number of ok responses")?,
            failed: plain(self.failed),
            requests_per_second: needed(self.requests_per_second, "requests_per_second", "the rate")?,
            latency_mean: plain(self.latency_mean),
            latency_max: plain(self.latency_max),
            percentiles: self.percentiles,
            unit: self.unit.map_or(LatencyUnit::Micros, |unit| unit.value),
        })
    }
}

/// Checks the generators.
///
/// # Errors
/// The first mistake.
pub(super) fn generators(
    raw: Vec<RawGenerator>,
    files: &Files<'_>,
) -> Result<Vec<GeneratorSpec>, ScenarioError> {
    let mut specs: Vec<GeneratorSpec> = Vec::with_capacity(raw.len());
    for generator in raw {
        let place = generator.name.as_ref().or(generator.label.as_ref()).map(|at| at.place.clone());
        let place = place.unwrap_or_else(|| generator.place.clone());
        let spec = generator.check(files)?;
        let taken = |other: &&GeneratorSpec| other.name == spec.name || other.label == spec.label;
        if let Some(other) = specs.iter().find(taken) {
            return Err(place.mistake(format_args!(
                "there is a generator `{}`, labelled {:?}, already; give this one another `name` and `label`",
                other.name, other.label
            )));
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// Gives each cell of the `generators` sections to each of the generators.
///
/// # Errors
/// Generators without such a section, and the other way round; what such a section cannot have.
pub(super) fn distribute(
    sections: &mut [Section],
    raw: &[super::file::RawSection],
    generators: &[GeneratorSpec],
    first: Option<&Place>,
) -> Result<(), ScenarioError> {
    let mut any = false;
    for (section, raw) in sections.iter_mut().zip(raw) {
        if section.kind != SectionKind::Generators {
            continue;
        }
        any = true;
        if generators.is_empty() {
            let place = raw.kind.as_ref().map_or(&raw.place, |kind| &kind.place);
            return Err(place.mistake("compares generators, and the scenario names none; add [[generator]]"));
        }
        let keys = [&raw.keys.requests, &raw.keys.resumption, &raw.keys.socket, &raw.keys.pacing];
        if let Some(place) = keys.into_iter().flatten().next() {
            return Err(place.mistake(
                "cannot be told to every generator; a generators section has `cells`, `duration` and `warmup`",
            ));
        }
        let of_each = |cell: &Cell| {
            let cell = *cell;
            (0..generators.len()).map(move |index| Cell { generator: Some(index), ..cell })
        };
        section.cells = section.cells.iter().flat_map(of_each).collect();
    }
    match first {
        Some(place) if !any => Err(place.mistake(
            "no section compares generators; write one with `kind = \"generators\"`, or leave this out",
        )),
        _ => Ok(()),
    }
}

impl RawGenerator {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    fn check(self, files: &Files<'_>) -> Result<GeneratorSpec, ScenarioError> {
        let kind = self.kind.as_ref().ok_or_else(|| {
            let names: Vec<&str> = kinds().iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            self.place.missing("kind").mistake(format_args!("missing; write one of {names}"))
        })?;
        let known = KNOWN.iter().find(|known| known.kind == kind.value);
        let name = match (&self.name, known) {
            (Some(name), _) => {
                check_name(name, "generator")?;
                name.value.clone()
            }
            (None, Some(known)) => known.name.to_owned(),
            (None, None) => {
                return Err(self.place.missing("name").mistake("missing; name the generator"));
            }
        };
        let (command, program) = self.command(known)?;
        let protocols = match (&self.protocols, known) {
            (Some(list), _) => {
                check_protocols(list)?;
                let unknown = |at: &&At<Protocol>| protocol_flags(kind.value, at.value).is_none();
                if let Some(at) = list.value.iter().find(unknown) {
                    return Err(
                        at.mistake(format_args!("{name} cannot speak {}; leave it out", at.value.name()))
                    );
                }
                list.value.iter().map(|protocol| protocol.value).collect()
            }
            (None, Some(known)) => known.protocols.to_vec(),
            (None, None) => {
                return Err(self
                    .place
                    .missing("protocols")
                    .mistake("missing; list what it can drive of h1, h1s, h2c, h2, h3"));
            }
        };
        let version = match (&self.version, known) {
            (Some(version), _) => {
                check_words(version, &[], false)?;
                plain(version)
            }
            (None, Some(known)) if !known.version.is_empty() => {
                let words = known.version.iter().map(|word| (*word).to_owned());
                [program.clone()].into_iter().chain(words).collect()
            }
            (None, _) => Vec::new(),
        };
        let requires = match &self.requires {
            Some(_) => words(&self.requires, &[], false)?,
            None if program == OWN_PROGRAM => Vec::new(),
            None => vec![program],
        };
        Ok(GeneratorSpec {
            label: self.label.as_ref().map_or(Ok(name.clone()), one_line)?,
            name,
            kind: kind.value,
            command,
            requires,
            protocols,
            version,
            output: self.output.map(RawOutput::check).transpose()?,
            dir: folder(files),
        })
    }

    /// Its whole command, and its program.
    fn command(&self, known: Option<&Known>) -> Result<(Vec<String>, String), ScenarioError> {
        let Some(known) = known else {
            for (at, key) in [
                (self.program.as_ref().map(|at| &at.place), "program"),
                (self.args.as_ref().map(|at| &at.place), "args"),
            ] {
                if let Some(place) = at {
                    return Err(place
                        .mistake(format_args!("`{key}` belongs to the known kinds; write it in `command`")));
                }
            }
            let command = self.command.as_ref().ok_or_else(|| {
                self.place.missing("command").mistake(
                    "missing; say how the generator is called, like `[\"ab\", \"-c\", \"{connections}\", \"{url}\"]`",
                )
            })?;
            if self.output.is_none() {
                return Err(self
                    .place
                    .missing("output")
                    .mistake("missing; say where `ok` and `requests_per_second` stand in what it prints"));
            }
            for word in &command.value {
                check_placeholders(word)?;
            }
            check_words_given(command)?;
            return Ok((plain(command), command.value[0].value.clone()));
        };
        let of_others =
            self.command.as_ref().map(|at| &at.place).or(self.output.as_ref().map(|output| &output.place));
        if let Some(place) = of_others {
            return Err(place.mistake(format_args!(
                "belongs to `kind = \"command\"`; how {0} is called and read is known, add words with `args`",
                known.name
            )));
        }
        let (before, after) = known.command;
        let mut command: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        if let Some(program) = &self.program {
            if program.value.is_empty() {
                return Err(program.mistake("an empty name; write the program, or leave it out"));
            }
            command[0].clone_from(&program.value);
        }
        let program = command[0].clone();
        let flags = |protocol: &Protocol| protocol_flags(known.kind, *protocol).unwrap_or_default();
        if known.protocols.iter().any(|protocol| !flags(protocol).is_empty()) {
            command.push(PROTOCOL_FLAGS.to_owned());
        }
        command.extend(after.iter().map(|word| (*word).to_owned()));
        for word in self.args.iter().flat_map(|args| &args.value) {
            check_placeholders(word)?;
            command.push(word.value.clone());
        }
        command.push("{url}".to_owned());
        Ok((command, program))
    }
}

impl Scenario {
    /// Why a cell of a section is not measured at a server, whatever the machine: for want of a protocol,
    /// or of something the generator cannot do. `None` when it is measured.
    pub fn obstacle(
        &self,
        section: &Section,
        server: &ServerSpec,
        protocol: Protocol,
        cell: Cell,
    ) -> Option<String> {
        section.obstacle(server, protocol).or_else(|| {
            let generator = &self.generators[cell.generator?];
            generator.obstacle(protocol, section.limit)
        })
    }
}

impl GeneratorSpec {
    fn obstacle(&self, protocol: Protocol, limit: SectionLimit) -> Option<String> {
        if !self.protocols.contains(&protocol) {
            return Some(format!("{} does not speak {}", self.label, protocol.name()));
        }
        let SectionLimit::Duration(window) = limit else { return None };
        let whole = window.as_nanos().is_multiple_of(1_000_000_000);
        (self.kind == GeneratorKind::Wrk && !whole)
            .then(|| format!("{} runs for whole seconds only", self.label))
    }
}

impl FromToml for GeneratorKind {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "kind of generator", &kinds())
    }
}

impl FromToml for LatencyUnit {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "unit", &[("us", Self::Micros), ("ms", Self::Millis), ("s", Self::Seconds)])
    }
}

/// Kinds of generator by name.
fn kinds() -> Vec<(&'static str, GeneratorKind)> {
    let known = KNOWN.iter().map(|known| (known.name, known.kind));
    known.chain([("command", GeneratorKind::Command)]).collect()
}

fn check_words_given(list: &At<Vec<At<String>>>) -> Result<(), ScenarioError> {
    match list.value.first() {
        Some(first) if !first.value.is_empty() => Ok(()),
        _ => Err(list.mistake("no program; write its name first")),
    }
}

/// Refuses `{word}` for words that a generator has no value for.
fn check_placeholders(word: &At<String>) -> Result<(), ScenarioError> {
    let known: Vec<&str> = GENERATOR_PLACEHOLDERS.iter().map(|(name, _)| *name).collect();
    match servers::placeholders(&word.value).find(|name| !known.contains(name)) {
        Some(name) => {
            Err(word.mistake(format_args!("unknown placeholder {{{name}}}; {}", instead(name, &known))))
        }
        None => Ok(()),
    }
}

/// Keys of percentiles, and their names in results.
const PERCENTILES: &[(&str, &str)] =
    &[("p50", "50"), ("p75", "75"), ("p90", "90"), ("p95", "95"), ("p99", "99"), ("p99_9", "99.9")];
