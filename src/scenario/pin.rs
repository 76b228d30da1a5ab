//! Owns the split of the machine: which CPUs the servers and the generator get, and why.

use std::collections::BTreeSet;

use super::ScenarioError;
use super::file::{CpuChoice, RawPin};
use super::model::{Machine, Pin};
use super::source::{At, Place};

/// The sets of both sides, and the reason for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// CPUs of the servers; empty: unpinned.
    pub servers: Vec<u32>,
    /// CPUs of the generator; empty: unpinned.
    pub generator: Vec<u32>,
    /// One phrase.
    pub why: String,
}

/// The split by topology: whole cores to each side, so that no core's execution units serve both.
///
/// Where two or more cores have more threads than the rest, only those are used: on processors of
/// two kinds of core these are the fast ones, and a side made of both kinds has no one speed. Of an
/// odd number of cores the generator gets the larger part, because a generator at its limit
/// measures itself. With one core nothing is pinned.
pub fn split(machine: &Machine) -> Split {
    let all = usable_cores(machine, &[]);
    let widest = all.iter().map(Vec::len).max().unwrap_or(0);
    let wide: Vec<Vec<u32>> = all.iter().filter(|core| core.len() == widest).cloned().collect();
    let cores = if wide.len() >= 2 { &wide } else { &all };
    if cores.len() < 2 {
        let why = format!(
            "unpinned: auto needs two cores and this process may use one (CPU {}), so servers and generator \
             take time from each other",
            format_cpus(&machine.cpus)
        );
        return Split { servers: Vec::new(), generator: Vec::new(), why };
    }
    let (servers, generator) = cores.split_at(cores.len() / 2);
    let mut why = format!("auto: {} of {} cores to the servers", servers.len(), cores.len());
    if widest > 1 {
        why += ", threads of one core on one side";
    }
    let (used, usable) = (cores.iter().flatten().count(), all.iter().flatten().count());
    if used < usable {
        why += &format!(", {} CPUs of another kind of core left idle", usable - used);
    }
    Split { servers: flatten(servers), generator: flatten(generator), why }
}

/// The pins of a scenario, its warnings, and the reason for the split.
///
/// # Errors
/// A CPU that does not exist, sets that overlap without leave, no core left for the other side.
pub(super) fn resolve(raw: &RawPin, machine: &Machine) -> Result<(Pin, String, Vec<String>), ScenarioError> {
    let split = choose(raw, machine)?;
    let warnings = warnings(&split, machine);
    let usable = machine.cpus.len().max(1);
    let workers = default_threads(&split.servers, usable, usable);
    // Unpinned, half of the CPUs leave the other half to the server.
    let threads = default_threads(&split.generator, usable, usable / 2);
    let pin = Pin {
        workers: raw.workers.as_ref().map_or(Ok(workers), worker_threads)?,
        generator_threads: generator_threads(raw.generator_threads.as_ref(), threads, &split, usable)?,
        servers: split.servers,
        generator: split.generator,
    };
    Ok((pin, split.why, warnings))
}

fn choose(raw: &RawPin, machine: &Machine) -> Result<Split, ScenarioError> {
    let overlap = raw.overlap.as_ref().is_some_and(|overlap| overlap.value);
    let servers = explicit(raw.servers.as_ref(), machine)?;
    let generator = explicit(raw.generator.as_ref(), machine)?;
    let (servers, generator) = match (servers, generator) {
        (None, None) => return Ok(split(machine)),
        (Some((servers, place)), None) => {
            let rest = rest(machine, &servers, "generator", place)?;
            (servers, rest)
        }
        (None, Some((generator, place))) => (rest(machine, &generator, "servers", place)?, generator),
        (Some((servers, _)), Some((generator, place))) => {
            let shared = common(&servers, &generator);
            if !shared.is_empty() && !overlap {
                return Err(place.mistake(format_args!(
                    "CPU {} is on both sides, where the generator takes time from the servers; keep the sets \
                     apart, or write `overlap = true` in [pin]",
                    format_cpus(&shared)
                )));
            }
            (servers, generator)
        }
    };
    let why = if servers.is_empty() && generator.is_empty() {
        "unpinned: the scenario says so".to_owned()
    } else {
        "as the scenario says".to_owned()
    };
    Ok(Split { servers, generator, why })
}

