//! Owns what a server's strings become: placeholders filled in, its environment, its programs found
//! on PATH, its config files rendered, its version asked for.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::control::Plan;
use super::logs::printable;
use super::{Host, Ports, ServerError};
use crate::clock;
use crate::results::Protocol;
use crate::scenario::{PLACEHOLDERS, ServerSpec};
use crate::time::Span;

/// How long a version command may take.
const VERSION_DEADLINE: Span = Span::from_secs(10);

/// Pause between two looks at a version command.
const VERSION_POLL: Span = Span::from_millis(2);

/// How much of a version command's output is looked at, in bytes.
const VERSION_OUTPUT: u64 = 16 * 1024;

/// Variables of cargo that say where things are or how to fetch and print, not what is built.
const CARGO_KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_BUILD_JOBS",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
];

/// Variables beside `CARGO*` that a Rust toolchain sets for what it starts, or that change a build.
const TOOLCHAIN_SET: [&str; 8] = [
    "OUT_DIR",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "RUST_RECURSION_COUNT",
];

/// Checks `requires`.
///
/// # Errors
/// With `absent` when a program is missing; the reason names all that are.
pub fn requirements(spec: &ServerSpec) -> Result<(), ServerError> {
    let env = Values::of_folder(spec).known_environment(spec);
    installed(&spec.requires, &spec.dir, env.get("PATH"))
}

/// Checks that programs are there, on `path` (by default that of this process) or, with a slash in their
/// names, from `dir`.
///
/// # Errors
/// With `absent`; the reason names all that are missing.
pub fn installed(programs: &[String], dir: &str, path: Option<&String>) -> Result<(), ServerError> {
    let missing: Vec<String> = programs
        .iter()
        .filter(|program| find_program(program, dir, path).is_none())
        .map(|program| format!("`{program}`"))
        .collect();
    match missing.as_slice() {
        [] => Ok(()),
        [one] => Err(ServerError::absent(format!("{one} is not installed: it is not on PATH"))),
        many => Err(ServerError::absent(format!("{} are not installed: not on PATH", many.join(", ")))),
    }
}

/// First line that the version command prints, see [`first_line_of`]; `None` without one.
pub fn version(spec: &ServerSpec) -> Option<String> {
    let values = Values::of_folder(spec);
    let command = values.expand_all("version", &spec.version).ok()?;
    first_line_of(&command, &spec.dir, &values.known_environment(spec))
}

/// First line that a short command prints, on standard output or else on standard error, with control
/// characters left out. `None` for no command, and when it prints nothing, fails to start, or takes over
/// ten seconds.
pub fn first_line_of(command: &[String], dir: &str, env: &BTreeMap<String, String>) -> Option<String> {
    let program = find_program(command.first()?, dir, env.get("PATH"))?;
    let (mut out, mut err) = (tempfile::tempfile().ok()?, tempfile::tempfile().ok()?);
    let mut asked = Command::new(program);
    asked.args(&command[1..]).current_dir(dir).stdin(Stdio::null()).process_group(0);
    asked.stdout(out.try_clone().ok()?).stderr(err.try_clone().ok()?);
    for name in foreign_variables() {
        asked.env_remove(name);
    }
    let child = asked.envs(env).spawn().ok()?;
    wait_or_kill(child, VERSION_DEADLINE)?;
    first_line(&mut out).or_else(|| first_line(&mut err))
}

/// Waits for a short command; `None` when it had to be killed, with its process group.
fn wait_or_kill(mut child: Child, limit: Span) -> Option<()> {
    let deadline = clock::now() + limit;
    while clock::now() < deadline {
        match child.try_wait() {
            Ok(Some(_)) => return Some(()),
            Ok(None) => clock::sleep_until(clock::now() + VERSION_POLL),
            Err(_) => break,
        }
    }
    // The group's number cannot have passed to another one: its leader is not waited for yet.
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let _ = child.wait();
    None
}

