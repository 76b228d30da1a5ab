//! Owns the raw scenario: what the TOML says, key by key and with its place, before any of it is
//! weighed against the rest or the machine.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ScenarioError;
use super::generators::RawGenerator;
use super::keys::{self, TableKeys};
use super::pin::parse_cpus;
use super::reader::{FromToml, Table, Value, one_of, with_document};
use super::source::{At, Place, Source};
use super::suggest::instead;
use super::tools::{RawGate, RawProbe};
use crate::results::{Protocol, Resumption, SectionKind, ServerOrder, SocketMode, WaitMode};
use crate::time::Span;

/// The format this version reads.
pub const FORMAT: i64 = 1;

/// Kinds of section by name.
pub(super) const KINDS: &[(&str, SectionKind)] = &[
    ("closed-loop", SectionKind::ClosedLoop),
    ("setup", SectionKind::Setup),
    ("ratio", SectionKind::Ratio),
    ("handshake", SectionKind::Handshake),
    ("generators", SectionKind::Generators),
];

/// Orders of servers, by name.
pub(super) const ORDERS: &[(&str, ServerOrder)] =
    &[("rotate", ServerOrder::Rotate), ("abba", ServerOrder::Abba)];

/// How QUIC connections can share sockets, by name.
pub(super) const SOCKETS: &[(&str, SocketMode)] =
    &[("per-connection", SocketMode::PerConnection), ("shared", SocketMode::Shared)];

/// A value that may have been left out.
pub(super) type Maybe<T> = Option<At<T>>;

/// The whole file.
pub(super) struct RawScenario {
    pub(super) place: Place,
    pub(super) title: Maybe<String>,
    pub(super) report: Maybe<String>,
    pub(super) template: Maybe<String>,
    pub(super) run: RawRun,
    pub(super) pin: RawPin,
    pub(super) expect: RawExpect,
    pub(super) servers: Vec<RawServer>,
    pub(super) generators: Vec<RawGenerator>,
    pub(super) probes: Vec<RawProbe>,
    pub(super) sections: Vec<RawSection>,
}

/// `[run]`.
#[derive(Default)]
pub(super) struct RawRun {
    pub(super) rounds: Maybe<i64>,
    pub(super) duration: Maybe<Span>,
    pub(super) warmup: Maybe<Span>,
    pub(super) drain: Maybe<Span>,
    pub(super) settle: Maybe<Span>,
    pub(super) timeout: Maybe<Span>,
    pub(super) connect_timeout: Maybe<Span>,
    pub(super) build_deadline: Maybe<Span>,
    pub(super) start_deadline: Maybe<Span>,
    pub(super) cell_grace: Maybe<Span>,
    pub(super) server_deadline: Maybe<Span>,
    pub(super) run_deadline: Maybe<Span>,
    pub(super) percentiles: Maybe<Vec<At<f64>>>,
    pub(super) unstable_above: Maybe<f64>,
    pub(super) wait: Maybe<WaitMode>,
    pub(super) socket: Maybe<SocketMode>,
    pub(super) pacing: Maybe<bool>,
    pub(super) order: Maybe<ServerOrder>,
}

/// `[pin]`, or `pin = "auto"` and `pin = "off"`, which stand for both sides.
#[derive(Default)]
pub(super) struct RawPin {
    pub(super) servers: Maybe<CpuChoice>,
    pub(super) generator: Maybe<CpuChoice>,
    pub(super) workers: Maybe<i64>,
    pub(super) generator_threads: Maybe<i64>,
    pub(super) overlap: Maybe<bool>,
}

/// The CPUs of one side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CpuChoice {
    Auto,
    Off,
    Cpus(Vec<u32>),
}

/// `[expect]`.
#[derive(Default)]
pub(super) struct RawExpect {
    pub(super) path: Maybe<String>,
    pub(super) status: Maybe<i64>,
    pub(super) body: Maybe<String>,
    pub(super) length: Maybe<i64>,
}

