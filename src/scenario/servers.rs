//! Owns `[[server]]`: resolving `use`, and checking what a server is started with.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::ScenarioError;
use super::expand::{Files, one_line};
use super::file::{Maybe, RawServer};
use super::model::{Machine, PLACEHOLDERS, ServerSpec};
use super::source::{At, Place, Source};
use super::suggest::{instead, nearest};
use super::{pin, variants};
use crate::results::Protocol;
use crate::time::Span;

/// Resolves and checks every server.
///
/// # Errors
/// The first mistake, in the file it stands in.
pub(super) fn servers(
    raw: Vec<RawServer>,
    files: &Files<'_>,
    machine: &Machine,
) -> Result<Vec<ServerSpec>, ScenarioError> {
    let mut specs: Vec<ServerSpec> = Vec::with_capacity(raw.len());
    let mut ports: BTreeMap<u16, String> = BTreeMap::new();
    for server in raw {
        let (server, dir) = resolve(server, files)?;
        let fixed = [server.port.clone(), server.tls_port.clone()];
        for (server, variant) in variants::expand(server)? {
            let spec = ServerSpec { variant, ..check(&server, &dir, files, machine)? };
            told_apart(&server, &spec, &specs)?;
            specs.push(spec);
        }
        // The variants of a server share its ports: they run in turns, as its rounds do.
        let Some(spec) = specs.last() else { continue };
        for (port, number) in fixed.iter().zip([spec.port, spec.tls_port]) {
            let (Some(port), Some(number)) = (port, number) else { continue };
            if let Some(other) = ports.insert(number, spec.name.clone()) {
                return Err(port.mistake(format_args!(
                    "port {number} is fixed for `{other}` already; write another, or leave it out to have one \
                     allocated"
                )));
            }
        }
    }
    Ok(specs)
}

/// Refuses a name or label that one of `others` has.
fn told_apart(server: &RawServer, spec: &ServerSpec, others: &[ServerSpec]) -> Result<(), ScenarioError> {
    if others.iter().any(|other| other.name == spec.name) {
        let place = server.name.as_ref().filter(|_| server.uses.is_none()).map(|name| &name.place);
        let place = place.or(server.uses.as_ref().map(|uses| &uses.place)).unwrap_or(&server.place);
        return Err(place.mistake(format_args!(
            "there is a server `{0}` already; give this one another name, like `name = \"{0}-2\"`",
            spec.name
        )));
    }
    if let Some(other) = others.iter().find(|other| other.label == spec.label) {
        let place = server.label.as_ref().map_or(&server.place, |label| &label.place);
        return Err(place.mistake(format_args!(
            "`{}` has the label {:?} already; give this one another, tables could not tell them apart",
            other.name, spec.label
        )));
    }
    Ok(())
}

/// Follows `use`; returns the server with the folder it stands in.
fn resolve(server: RawServer, files: &Files<'_>) -> Result<(RawServer, PathBuf), ScenarioError> {
    let Some(uses) = &server.uses else {
        let dir = server.dir.as_ref().map_or(PathBuf::new(), |dir| PathBuf::from(&dir.value));
        let dir = normal(&files.scenario_dir().join(dir));
        return Ok((server, dir));
    };
    if let Some(dir) = &server.dir {
        return Err(
            dir.mistake("a server with `use` stands in the folder of its server.toml; leave `dir` out")
        );
    }
    check_name(uses, "server")?;
    let Some(root) = files.root() else {
        return Err(uses.mistake(format_args!(
            "no folder above the scenario holds `servers/`; make `servers/{}/server.toml`, or describe the \
             server here",
            uses.value
        )));
    };
    let dir = root.join("servers").join(&uses.value);
    let path = dir.join("server.toml");
    let text = files.read(&path).map_err(|error| {
        if error.kind() != ErrorKind::NotFound {
            return uses.mistake(format_args!("cannot read {}: {error}", files.shown(&path)));
        }
        let known = files.entries(&root.join("servers"));
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let suggestion = match nearest(&uses.value, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "make it, or describe the server here".to_owned(),
        };
        uses.mistake(format_args!("there is no {}; {suggestion}", files.shown(&path)))
    })?;
    let base = RawServer::parse(&Source::new(files.shown(&path), text))?;
    Ok((server.over(base), dir))
}