fn first_line(file: &mut File) -> Option<String> {
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.take(VERSION_OUTPUT).read_to_end(&mut bytes).ok()?;
    bytes
        .split(|byte| *byte == b'\n')
        .map(|line| printable(line).trim().to_owned())
        .find(|line| !line.is_empty())
}

/// The variables of this process's environment that its servers and builds do not inherit.
///
/// `cargo run` and rustup set variables for the program they start, and a developer sets more for
/// *this* program: a build below that inherited them would use another compiler than the server's
/// folder asks for, put its output elsewhere, or optimise differently, all depending on how `bench`
/// itself was started. A server that wants one names it in its own `env`. The places of caches and
/// registries stay, for without them an offline build fails.
fn foreign_variables() -> Vec<String> {
    env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| is_foreign(name)).collect()
}

fn is_foreign(name: &str) -> bool {
    let cargo = name == "CARGO" || name.starts_with("CARGO_");
    (cargo && !CARGO_KEPT.iter().any(|kept| name.starts_with(kept))) || TOOLCHAIN_SET.contains(&name)
}

/// What the placeholders of one server stand for at one moment of its life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// What is known of a server without a run: its folder.
    pub(super) fn of_folder(spec: &ServerSpec) -> Self {
        Self(BTreeMap::from([("dir", spec.dir.clone())]))
    }

    /// What a build may name.
    ///
    /// # Errors
    /// Names a path that is no text.
    pub(super) fn of_build(host: &Host, spec: &ServerSpec) -> Result<Self, ServerError> {
        let mut values = Self::of_folder(spec);
        values.0.insert("workers", spec.workers.unwrap_or(host.workers).to_string());
        values.0.insert("cert", text(&host.certificate.cert)?);
        values.0.insert("key", text(&host.certificate.key)?);
        Ok(values)
    }

    /// What a start may name: everything, but `{config}` only when something is rendered.
    ///
    /// # Errors
    /// Names a path that is no text.
    pub(super) fn of_start(
        host: &Host,
        spec: &ServerSpec,
        protocol: Protocol,
        ports: Ports,
        run_dir: &Path,
    ) -> Result<Self, ServerError> {
        let mut values = Self::of_build(host, spec)?;
        let port = if protocol.is_tls() { ports.https } else { ports.http };
        values.0.insert("port", port.to_string());
        values.0.insert("http_port", ports.http.to_string());
        values.0.insert("https_port", ports.https.to_string());
        values.0.insert("run_dir", text(run_dir)?);
        if let Some(file) = spec.render.first() {
            values.0.insert("config", text(&run_dir.join(file))?);
        }
        Ok(values)
    }

    /// Fills in a string of `server.toml`; `what` names it in an error.
    ///
    /// # Errors
    /// A name in braces that has no value here. Braces around anything else (`{ "a": 1 }`) stay.
    pub(super) fn expand(&self, what: &str, template: &str) -> Result<String, ServerError> {
        fill(template, |name| match self.0.get(name) {
            Some(value) => Ok(Some(value.as_str())),
            None if name == "config" => {
                Err(ServerError::failed(format!("`{{config}}` in {what} needs a file in `render`")))
            }
            None if PLACEHOLDERS.iter().any(|(known, _)| *known == name) => {
                Err(ServerError::failed(format!("`{{{name}}}` in {what} has no value before a start")))
            }
            None => {
                let known: Vec<&str> = PLACEHOLDERS.iter().map(|(name, _)| *name).collect();
                let known = known.join(", ");
                Err(ServerError::failed(format!("`{{{name}}}` in {what} is unknown; there are {known}")))
            }
        })
    }

    /// Fills in each of `templates`.
    ///
    /// # Errors
    /// As [`Self::expand`].
    pub(super) fn expand_all(&self, what: &str, templates: &[String]) -> Result<Vec<String>, ServerError> {
        templates.iter().map(|template| self.expand(what, template)).collect()
    }

    /// Fills in a config file. Only what has a value is replaced: config languages have braces and
    /// names in braces of their own.
    fn render(&self, template: &str) -> String {
        match fill(template, |name| Ok::<_, std::convert::Infallible>(self.0.get(name).map(String::as_str))) {
            Ok(text) => text,
            Err(never) => match never {},
        }
    }

    /// The server's variables whose values are known now: those that name a port are left out of a
    /// build's environment.
    fn known_environment(&self, spec: &ServerSpec) -> BTreeMap<String, String> {
        let known = |(name, value): (&String, &String)| Some((name.clone(), self.expand("env", value).ok()?));
        spec.env.iter().filter_map(known).collect()
    }

    /// All of the server's variables.
    fn environment(&self, spec: &ServerSpec) -> Result<BTreeMap<String, String>, ServerError> {
        self.expand_env(&spec.env)
    }

    /// Fills in each value of `env`.
    ///
    /// # Errors
    /// As [`Self::expand`].
    pub(super) fn expand_env(
        &self,
        env: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, ServerError> {
        let expand = |(name, value): (&String, &String)| {
            Ok((name.clone(), self.expand(&format!("env {name}"), value)?))
        };
        env.iter().map(expand).collect()
    }

    /// What the supervisor is told for a build: unpinned, for it is not measured.
    ///
    /// # Errors
    /// With `absent` when the program is not installed.
    pub(super) fn plan_build(&self, spec: &ServerSpec) -> Result<Plan, ServerError> {
        let command = self.expand_all("build", &spec.build)?;
        let env = self.known_environment(spec);
        let program = command.first().map(String::as_str).unwrap_or_default();
        let found = find_program(program, &spec.dir, env.get("PATH")).ok_or_else(|| {
            ServerError::absent(format!("`{program}`, which builds it, is not installed: it is not on PATH"))
        })?;
        plan(&spec.dir, found, command, env, &[])
    }

    /// What the supervisor is told for a start.
    ///
    /// # Errors
    /// Names a placeholder without a value, or a program that is not there.
    pub(super) fn plan_start(&self, spec: &ServerSpec, cpus: &[u32]) -> Result<Plan, ServerError> {
        let command = self.expand_all("command", &spec.command)?;
        let env = self.environment(spec)?;
        let program = command.first().map(String::as_str).unwrap_or_default();
        let found = find_program(program, &spec.dir, env.get("PATH")).ok_or_else(|| {
            let remedy =
                if spec.build.is_empty() { "name it in `requires`" } else { "does `build` make it?" };
            ServerError::failed(format!("there is no program `{program}` to start; {remedy}"))
        })?;
        plan(&spec.dir, found, command, env, cpus)
    }

    /// Renders the files of `render` from the server's folder into `run_dir`, subfolders included.
    ///
    /// # Errors
    /// Names the file that could not be read or written.
    pub(super) fn render_files(&self, spec: &ServerSpec, run_dir: &Path) -> Result<(), ServerError> {
        for file in &spec.render {
            let (from, to) = (Path::new(&spec.dir).join(file), run_dir.join(file));
            let told = |path: &Path, error| {
                ServerError::failed(format!("cannot render {}: {error}", path.display()))
            };
            let template = fs::read_to_string(&from).map_err(|error| told(&from, error))?;
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder).map_err(|error| told(folder, error))?;
            }
            fs::write(&to, self.render(&template)).map_err(|error| told(&to, error))?;
        }
        Ok(())
    }
}