/// The CPUs a side asks for, and where; `None` when it leaves the choice.
fn explicit<'a>(
    choice: Option<&'a At<CpuChoice>>,
    machine: &Machine,
) -> Result<Option<(Vec<u32>, &'a Place)>, ScenarioError> {
    let Some(choice) = choice else { return Ok(None) };
    let cpus = match &choice.value {
        CpuChoice::Auto => return Ok(None),
        CpuChoice::Off => Vec::new(),
        CpuChoice::Cpus(cpus) => cpus.clone(),
    };
    if let Some(impossible) = cpus.iter().find(|cpu| !machine.cpus.contains(cpu)) {
        return Err(choice.mistake(format_args!(
            "there is no CPU {impossible} for this process; it may use {}",
            format_cpus(&machine.cpus)
        )));
    }
    Ok(Some((cpus, &choice.place)))
}

/// The CPUs of all cores that `taken` leaves alone. One unpinned side leaves the other unpinned:
/// its threads would run everywhere.
fn rest(machine: &Machine, taken: &[u32], side: &str, place: &Place) -> Result<Vec<u32>, ScenarioError> {
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    let rest = flatten(&usable_cores(machine, taken));
    if rest.is_empty() {
        return Err(place.mistake(format_args!(
            "CPU {} leaves no core to the {side}; leave one out, or name the CPUs of both sides",
            format_cpus(taken)
        )));
    }
    Ok(rest)
}

fn warnings(split: &Split, machine: &Machine) -> Vec<String> {
    let mut warnings = Vec::new();
    let shared = common(&split.servers, &split.generator);
    if !shared.is_empty() {
        warnings.push(format!(
            "CPU {} is on both sides: servers and generator take time from each other",
            format_cpus(&shared)
        ));
    }
    let split_cores: Vec<String> = machine
        .cores
        .iter()
        .filter(|core| core.iter().any(|cpu| split.servers.contains(cpu) && !shared.contains(cpu)))
        .filter(|core| core.iter().any(|cpu| split.generator.contains(cpu) && !shared.contains(cpu)))
        .map(|core| format_cpus(core))
        .collect();
    if !split_cores.is_empty() {
        warnings.push(format!(
            "threads of one core are on both sides (CPUs {}): each slows the other down",
            split_cores.join("; ")
        ));
    }
    if split.servers.is_empty() || split.generator.is_empty() {
        let side = match (split.servers.is_empty(), split.generator.is_empty()) {
            (true, true) => "nothing is pinned",
            (true, false) => "the servers are not pinned",
            _ => "the generator is not pinned",
        };
        warnings.push(format!("{side}: figures vary more, and which side was the limit is harder to tell"));
    }
    warnings
}

fn default_threads(cpus: &[u32], usable: usize, unpinned: usize) -> u32 {
    let threads = if cpus.is_empty() { unpinned } else { cpus.len() };
    u32::try_from(threads.clamp(1, usable)).unwrap_or(MOST_WORKERS)
}

fn generator_threads(
    asked: Option<&At<i64>>,
    default: u32,
    split: &Split,
    usable: usize,
) -> Result<u32, ScenarioError> {
    let cpus = if split.generator.is_empty() { usable } else { split.generator.len() };
    count(
        asked,
        default,
        u32::try_from(cpus).unwrap_or(MOST_WORKERS),
        "generator threads, one for each of its CPUs at most",
    )
}

/// A number of worker threads.
///
/// # Errors
/// One out of range.
pub(super) fn worker_threads(asked: &At<i64>) -> Result<u32, ScenarioError> {
    count(Some(asked), 1, MOST_WORKERS, "worker threads")
}

fn count(asked: Option<&At<i64>>, default: u32, most: u32, what: &str) -> Result<u32, ScenarioError> {
    let Some(asked) = asked else { return Ok(default) };
    match u32::try_from(asked.value) {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        _ => Err(asked.mistake(format_args!("{} {what}; write 1 to {most}", asked.value))),
    }
}

/// The cores this process may use, ascending, each with its usable CPUs, without those that hold a
/// CPU of `taken`. A CPU in no group is a core of its own.
fn usable_cores(machine: &Machine, taken: &[u32]) -> Vec<Vec<u32>> {
    let usable: BTreeSet<u32> = machine.cpus.iter().copied().collect();
    let grouped: BTreeSet<u32> = machine.cores.iter().flatten().copied().collect();
    let single = usable.difference(&grouped).map(|cpu| vec![*cpu]);
    let mut cores: Vec<Vec<u32>> = machine
        .cores
        .iter()
        .cloned()
        .chain(single)
        .filter(|core| !core.iter().any(|cpu| taken.contains(cpu)))
        .map(|core| core.into_iter().filter(|cpu| usable.contains(cpu)).collect::<Vec<_>>())
        .filter(|core| !core.is_empty())
        .collect();
    cores.sort();
    cores
}

