//! Owns what has to be equal for figures of two runs to be comparable: the facts of the machine and the
//! settings of the run, each under a name a user knows.

use std::collections::BTreeMap;

use super::Difference;
use crate::results::{Environment, Measurement, Results, RoundRecord, SectionRecord};

/// One fact of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Its name.
    pub key: String,
    /// Its value, several joined by `; ` where the sessions of a run do not agree; `None` where it is not
    /// known.
    pub value: Option<String>,
    /// True for facts of the machine, which a control measured in the same run makes up for.
    pub of_machine: bool,
    /// True when the sessions of the run were not under the same conditions.
    pub mixed: bool,
}

/// The facts of a run in the order of reports.
pub fn fingerprint(results: &Results) -> Vec<Fact> {
    let machine = |key: &str, read: &dyn Fn(&Environment) -> Option<String>| {
        let values = distinct(results.sessions.iter().filter_map(|session| read(&session.environment)));
        Fact { mixed: values.len() > 1, value: listed(values), ..of(key, None, true) }
    };
    let setting = |key: &str, value: String| of(key, Some(value), false);
    let settings = &results.settings;
    let seconds = |seconds: f64| format!("{seconds} s");
    let cpus = |cpus: &[u32]| match cpus {
        [] => "not pinned".to_owned(),
        _ => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let generators = || measurements(results).map(|m| &m.generator);
    let mut facts = vec![
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
        of("engine", joined(generators().map(|g| g.engine.clone())), false),
        of("TLS library", joined(generators().filter_map(|g| g.tls.clone())), false),
        setting("waiting", settings.wait.name().to_owned()),
        setting("duration", seconds(settings.duration_s)),
        setting("warm-up", seconds(settings.warmup_s)),
        setting("expectation", settings.expect.clone()),
    ];
    for generator in &results.generators {
        facts.push(of(&format!("version of {}", generator.name), generator.version.clone(), false));
    }
    facts
}

fn of(key: &str, value: Option<String>, of_machine: bool) -> Fact {
    Fact { key: key.to_owned(), value, of_machine, mixed: false }
}

/// What keeps two runs from being compared.
pub fn differences(base: &Results, head: &Results) -> Vec<Difference> {
    found(base, head, None).into_iter().map(|(difference, _)| difference).collect()
}

/// The facts that two runs do not agree on, and whether a control makes up for each. One that either run does
/// not know is no difference; one that a run does not agree on with itself is, whatever the other says.
pub(super) fn found(base: &Results, head: &Results, control: Option<&str>) -> Vec<(Difference, bool)> {
    let theirs = fingerprint(head);
    let mut found: Vec<(Difference, bool)> = fingerprint(base)
        .into_iter()
        .filter_map(|base| {
            let head = theirs.iter().find(|head| head.key == base.key)?;
            let (of_machine, mixed) = (base.of_machine, base.mixed || head.mixed);
            let (key, base, head) = (base.key, base.value?, head.value.clone()?);
            (base != head || mixed).then_some((Difference { key, base, head }, of_machine))
        })
        .collect();
    let version = |results: &Results| {
        let server = results.servers.iter().find(|server| Some(server.name.as_str()) == control);
        server.and_then(|server| server.version.clone())
    };
    if let (Some(base), Some(head)) = (version(base), version(head))
        && base != head
    {
        found.push((Difference { key: "version of the control".into(), base, head }, false));
    }
    found.extend(workers(base, head).into_iter().map(|difference| (difference, false)));
    found.extend(sections(base, head).into_iter().map(|difference| (difference, false)));
    found
}

/// Servers that were told to use another number of worker threads, where either run told one by itself.
fn workers(base: &Results, head: &Results) -> Vec<Difference> {
    let of = |results: &Results, own: Option<u32>| own.unwrap_or(results.settings.workers);
    let differing = head.servers.iter().filter_map(|server| {
        let earlier = base.servers.iter().find(|earlier| earlier.name == server.name)?;
        earlier.workers.or(server.workers)?;
        let (before, after) = (of(base, earlier.workers), of(head, server.workers));
        let key = format!("workers of {}", server.name);
        (before != after).then(|| Difference { key, base: before.to_string(), head: after.to_string() })
    });
    differing.collect()
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
    listed(distinct(values))
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut places = BTreeMap::new();
    for (place, value) in values.enumerate() {
        places.entry(value).or_insert(place);
    }
    let mut values: Vec<(String, usize)> = places.into_iter().collect();
    values.sort_by_key(|(_, place)| *place);
    values.into_iter().map(|(value, _)| value).collect()
}

fn listed(values: Vec<String>) -> Option<String> {
    (!values.is_empty()).then(|| values.join("; "))
}
