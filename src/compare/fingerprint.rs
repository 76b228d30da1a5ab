//! Owns what has to be equal for figures of two runs to be comparable: the facts of the machine and the
//! settings of the run, each under a name a user knows.

use std::collections::BTreeMap;

use super::Difference;
use crate::results::{Environment, Measurement, Results, RoundRecord, SectionRecord};

/// One fact of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Its name.
    pub key: &'static str,
    /// Its value, several joined by `; ` where the sessions of a run do not agree; `None` where it is not
    /// known.
    pub value: Option<String>,
    /// True for facts of the machine, which a control measured in the same run makes up for.
    pub of_machine: bool,
}

/// The facts of a run in the order of reports.
pub fn fingerprint(results: &Results) -> Vec<Fact> {
    let machine = |key, read: &dyn Fn(&Environment) -> Option<String>| Fact {
        key,
        value: joined(results.sessions.iter().filter_map(|session| read(&session.environment))),
        of_machine: true,
    };
    let setting = |key, value: String| Fact { key, value: Some(value), of_machine: false };
    let settings = &results.settings;
    let seconds = |seconds: f64| format!("{seconds} s");
    let cpus = |cpus: &[u32]| match cpus {
        [] => "not pinned".to_owned(),
        _ => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let generators = || measurements(results).map(|m| &m.generator);
    vec![
        machine("CPU model", &|e| Some(e.cpu.clone())),
        machine("logical CPUs", &|e| Some(e.logical_cpus.to_string())),
        machine("kernel", &|e| Some(e.kernel.clone())),
        machine("governor", &|e| e.governor.clone()),
        setting("server CPUs", cpus(&settings.server_cpus)),
        setting("generator CPUs", cpus(&settings.generator_cpus)),
        setting("server workers", settings.workers.to_string()),
        setting("generator threads", settings.generator_threads.to_string()),
        setting("generator", results.tool.clone()),
        setting("format", results.format.split('.').next().unwrap_or_default().to_owned()),
        Fact { key: "engine", value: joined(generators().map(|g| g.engine.clone())), of_machine: false },
        Fact {
            key: "TLS library",
            value: joined(generators().filter_map(|g| g.tls.clone())),
            of_machine: false,
        },
        setting("waiting", settings.wait.name().to_owned()),
        setting("duration", seconds(settings.duration_s)),
        setting("warm-up", seconds(settings.warmup_s)),
        setting("expectation", settings.expect.clone()),
    ]
}

/// The facts that two runs do not agree on. One that either run does not know is no difference.
pub(super) fn differences(base: &Results, head: &Results) -> Vec<(Difference, bool)> {
    let pairs = fingerprint(base).into_iter().zip(fingerprint(head));
    let mut found: Vec<(Difference, bool)> = pairs
        .filter_map(|(base, head)| {
            let (key, of_machine) = (base.key.to_owned(), base.of_machine);
            let (base, head) = (base.value?, head.value?);
            (base != head).then_some((Difference { key, base, head }, of_machine))
        })
        .collect();
    found.extend(sections(base, head).into_iter().map(|difference| (difference, false)));
    found
}

/// Sections of both runs that ask for other cells, or for windows of another kind. A cell that only one of
/// them has is no difference of settings: it is missing, or new.
fn sections(base: &Results, head: &Results) -> Vec<Difference> {
    let mut found = Vec::new();
    for section in &head.sections {
        let Some(earlier) = super::same_section(base, head, section) else { continue };
        let title = &section.title;
        let mut differ = |what: &str, base: String, head: String| {
            found.push(Difference { key: format!("{what} of `{title}`"), base, head });
        };
        let (ours, theirs) = (cells(section), cells(earlier));
        let only = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter().filter(|cell| !b.contains(cell)).cloned().collect()
        };
        let (gone, come) = (only(&theirs, &ours), only(&ours, &theirs));
        if !gone.is_empty() && !come.is_empty() {
            differ("cells", gone.join(", "), come.join(", "));
        }
        if let (Some(base), Some(head)) = (windows(earlier), windows(section))
            && base != head
        {
            differ("windows", base, head);
        }
        let fields = |section: &SectionRecord| {
            let fields = section.headers.iter().map(|field| format!("{}: {}", field.name, field.value));
            joined(fields).unwrap_or_else(|| "none".into())
        };
        if section.headers != earlier.headers {
            differ("header fields", fields(earlier), fields(section));
        }
    }
    found
}

/// What its cells ask for, each once.
fn cells(section: &SectionRecord) -> Vec<String> {
    let mut cells: Vec<String> = Vec::new();
    for cell in &section.cells {
        let name = cell.key().to_string();
        if !cells.contains(&name) {
            cells.push(name);
        }
    }
    cells
}

/// How long its windows were to be, and the warm-up before them where that is told.
fn windows(section: &SectionRecord) -> Option<String> {
    let of = |round: &RoundRecord| match (&round.measurement, &round.external) {
        (Some(m), _) => {
            let length = match (m.window.asked_s, m.window.asked_requests) {
                (_, Some(requests)) => format!("{requests} requests"),
                (Some(seconds), None) => format!("{seconds} s"),
                (None, None) => "of unknown length".into(),
            };
            Some(format!("{length} after {} s", m.window.warmup_s))
        }
        (None, Some(run)) => Some(format!("{} s", run.asked_s)),
        (None, None) => None,
    };
    joined(section.cells.iter().flat_map(|cell| &cell.rounds).filter_map(of))
}

fn measurements(results: &Results) -> impl Iterator<Item = &Measurement> {
    let rounds = results.sections.iter().flat_map(|s| &s.cells).flat_map(|c| &c.rounds);
    rounds.filter_map(|round| round.measurement.as_ref())
}

/// Each value once, in the order of the first; `None` without any.
fn joined(values: impl Iterator<Item = String>) -> Option<String> {
    let mut places = BTreeMap::new();
    for (place, value) in values.enumerate() {
        places.entry(value).or_insert(place);
    }
    let mut values: Vec<(String, usize)> = places.into_iter().collect();
    values.sort_by_key(|(_, place)| *place);
    let values: Vec<String> = values.into_iter().map(|(value, _)| value).collect();
    (!values.is_empty()).then(|| values.join("; "))
}