fn flatten(cores: &[Vec<u32>]) -> Vec<u32> {
    let mut cpus: Vec<u32> = cores.iter().flatten().copied().collect();
    cpus.sort_unstable();
    cpus
}

fn common(a: &[u32], b: &[u32]) -> Vec<u32> {
    a.iter().filter(|cpu| b.contains(cpu)).copied().collect()
}

/// Reads a list of CPUs as `taskset -c` takes it: `0-1,4`. Returns it ascending, each once.
///
/// # Errors
/// An empty list, no numbers, a range that runs backwards, a number beyond any machine.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
    let bad = |what: String| format!("{what} in the list of CPUs `{text}`; write it like `0-1,4`");
    let number = |part: &str| match part.trim().parse::<u32>() {
        Ok(cpu) if cpu <= HIGHEST_CPU => Ok(cpu),
        Ok(cpu) => Err(bad(format!("CPU {cpu} is beyond any machine"))),
        Err(_) => Err(bad(format!("`{part}` is no number"))),
    };
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(bad(format!("`{part}` runs backwards")));
        }
        cpus.extend(first..=last);
    }
    Ok(cpus.into_iter().collect())
}

/// Prints an ascending list of CPUs so that [`parse_cpus`] reads it back; an empty one as `none`.
pub fn format_cpus(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    if runs.is_empty() {
        return "none".into();
    }
    let run = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// More worker threads than any server makes use of; a larger number is a slip.
const MOST_WORKERS: u32 = 1024;

/// Linux's own limit is 8192 CPUs (`NR_CPUS`); the bound keeps a range from filling memory.
const HIGHEST_CPU: u32 = 8191;

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: &[u32], cores: &[&[u32]]) -> Machine {
        Machine {
            cpus: cpus.to_vec(),
            cores: cores.iter().map(|core| core.to_vec()).collect(),
            fd_hard_limit: 1024,
            ephemeral_ports: (32768, 60999),
            reserved_ports: Vec::new(),
        }
    }

    #[test]
    fn auto_follows_the_topology() {
        let eight: Vec<u32> = (0..8).collect();
        let hybrid: Vec<u32> = (0..12).collect();
        for (what, machine, servers, generator, why) in [
            ("one core", machine(&[0], &[&[0]]), "none", "none", "unpinned: auto needs two cores"),
            ("one core of two threads", machine(&[0, 1], &[&[0, 1]]), "none", "none", "(CPU 0-1)"),
            ("two cores", machine(&[0, 1], &[&[0], &[1]]), "0", "1", "1 of 2 cores to the servers"),
            ("three cores", machine(&[0, 1, 2], &[&[0], &[1], &[2]]), "0", "1-2", "1 of 3 cores"),
            ("four cores", machine(&[0, 1, 2, 3], &[&[0], &[1], &[2], &[3]]), "0-1", "2-3", "2 of 4 cores"),
            (
                "four cores of two threads, far siblings",
                machine(&eight, &[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]),
                "0-1,4-5",
                "2-3,6-7",
                "2 of 4 cores to the servers, threads of one core on one side",
            ),
            (
                "four fast cores of two threads and four slow ones",
                machine(&hybrid, &[&[0, 1], &[2, 3], &[4, 5], &[6, 7], &[8], &[9], &[10], &[11]]),
                "0-3",
                "4-7",
                "4 CPUs of another kind of core left idle",
            ),
            (
                "one fast core of two threads and two slow ones",
                machine(&[0, 1, 2, 3], &[&[0, 1], &[2], &[3]]),
                "0-1",
                "2-3",
                "1 of 3 cores",
            ),
            (
                "a set of two CPUs on a machine of eight",
                machine(&[2, 3], &[&[0], &[1], &[2], &[3], &[4], &[5], &[6], &[7]]),
                "2",
                "3",
                "1 of 2 cores",
            ),
            (
                "a set of one thread of each of two cores",
                machine(&[0, 1], &[&[0, 4], &[1, 5]]),
                "0",
                "1",
                "1 of 2 cores",
            ),
            (
                "a set of both threads of one core",
                machine(&[0, 4], &[&[0, 4], &[1, 5]]),
                "none",
                "none",
                "(CPU 0,4)",
            ),
            ("no topology to be read", machine(&[0, 1], &[]), "0", "1", "1 of 2 cores"),
            ("nothing to be read", machine(&[], &[]), "none", "none", "unpinned"),
        ] {
            let split = split(&machine);
            assert_eq!(format_cpus(&split.servers), servers, "{what}");
            assert_eq!(format_cpus(&split.generator), generator, "{what}");
            assert!(split.why.contains(why), "{what}: {}", split.why);
        }
    }

    proptest::proptest! {
        /// Whatever the machine, the sides are disjoint, usable, and share no core.
        #[test]
        fn auto_never_splits_a_core(
            allowed in proptest::collection::btree_set(0u32..32, 0..32),
            owner in proptest::collection::vec(0usize..12, 32),
        ) {
            let cores: Vec<Vec<u32>> = (0..12)
                .map(|core| (0..32).filter(|cpu| owner[*cpu as usize] == core).collect())
                .collect();
            let machine = Machine { cpus: allowed.iter().copied().collect(), cores, ..machine(&[], &[]) };
            let split = split(&machine);
            for core in &machine.cores {
                let holds = |side: &[u32]| core.iter().any(|cpu| side.contains(cpu));
                assert!(!(holds(&split.servers) && holds(&split.generator)), "{core:?} {split:?}");
            }
            assert!(split.servers.iter().chain(&split.generator).all(|cpu| allowed.contains(cpu)));
            assert_eq!(split.servers.is_empty(), split.generator.is_empty());
        }
    }

    fn choice(cpus: &str) -> Option<At<CpuChoice>> {
        let value = match cpus {
            "auto" => CpuChoice::Auto,
            "off" => CpuChoice::Off,
            list => CpuChoice::Cpus(parse_cpus(list).expect("the tests use right lists")),
        };
        let place = Place::start_of(&super::super::source::Source::new("s".into(), String::new()));
        Some(At { value, place })
    }

    fn overlap(allowed: bool) -> Option<At<bool>> {
        choice("off").map(|at| At { value: allowed, place: at.place })
    }

    #[test]
    fn one_side_named_leaves_the_other_cores_to_the_other() {
        let smt = machine(&[0, 1, 2, 3], &[&[0, 2], &[1, 3]]);
        for (servers, generator, expected, workers, threads, warned) in [
            (choice("0"), None, ("0", "1,3"), 1, 2, ""),
            (choice("auto"), choice("1"), ("0,2", "1"), 2, 1, ""),
            (choice("0"), choice("2"), ("0", "2"), 1, 1, "threads of one core are on both sides (CPUs 0,2)"),
            (choice("0"), choice("1"), ("0", "1"), 1, 1, ""),
            (choice("off"), choice("off"), ("none", "none"), 4, 2, "nothing is pinned"),
            (choice("off"), choice("0"), ("none", "0"), 4, 1, "the servers are not pinned"),
            (choice("0"), choice("off"), ("0", "none"), 1, 2, "the generator is not pinned"),
        ] {
            let raw = RawPin { servers, generator, ..RawPin::default() };
            let (pin, _, warnings) = resolve(&raw, &smt).unwrap();
            assert_eq!((format_cpus(&pin.servers).as_str(), format_cpus(&pin.generator).as_str()), expected);
            assert_eq!((pin.workers, pin.generator_threads), (workers, threads), "{expected:?}");
            assert_eq!(warnings.is_empty(), warned.is_empty(), "{expected:?}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.contains(warned)), "{warnings:?}");
        }
    }

    #[test]
    fn overlap_needs_leave_and_is_warned_of() {
        let two = machine(&[0, 1], &[&[0], &[1]]);
        let raw = |allowed| RawPin {
            servers: choice("0-1"),
            generator: choice("1"),
            overlap: overlap(allowed),
            ..RawPin::default()
        };
        assert!(resolve(&raw(false), &two).unwrap_err().to_string().contains("CPU 1 is on both sides"));
        let (pin, why, warnings) = resolve(&raw(true), &two).unwrap();
        assert_eq!((pin.servers, pin.generator, why.as_str()), (vec![0, 1], vec![1], "as the scenario says"));
        assert!(warnings[0].contains("CPU 1 is on both sides"));
        let all = RawPin { servers: choice("0-1"), ..RawPin::default() };
        assert!(resolve(&all, &two).unwrap_err().to_string().contains("leaves no core to the generator"));
    }

    #[test]
    fn lists_of_cpus_read_as_taskset_writes_them() {
        for (text, cpus) in
            [("0", vec![0]), ("0-2", vec![0, 1, 2]), ("4, 0-1", vec![0, 1, 4]), ("1,1", vec![1])]
        {
            assert_eq!(parse_cpus(text), Ok(cpus), "{text}");
        }
        for text in ["", ",", "0-", "-1", "1-0", "a", "0-8192", "0-99999999999", "1.5", "0--1"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
    }
}