fn check(
    server: &RawServer,
    dir: &Path,
    files: &Files<'_>,
    machine: &Machine,
) -> Result<ServerSpec, ScenarioError> {
    let name = name(server)?;
    let command = server.command.as_ref().ok_or_else(|| {
        server.place.missing("command").mistake("missing; say how the server is started, word by word")
    })?;
    let protocols = server.protocols.as_ref().ok_or_else(|| {
        server.place.missing("protocols").mistake(format_args!(
            "missing; list what the server offers of {}",
            Protocol::ALL.map(Protocol::name).join(", ")
        ))
    })?;
    check_protocols(protocols)?;
    let render = render(&server.render, dir, files)?;
    let build = words(&server.build, OF_BUILD, false)?;
    let version = words(&server.version, OF_VERSION, false)?;
    check_words(command, STARTED, !render.is_empty())?;
    check_env(&server.env, STARTED, !render.is_empty())?;
    let gate = server.gate.as_ref().map(|gate| gate.check(protocols, !render.is_empty())).transpose()?;
    let requires = words(&server.requires, &[], false)?;
    let (port, tls_port) = (port(&server.port, machine)?, port(&server.tls_port, machine)?);
    Ok(ServerSpec {
        name: name.value.clone(),
        label: match &server.label {
            Some(label) => one_line(label)?,
            None => name.value.clone(),
        },
        dir: dir.to_string_lossy().into_owned(),
        requires,
        build,
        command: plain(command),
        env: server.env.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect(),
        render,
        protocols: protocols.value.iter().map(|protocol| protocol.value).collect(),
        version,
        stop_signal: match &server.stop_signal {
            Some(signal) => check_signal(signal)?,
            None => "TERM".to_owned(),
        },
        stop_grace: server.stop_grace.as_ref().map_or(DEFAULT_STOP_GRACE, |grace| grace.value),
        port,
        tls_port,
        note: server.note.as_ref().map(one_line).transpose()?,
        workers: server.workers.as_ref().map(pin::worker_threads).transpose()?,
        variant: None,
        revision: None,
        gate,
    })
}

/// The name of a server, which it must have.
pub(super) fn name(server: &RawServer) -> Result<&At<String>, ScenarioError> {
    let name = server.name.as_ref().ok_or_else(|| {
        server.place.missing("name").mistake("missing; write `name`, or `use` for a server of servers/")
    })?;
    check_name(name, "server")?;
    Ok(name)
}

/// A server started by another command, given as a shell takes it in `option`. Nothing is built for it and
/// no version asked: what was said of them was about the command it has in the scenario.
///
/// # Errors
/// Words that a shell would not take, a placeholder without a value.
pub fn started_by(spec: &ServerSpec, option: &str, command: &str) -> Result<ServerSpec, ScenarioError> {
    let place = Place::start_of(&Source::new(option.to_owned(), command.to_owned()));
    let words = shlex::split(command)
        .ok_or_else(|| place.mistake("a quote that is not closed, or a backslash at the end; close it"))?;
    let words = words.into_iter().map(|value| At { value, place: place.clone() }).collect();
    let words = At { value: words, place };
    check_words(&words, STARTED, !spec.render.is_empty())?;
    Ok(ServerSpec { command: plain(&words), build: Vec::new(), version: Vec::new(), ..spec.clone() })
}

/// A name of a server, or of another `thing` a scenario names.
pub(super) fn check_name(name: &At<String>, thing: &str) -> Result<(), ScenarioError> {
    let text = &name.value;
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(fine) {
        return Err(name.mistake(format_args!(
            "`{text}` cannot name a {thing}; use letters, digits, `-`, `_` and `.`, and put the rest in `label`"
        )));
    }
    Ok(())
}

pub(super) fn check_protocols(protocols: &At<Vec<At<Protocol>>>) -> Result<(), ScenarioError> {
    if protocols.value.is_empty() {
        return Err(protocols.mistake("no protocol in the list; name at least one"));
    }
    let mut seen = HashSet::new();
    match protocols.value.iter().find(|protocol| !seen.insert(protocol.value)) {
        Some(twice) => {
            Err(twice.mistake(format_args!("{} is listed twice; leave one out", twice.value.name())))
        }
        None => Ok(()),
    }
}

/// Config files: relative, inside the server's folder, readable now.
fn render(raw: &Maybe<Vec<At<String>>>, dir: &Path, files: &Files<'_>) -> Result<Vec<String>, ScenarioError> {
    let Some(list) = raw else { return Ok(Vec::new()) };
    for file in &list.value {
        let path = Path::new(&file.value);
        if file.value.is_empty() || !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(file.mistake(format_args!(
                "`{}` is not a file inside the server's folder; name it relative to {}",
                file.value,
                files.shown(dir)
            )));
        }
        if let Err(error) = files.read(&dir.join(path)) {
            return Err(file.mistake(format_args!(
                "cannot read {}: {error}; correct the name or make the file",
                files.shown(&dir.join(path))
            )));
        }
    }
    Ok(plain(list))
}