/// What the supervisor is told for a command that needs no placeholder.
///
/// # Errors
/// With `absent` when its program is not installed.
pub(super) fn plan_plain(
    command: &[String],
    dir: &str,
    env: &BTreeMap<String, String>,
    cpus: &[u32],
) -> Result<Plan, ServerError> {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let found = find_program(program, dir, env.get("PATH"))
        .ok_or_else(|| ServerError::absent(format!("`{program}` is not installed: it is not on PATH")))?;
    plan(dir, found, command.to_vec(), env.clone(), cpus)
}

fn plan(
    dir: &str,
    program: PathBuf,
    mut command: Vec<String>,
    env: BTreeMap<String, String>,
    cpus: &[u32],
) -> Result<Plan, ServerError> {
    if let Some(first) = command.first_mut() {
        *first = text(&program)?;
    }
    Ok(Plan { command, dir: dir.to_owned(), unset: foreign_variables(), env, cpus: cpus.to_vec() })
}

/// A path as text, which is what arguments and config files take.
fn text(path: &Path) -> Result<String, ServerError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        ServerError::failed(format!("the path {} is not valid UTF-8; rename it", path.display()))
    })
}

/// Finds a program as execvp(3) would: a name on `path` (by default the PATH of this process), a
/// path with a slash from `dir`.
fn find_program(program: &str, dir: &str, path: Option<&String>) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.is_empty() {
        return None;
    }
    if program.contains('/') {
        return Some(Path::new(dir).join(program)).filter(executable);
    }
    let path = path.map(Into::into).or_else(|| env::var_os("PATH"))?;
    env::split_paths(&path).map(|folder| Path::new(dir).join(folder).join(program)).find(executable)
}

