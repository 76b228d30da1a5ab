//! Owns the way from a raw scenario to a checked one: what it refers to is read, what it leaves out
//! is filled in, what contradicts itself or the machine is refused.

use std::path::{Path, PathBuf};

use super::file::RawScenario;
use super::model::{Machine, Scenario, SectionLimit};
use super::source::{At, Source};
use super::suggest::instead;
use super::{Checked, ReadFile, ScenarioError, generators, pin, sections, servers, settings, tools};

/// The files around a scenario.
pub(super) struct Files<'a> {
    read: ReadFile<'a>,
    /// Absolute path of the scenario.
    scenario: PathBuf,
    /// Working directory: paths below it are shown without it.
    here: PathBuf,
}

impl<'a> Files<'a> {
    pub(super) fn around(scenario: &Path, read: ReadFile<'a>) -> std::io::Result<Self> {
        let here = std::path::absolute(".")?.components().collect();
        Ok(Self { read, scenario: std::path::absolute(scenario)?.components().collect(), here })
    }

    pub(super) fn read(&self, path: &Path) -> std::io::Result<String> {
        (self.read)(path)
    }

    /// Names in a folder; none when it cannot be listed.
    pub(super) fn entries(&self, folder: &Path) -> Vec<String> {
        self.read(folder).map(|names| names.lines().map(str::to_owned).collect()).unwrap_or_default()
    }

    pub(super) fn scenario_dir(&self) -> &Path {
        self.scenario.parent().unwrap_or(Path::new("/"))
    }

    /// The nearest folder above the scenario that holds `servers/`.
    pub(super) fn root(&self) -> Option<&Path> {
        self.scenario.ancestors().skip(1).find(|folder| match self.read(&folder.join("servers")) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::IsADirectory,
        })
    }

    /// The path as messages name it.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.here).unwrap_or(path).display().to_string()
    }
}

/// Reads, expands and checks the scenario; overrides are not applied yet.
///
/// # Errors
/// The first mistake.
pub(super) fn expand(path: &Path, read: ReadFile<'_>, machine: &Machine) -> Result<Checked, ScenarioError> {
    let shown = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        ScenarioError(format!("{shown}: cannot read the scenario: {error}; correct the path"))
    };
    let files = Files::around(path, read).map_err(unreadable)?;
    let text = files.read(path).map_err(unreadable)?;
    let source = Source::new(shown.clone(), text.clone());
    let raw = RawScenario::parse(&source)?;

    let title = raw.title.as_ref().ok_or_else(|| {
        raw.place.missing("title").mistake("missing; write the heading of the report, like `title = \"...\"`")
    })?;
    let title = one_line(title)?;
    let report = report(&raw, &files)?;
    let template = template(&raw)?;
    let run = settings::run(&raw.run)?;
    let (pin, pin_reason, warnings) = pin::resolve(&raw.pin, machine)?;
    let expect = settings::expect(&raw.expect)?;
    for (key, empty) in [("server", raw.servers.is_empty()), ("section", raw.sections.is_empty())] {
        if empty {
            return Err(raw.place.missing(key).mistake(format_args!("missing; add at least one [[{key}]]")));
        }
    }
    let servers = servers::servers(raw.servers, &files, machine)?;
    let mut sections = sections::sections(&raw.sections, &run, &servers, machine)?;
    let first = raw.generators.first().map(|generator| generator.place().clone());
    let compared = generators::generators(raw.generators, &files)?;
    generators::distribute(&mut sections, &raw.sections, &compared, first.as_ref())?;
    let probes = tools::probes(&raw.probes, &files)?;
    let scenario = Scenario {
        path: shown,
        text,
        title,
        report,
        template,
        run,
        pin,
        expect,
        servers,
        generators: compared,
        probes,
        sections,
        overrides: Vec::new(),
    };
    Ok(Checked { scenario, pin_reason, warnings })
}

/// Text for a heading or a table: something, and on one line.
pub(super) fn one_line(text: &At<String>) -> Result<String, ScenarioError> {
    if text.value.trim().is_empty() {
        return Err(text.mistake("an empty text; write a few words"));
    }
    if text.value.chars().any(char::is_control) {
        return Err(text.mistake("a line break or another control character; write it on one line"));
    }
    Ok(text.value.clone())
}

/// The base name of the report files; without one, made of the scenario's own name.
fn report(raw: &RawScenario, files: &Files<'_>) -> Result<String, ScenarioError> {
    let fine = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if let Some(report) = &raw.report {
        if let Some(stem) = report.value.strip_suffix(".md").or(report.value.strip_suffix(".json")) {
            return Err(report
                .mistake(format_args!("names one file where the base of both belongs; write `\"{stem}\"`")));
        }
        if !fine(&report.value) {
            return Err(report.mistake(format_args!(
                "`{}` cannot name the report files; use letters, digits, `-`, `_` and `.`",
                report.value
            )));
        }
        return Ok(report.value.clone());
    }
    let stem =
        files.scenario.file_stem().map(|stem| stem.to_string_lossy().to_uppercase()).unwrap_or_default();
    let name = format!("{stem}_RESULTS");
    if fine(&name) {
        return Ok(name);
    }
    Err(raw
        .place
        .missing("report")
        .mistake("missing, and the scenario's name makes no report's; write `report = \"HTTP_RESULTS\"`"))
}

fn template(raw: &RawScenario) -> Result<String, ScenarioError> {
    let Some(template) = &raw.template else { return Ok(TEMPLATES[0].to_owned()) };
    if TEMPLATES.contains(&template.value.as_str()) {
        return Ok(template.value.clone());
    }
    Err(template.mistake(format_args!(
        "unknown template `{}`; {}",
        template.value,
        instead(&template.value, TEMPLATES)
    )))
}

/// What is possible and still spoils a cell.
pub(super) fn cell_warnings(scenario: &Scenario, machine: &Machine) -> Vec<String> {
    let mut warnings = Vec::new();
    let (first, last) = machine.ephemeral_ports;
    let ports = u32::from(last.saturating_sub(first)) + 1;
    let largest =
        scenario.sections.iter().flat_map(|section| &section.cells).max_by_key(|cell| cell.connections);
    if let Some(cell) = largest.filter(|cell| cell.connections > ports) {
        warnings.push(format!(
            "{cell} opens more connections than there are ephemeral ports ({ports}, from {first} to {last}): \
             some will fail; widen net.ipv4.ip_local_port_range"
        ));
    }
    for section in &scenario.sections {
        let short = match section.limit {
            SectionLimit::Duration(window) => window < SHORTEST_WINDOW,
            SectionLimit::Requests(_) => false,
        };
        if short {
            warnings.push(format!(
                "the windows of `{}` are under 100 ms: CPU time is counted in ticks of 10 ms, so its figures \
                 will be coarse",
                section.title
            ));
        }
    }
    warnings
}

/// Report templates this version has; the first is the default.
pub const TEMPLATES: &[&str] = &["http", "http2", "http3", "encodings", "generators"];

/// Ten ticks of the clock that process times are counted in, see proc_pid_stat(5).
const SHORTEST_WINDOW: crate::time::Span = crate::time::Span::from_millis(100);