/// `[[server]]`, a `server.toml`, or a `[[server.variant]]`: what it leaves out is the server's.
#[derive(Clone)]
pub(super) struct RawServer {
    pub(super) place: Place,
    pub(super) uses: Maybe<String>,
    pub(super) dir: Maybe<String>,
    pub(super) variants: Vec<RawServer>,
    pub(super) name: Maybe<String>,
    pub(super) label: Maybe<String>,
    pub(super) requires: Maybe<Vec<At<String>>>,
    pub(super) build: Maybe<Vec<At<String>>>,
    pub(super) command: Maybe<Vec<At<String>>>,
    pub(super) env: BTreeMap<String, At<String>>,
    pub(super) render: Maybe<Vec<At<String>>>,
    pub(super) protocols: Maybe<Vec<At<Protocol>>>,
    pub(super) version: Maybe<Vec<At<String>>>,
    pub(super) stop_signal: Maybe<String>,
    pub(super) stop_grace: Maybe<Span>,
    pub(super) port: Maybe<i64>,
    pub(super) tls_port: Maybe<i64>,
    pub(super) note: Maybe<String>,
    pub(super) gate: Option<RawGate>,
    pub(super) workers: Maybe<i64>,
}

/// `[[section]]`.
pub(super) struct RawSection {
    pub(super) place: Place,
    pub(super) title: Maybe<String>,
    pub(super) kind: Maybe<SectionKind>,
    pub(super) protocol: Maybe<Protocol>,
    pub(super) protocols: Maybe<Vec<At<Protocol>>>,
    pub(super) cells: Maybe<Vec<At<String>>>,
    pub(super) duration: Maybe<Span>,
    pub(super) requests: Maybe<i64>,
    pub(super) connections: Maybe<i64>,
    pub(super) concurrency: Maybe<i64>,
    pub(super) resumption: Maybe<Resumptions>,
    pub(super) warmup: Maybe<Span>,
    pub(super) socket: Maybe<SocketMode>,
    pub(super) pacing: Maybe<bool>,
    pub(super) headers: Maybe<BTreeMap<String, At<String>>>,
    pub(super) runs: Maybe<bool>,
    /// Where the keys that contradict others stand, for mistakes about their being there.
    pub(super) keys: SectionKeys,
}

/// Places of keys of a section that contradict others.
pub(super) struct SectionKeys {
    pub(super) protocols: Option<Place>,
    pub(super) cells: Option<Place>,
    pub(super) duration: Option<Place>,
    pub(super) requests: Option<Place>,
    pub(super) connections: Option<Place>,
    pub(super) concurrency: Option<Place>,
    pub(super) resumption: Option<Place>,
    pub(super) socket: Option<Place>,
    pub(super) pacing: Option<Place>,
}

/// Ways to resume: a word, or a list of words.
pub(super) enum Resumptions {
    One(Resumption),
    List(Vec<At<Resumption>>),
}

impl RawScenario {
    /// Reads a scenario's text.
    ///
    /// # Errors
    /// The first mistake: of TOML, of the format number, an unknown key, a wrong type.
    pub(super) fn parse(source: &Rc<Source>) -> Result<Self, ScenarioError> {
        with_document(source, |document| {
            // A newer format may have keys this version does not know: its number is the better answer.
            check_format(document)?;
            let top = document.table(keys::TOP)?;
            Ok(Self {
                place: top.place.clone(),
                title: top.get("title")?,
                report: top.get("report")?,
                template: top.get("template")?,
                run: optional(&top, "run", RawRun::read)?,
                pin: optional(&top, "pin", RawPin::read)?,
                expect: optional(&top, "expect", RawExpect::read)?,
                servers: tables(&top, keys::SERVER, "server", RawServer::read)?,
                generators: tables(&top, keys::GENERATOR, "generator", RawGenerator::read)?,
                probes: tables(&top, keys::PROBE, "probe", RawProbe::read)?,
                sections: tables(&top, keys::SECTION, "section", RawSection::read)?,
            })
        })
    }
}

fn check_format(document: &Value<'_>) -> Result<(), ScenarioError> {
    let Some(value) = document.entry("format") else {
        return Err(document
            .place
            .missing("format")
            .mistake(format_args!("missing; begin the file with `format = {FORMAT}`")));
    };
    match i64::from_toml(&value)? {
        FORMAT => Ok(()),
        newer if newer > FORMAT => Err(value.place.mistake(format_args!(
            "format {newer} is newer than this version reads, which is {FORMAT}; use a newer bench"
        ))),
        other => Err(value.place.mistake(format_args!("no format {other}; write `format = {FORMAT}`"))),
    }
}