/// Replaces each `{name}` (lower-case letters, digits, `_`) by what `value` gives for it; `None`
/// leaves it. What is put in is not looked at again.
pub(crate) fn fill<'a, E>(
    template: &str,
    mut value: impl FnMut(&str) -> Result<Option<&'a str>, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        out += before;
        let name_length = braced[1..]
            .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
            .unwrap_or(braced.len() - 1);
        let name = &braced[1..=name_length];
        let closed = braced[1 + name_length..].starts_with('}');
        let filled = if closed && !name.is_empty() { value(name)? } else { None };
        match filled {
            Some(text) => {
                out += text;
                rest = &braced[name_length + 2..];
            }
            None => {
                out.push('{');
                rest = &braced[1..];
            }
        }
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec() -> ServerSpec {
        ServerSpec {
            name: "s".into(),
            label: "S".into(),
            dir: "/srv/s".into(),
            requires: Vec::new(),
            build: Vec::new(),
            command: Vec::new(),
            env: BTreeMap::new(),
            render: Vec::new(),
            protocols: vec![Protocol::H1],
            version: Vec::new(),
            stop_signal: "TERM".into(),
            stop_grace: Span::from_secs(1),
            port: None,
            tls_port: None,
            note: None,
            gate: None,
            workers: None,
            variant: None,
            revision: None,
        }
    }

    #[test]
    fn a_server_may_have_a_number_of_workers_of_its_own() {
        let host = Host {
            exe: "bench".into(),
            scratch: "/scratch".into(),
            logs: "/logs".into(),
            certificate: crate::server::Certificate { cert: "/cert".into(), key: "/key".into() },
            cpus: Vec::new(),
            workers: 2,
        };
        for (own, told) in [(None, "2"), (Some(7), "7")] {
            let values =
                Values::of_build(&host, &ServerSpec { workers: own, ..spec() }).expect("paths of text");
            assert_eq!(values.expand("build", "{workers}").as_deref(), Ok(told));
        }
    }

    #[test]
    fn known_names_are_filled_in_and_other_braces_stay() {
        let values = Values(BTreeMap::from([("port", "80".into()), ("dir", "{port}".into())]));
        for (template, filled) in [
            ("", ""),
            ("{port}", "80"),
            ("a{port}b{port}", "a80b80"),
            ("{{port}}", "{80}"),
            ("{dir}", "{port}"),
            ("{ port }", "{ port }"),
            ("{\"a\": {port}}", "{\"a\": 80}"),
            ("{Port}{}", "{Port}{}"),
            ("{port", "{port"),
            ("{", "{"),
            ("}{port}é{", "}80é{"),
        ] {
            assert_eq!(values.expand("command", template).as_deref(), Ok(filled), "{template}");
            assert_eq!(values.render(template), filled, "{template}");
        }
        assert_eq!(values.render("server { {path} {port} }"), "server { {path} 80 }");
    }

    #[test]
    fn a_name_without_a_value_is_an_error_that_says_what_there_is() {
        let values = Values::of_folder(&spec());
        for (template, told) in [
            ("{prot}", "`{prot}` in command is unknown; there are port, http_port"),
            ("{port}", "`{port}` in command has no value before a start"),
            ("{config}", "`{config}` in command needs a file in `render`"),
        ] {
            let reason = values.expand("command", template).unwrap_err().reason;
            assert!(reason.starts_with(told), "{reason}");
        }
    }

    proptest! {
        #[test]
        fn any_text_without_known_names_renders_to_itself(text in "[{}a-z_ é\n\"]{0,40}") {
            prop_assert_eq!(Values(BTreeMap::new()).render(&text), text);
        }
    }

    #[test]
    fn variables_of_the_outer_build_are_told_from_places() {
        for name in [
            "CARGO",
            "CARGO_TARGET_DIR",
            "CARGO_PKG_NAME",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_PROFILE_RELEASE_LTO",
            "RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(is_foreign(name), "{name}");
        }
        for name in ["PATH", "CARGO_HOME", "CARGO_NET_OFFLINE", "RUSTUP_HOME", "CARGONAUT", "RUST_LOG"] {
            assert!(!is_foreign(name), "{name}");
        }
    }

    #[test]
    fn variables_that_name_a_port_are_left_out_before_a_start() {
        let mut spec = spec();
        spec.env = BTreeMap::from([("A".into(), "{dir}/a".into()), ("PORT".into(), "{port}".into())]);
        let values = Values::of_folder(&spec);
        assert_eq!(values.known_environment(&spec), BTreeMap::from([("A".into(), "/srv/s/a".into())]));
        assert!(values.environment(&spec).unwrap_err().reason.contains("env PORT"));
    }

    #[test]
    fn missing_programs_are_absent_and_all_named() {
        let mut spec = spec();
        for (requires, told) in [
            (&["sh"][..], None),
            (&["sh", "/bin/sh"], None),
            (&["no-such-program"], Some("`no-such-program` is not installed: it is not on PATH")),
            (
                &["no-such-a", "sh", "/no/such/b"],
                Some("`no-such-a`, `/no/such/b` are not installed: not on PATH"),
            ),
            // A folder and a file that may not be executed are no programs.
            (&["/etc", "/etc/passwd"], Some("`/etc`, `/etc/passwd` are not installed: not on PATH")),
        ] {
            spec.requires = requires.iter().map(|program| (*program).into()).collect();
            let error = requirements(&spec).err();
            assert_eq!(error.as_ref().map(|error| error.reason.as_str()), told);
            assert!(error.is_none_or(|error| error.absent));
        }
    }

    #[test]
    fn a_version_is_the_first_line_of_either_stream() {
        let mut spec = spec();
        spec.dir = "/".into();
        for (script, line) in [
            ("echo; echo ' v1 '; echo v2", Some("v1")),
            ("echo v3 >&2", Some("v3")),
            ("echo note >&2; printf 'v\\0334'", Some("v4")),
            ("echo v5; exit 3", Some("v5")),
            ("true", None),
        ] {
            spec.version = ["sh", "-c", script].map(String::from).to_vec();
            assert_eq!(version(&spec).as_deref(), line, "{script}");
        }
        spec.version = vec!["no-such-program".into()];
        assert_eq!(version(&spec), None);
        spec.version.clear();
        assert_eq!(version(&spec), None);
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_group() {
        let child = Command::new("sh").args(["-c", "sleep 1000 & wait"]).process_group(0).spawn().unwrap();
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert_eq!(wait_or_kill(child, Span::ZERO), None);
        // The orphaned `sleep` is reaped by another process; until then its group exists.
        let deadline = clock::now() + Span::from_secs(30);
        while killpg(group, None).is_ok() {
            assert!(clock::now() < deadline, "the group outlived its leader");
            clock::sleep_until(clock::now() + VERSION_POLL);
        }
    }
}