/// Environment variables, whose values may hold placeholders.
pub(super) fn check_env(
    env: &BTreeMap<String, At<String>>,
    usable: &[&str],
    config: bool,
) -> Result<(), ScenarioError> {
    env.iter().try_for_each(|(variable, value)| {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            return Err(value.mistake(format_args!(
                "`{variable}` cannot name an environment variable; write one without `=`"
            )));
        }
        check_placeholders(value, usable, config)
    })
}

/// A command that may be left out; given, it needs its program's name.
pub(super) fn words(
    raw: &Maybe<Vec<At<String>>>,
    placeholders: &[&str],
    config: bool,
) -> Result<Vec<String>, ScenarioError> {
    let Some(list) = raw else { return Ok(Vec::new()) };
    check_words(list, placeholders, config)?;
    Ok(plain(list))
}

pub(super) fn check_words(
    list: &At<Vec<At<String>>>,
    placeholders: &[&str],
    config: bool,
) -> Result<(), ScenarioError> {
    let Some(first) = list.value.first() else {
        return Err(list.mistake("an empty list; name a program, or leave the key out"));
    };
    if first.value.is_empty() {
        return Err(first.mistake("an empty word where a program's name belongs; write the program first"));
    }
    list.value.iter().try_for_each(|word| check_placeholders(word, placeholders, config))
}

/// Refuses `{word}` for words that are no placeholder with a value here. Braces around anything
/// else are left alone: they belong to shells and configuration languages.
fn check_placeholders(text: &At<String>, usable: &[&str], config: bool) -> Result<(), ScenarioError> {
    for name in placeholders(&text.value) {
        if !PLACEHOLDERS.iter().any(|(known, _)| *known == name) {
            return Err(
                text.mistake(format_args!("unknown placeholder {{{name}}}; {}", instead(name, STARTED)))
            );
        }
        if !usable.contains(&name) {
            let usable = if usable.is_empty() { "no placeholder".to_owned() } else { usable.join(", ") };
            return Err(text.mistake(format_args!("{{{name}}} has no value here; this key can use {usable}")));
        }
        if name == "config" && !config {
            return Err(text.mistake("{config} is the first file of `render`; list one there"));
        }
    }
    Ok(())
}

/// The names in braces: lower-case letters, digits and `_`.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let part_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.split('{').skip(1).filter_map(move |rest| {
        let (name, _) = rest.split_once('}')?;
        (!name.is_empty() && name.bytes().all(part_of_name)).then_some(name)
    })
}

fn check_signal(signal: &At<String>) -> Result<String, ScenarioError> {
    let text = signal.value.to_ascii_uppercase();
    let name = text.strip_prefix("SIG").unwrap_or(&text);
    if SIGNALS.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(signal.mistake(format_args!("unknown signal `{}`; {}", signal.value, instead(name, SIGNALS))))
}

/// A fixed port: one that no client's connection can have taken before the server starts.
fn port(raw: &Maybe<i64>, machine: &Machine) -> Result<Option<u16>, ScenarioError> {
    let Some(port) = raw else { return Ok(None) };
    let number = match u16::try_from(port.value) {
        Ok(number) if number > 0 => number,
        _ => {
            return Err(port.mistake(format_args!(
                "{} is not a port; write 1 to 65535, or leave it out to have one allocated",
                port.value
            )));
        }
    };
    let (first, last) = machine.ephemeral_ports;
    let reserved = machine.reserved_ports.iter().any(|(low, high)| (*low..=*high).contains(&number));
    if (first..=last).contains(&number) && !reserved {
        return Err(port.mistake(format_args!(
            "port {number} lies in the ephemeral range {first}-{last}, where any client may take it first; \
             write one outside, or reserve it with `sysctl -w net.ipv4.ip_local_reserved_ports={number}`"
        )));
    }
    Ok(Some(number))
}

pub(super) fn plain(list: &At<Vec<At<String>>>) -> Vec<String> {
    list.value.iter().map(|word| word.value.clone()).collect()
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// Placeholders of a start.
pub(super) const STARTED: &[&str] =
    &["port", "http_port", "https_port", "cert", "key", "workers", "dir", "run_dir", "config"];

/// Placeholders of a build: there is a certificate for the run by then, but no ports yet.
const OF_BUILD: &[&str] = &["workers", "cert", "key", "dir"];

/// Placeholders of a version command, which may be asked for without a run.
const OF_VERSION: &[&str] = &["dir"];

/// Signals that ask a process to stop. KILL is among them for servers that have nothing to save.
const SIGNALS: &[&str] = &["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL"];

/// Longer than any server of the comparison takes to close its idle connections.
const DEFAULT_STOP_GRACE: Span = Span::from_secs(5);