fn optional<T: Default>(
    top: &Table<'_>,
    key: &str,
    read: impl FnOnce(&Value<'_>) -> Result<T, ScenarioError>,
) -> Result<T, ScenarioError> {
    top.value(key).map_or_else(|| Ok(T::default()), |value| read(&value))
}

/// The tables of `[[key]]`, in order.
fn tables<T>(
    top: &Table<'_>,
    known: TableKeys,
    key: &str,
    read: impl Fn(&Value<'_>, TableKeys) -> Result<T, ScenarioError>,
) -> Result<Vec<T>, ScenarioError> {
    let Some(value) = top.value(key) else { return Ok(Vec::new()) };
    let Some(elements) = value.as_array() else {
        return Err(value.wrong_type("a list of tables", format_args!("write `{}`", known.table)));
    };
    elements.iter().map(|element| read(element, known)).collect()
}

impl RawRun {
    fn read(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let table = value.table(keys::RUN)?;
        Ok(Self {
            rounds: table.get("rounds")?,
            duration: table.get("duration")?,
            warmup: table.get("warmup")?,
            drain: table.get("drain")?,
            settle: table.get("settle")?,
            timeout: table.get("timeout")?,
            connect_timeout: table.get("connect_timeout")?,
            build_deadline: table.get("build_deadline")?,
            start_deadline: table.get("start_deadline")?,
            cell_grace: table.get("cell_grace")?,
            server_deadline: table.get("server_deadline")?,
            run_deadline: table.get("run_deadline")?,
            percentiles: table.get("percentiles")?,
            unstable_above: table.get("unstable_above")?,
            wait: table.get("wait")?,
            socket: table.get("socket")?,
            pacing: table.get("pacing")?,
            order: table.get("order")?,
        })
    }
}

impl RawPin {
    fn read(value: &Value<'_>) -> Result<Self, ScenarioError> {
        if !value.is_table() {
            let choice = match value.as_str() {
                Some("auto") => CpuChoice::Auto,
                Some("off") => CpuChoice::Off,
                _ => {
                    return Err(value.place.mistake(
                        "neither a table nor a known word; write `\"auto\"`, `\"off\"`, or a [pin] table with \
                         `servers` and `generator`",
                    ));
                }
            };
            let both = Some(At { value: choice, place: value.place.clone() });
            return Ok(Self { servers: both.clone(), generator: both, ..Self::default() });
        }
        let table = value.table(keys::PIN)?;
        Ok(Self {
            servers: table.get("servers")?,
            generator: table.get("generator")?,
            workers: table.get("workers")?,
            generator_threads: table.get("generator_threads")?,
            overlap: table.get("overlap")?,
        })
    }
}

impl RawExpect {
    fn read(value: &Value<'_>) -> Result<Self, ScenarioError> {
        let table = value.table(keys::EXPECT)?;
        Ok(Self {
            path: table.get("path")?,
            status: table.get("status")?,
            body: table.get("body")?,
            length: table.get("length")?,
        })
    }
}

impl RawServer {
    /// Reads a `server.toml`.
    pub(super) fn parse(source: &Rc<Source>) -> Result<Self, ScenarioError> {
        with_document(source, |document| Self::read(document, keys::SERVER_FILE))
    }

    fn read(value: &Value<'_>, known: TableKeys) -> Result<Self, ScenarioError> {
        let table = value.table(known)?;
        let stop = table.value("stop").map(|value| value.table(keys::STOP)).transpose()?;
        let (stop_signal, stop_grace) = match &stop {
            Some(stop) => (stop.get("signal")?, stop.get("grace")?),
            None => (None, None),
        };
        Ok(Self {
            place: table.place.clone(),
            uses: table.get("use")?,
            dir: table.get("dir")?,
            variants: tables(&table, keys::VARIANT, "variant", Self::read)?,
            name: table.get("name")?,
            label: table.get("label")?,
            requires: table.get("requires")?,
            build: table.get("build")?,
            command: table.get("command")?,
            env: table.get("env")?.map(|env| env.value).unwrap_or_default(),
            render: table.get("render")?,
            protocols: table.get("protocols")?,
            version: table.get("version")?,
            stop_signal,
            stop_grace,
            port: table.get("port")?,
            tls_port: table.get("tls_port")?,
            note: table.get("note")?,
            gate: table.value("gate").map(|value| RawGate::read(&value)).transpose()?,
            workers: table.get("workers")?,
        })
    }

    /// This server with what it leaves out taken from `base`. Environment variables are merged one
    /// by one: a variable set here must not take the ports and certificate away.
    pub(super) fn over(self, base: Self) -> Self {
        let mut env = base.env;
        env.extend(self.env);
        Self {
            place: self.place,
            uses: self.uses,
            dir: self.dir.or(base.dir),
            variants: self.variants,
            name: self.name.or(base.name),
            label: self.label.or(base.label),
            requires: self.requires.or(base.requires),
            build: self.build.or(base.build),
            command: self.command.or(base.command),
            env,
            render: self.render.or(base.render),
            protocols: self.protocols.or(base.protocols),
            version: self.version.or(base.version),
            stop_signal: self.stop_signal.or(base.stop_signal),
            stop_grace: self.stop_grace.or(base.stop_grace),
            port: self.port.or(base.port),
            tls_port: self.tls_port.or(base.tls_port),
            note: self.note.or(base.note),
            gate: self.gate.or(base.gate),
            workers: self.workers.or(base.workers),
        }
    }
}

impl RawSection {
    fn read(value: &Value<'_>, known: TableKeys) -> Result<Self, ScenarioError> {
        let table = value.table(known)?;
        Ok(Self {
            place: table.place.clone(),
            title: table.get("title")?,
            kind: table.get("kind")?,
            protocol: table.get("protocol")?,
            protocols: table.get("protocols")?,
            cells: table.get("cells")?,
            duration: table.get("duration")?,
            requests: table.get("requests")?,
            connections: table.get("connections")?,
            concurrency: table.get("concurrency")?,
            resumption: table.get("resumption")?,
            warmup: table.get("warmup")?,
            socket: table.get("socket")?,
            pacing: table.get("pacing")?,
            headers: table.get("headers")?,
            runs: table.get("runs")?,
            keys: SectionKeys {
                protocols: table.key_place("protocols"),
                cells: table.key_place("cells"),
                duration: table.key_place("duration"),
                requests: table.key_place("requests"),
                connections: table.key_place("connections"),
                concurrency: table.key_place("concurrency"),
                resumption: table.key_place("resumption"),
                socket: table.key_place("socket"),
                pacing: table.key_place("pacing"),
            },
        })
    }
}

impl FromToml for Protocol {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "protocol", &Protocol::ALL.map(|protocol| (protocol.name(), protocol)))
    }
}

impl FromToml for SectionKind {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "kind of section", KINDS)
    }
}

impl FromToml for WaitMode {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "way to wait", &Self::ALL.map(|wait| (wait.name(), wait)))
    }
}

impl FromToml for ServerOrder {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "order", ORDERS)
    }
}

impl FromToml for SocketMode {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "way to share sockets", SOCKETS)
    }
}

impl FromToml for Resumption {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        one_of(value, "resumption", &Self::ALL.map(|resumption| (resumption.name(), resumption)))
    }
}

impl FromToml for Resumptions {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        match value.as_array() {
            Some(_) => Vec::from_toml(value).map(Self::List),
            None => Resumption::from_toml(value).map(Self::One),
        }
    }
}

impl FromToml for CpuChoice {
    fn from_toml(value: &Value<'_>) -> Result<Self, ScenarioError> {
        if let Some(text) = value.as_str() {
            return match text {
                "auto" => Ok(Self::Auto),
                "off" => Ok(Self::Off),
                word if !word.is_empty() && word.chars().all(char::is_alphabetic) => {
                    Err(value.place.mistake(format_args!(
                        "`{word}` is no list of CPUs; {}",
                        instead(word, &["auto", "off"])
                    )))
                }
                list => parse_cpus(list).map(Self::Cpus).map_err(|what| value.place.mistake(what)),
            };
        }
        if value.is_integer() || value.as_array().is_none() {
            return Err(value.wrong_type("a list of CPUs", "write it like `\"0-1,4\"` or `[0, 1, 4]`"));
        }
        let mut cpus = Vec::new();
        for number in Vec::<At<i64>>::from_toml(value)? {
            let cpu = u32::try_from(number.value).map_err(|_| {
                number.mistake(format_args!("{} is not the number of a CPU; write 0 or more", number.value))
            })?;
            cpus.push(cpu);
        }
        if cpus.is_empty() {
            return Err(value
                .place
                .mistake("no CPU in the list; write `\"off\"` to leave this side unpinned"));
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self::Cpus(cpus))
    }
}
