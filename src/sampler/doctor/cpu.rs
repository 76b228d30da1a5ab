//! Owns the checks of the CPUs: who is pinned where, what shares a core, how fast they run, and who
//! else runs on them. Pure.

use std::collections::BTreeMap;

use super::{bad, ok, unknown, unreadable, warn};
use crate::results::{BUSY_LOAD, Finding};
use crate::sampler::read::Text;
use crate::sampler::stat::{CpuTimes, format_cpu_list, parse_cpu_list, parse_cpu_times, parse_load};

/// The CPUs of either side; empty: not pinned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    /// Of the servers.
    pub server: &'a [u32],
    /// Of the generator.
    pub generator: &'a [u32],
}

impl Sides<'_> {
    /// The CPUs a run would use: those of both sides, or all usable ones as soon as one is not pinned.
    pub(super) fn measured(&self, usable: &[u32]) -> Vec<u32> {
        if self.server.is_empty() || self.generator.is_empty() {
            return usable.to_vec();
        }
        let mut cpus = [self.server, self.generator].concat();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

/// One file's text for each of `cpus`.
pub(super) fn of_each(cpus: &[u32], read: impl Fn(u32) -> Text) -> BTreeMap<u32, Text> {
    cpus.iter().map(|&cpu| (cpu, read(cpu))).collect()
}

/// Whether both sides may have the CPUs they are pinned to, and each its own.
pub(super) fn pinning(sides: Sides<'_>, usable: &[u32]) -> Finding {
    const CHECK: &str = "pinning";
    let among = |cpus: &[u32], others: &[u32], inside: bool| -> Vec<u32> {
        cpus.iter().copied().filter(|cpu| others.contains(cpu) == inside).collect()
    };
    let absent = among(&sides.measured(usable), usable, false);
    if !absent.is_empty() {
        return bad(
            CHECK,
            format!("{} cannot be used by this process", cpus_in_words(&absent)),
            format!("choose among {}, or widen the cpuset of this process", cpus_in_words(usable)),
        );
    }
    let shared = among(sides.server, sides.generator, true);
    if !shared.is_empty() {
        return bad(
            CHECK,
            format!("{} would run servers and generator both", cpus_in_words(&shared)),
            "give each side CPUs of its own",
        );
    }
    let (server, generator) = (cpus_in_words(sides.server), cpus_in_words(sides.generator));
    match (sides.server, sides.generator, usable) {
        ([], [], [_]) => warn(
            CHECK,
            "one usable CPU: servers and generator take it from each other",
            "measure on a machine with at least two CPUs",
        ),
        ([], [], _) => ok(CHECK, format!("no side is pinned yet; usable: {}", cpus_in_words(usable))),
        ([], ..) | (_, [], _) => warn(
            CHECK,
            "one side is pinned and the other is not, so that they may meet on one CPU",
            "pin both sides, or leave it to `auto`",
        ),
        _ => ok(CHECK, format!("servers on {server}, generator on {generator}")),
    }
}

/// Whether a core's two threads are on both sides: then each slows the other down.
pub(super) fn smt_siblings(sides: Sides<'_>, siblings: &BTreeMap<u32, Text>) -> Finding {
    const CHECK: &str = "smt-siblings";
    let mut several = false;
    let mut split = Vec::new();
    for (&cpu, list) in siblings {
        let list = match list {
            Ok(list) => list,
            Err(reason) => return unknown(CHECK, reason.as_str()),
        };
        let Some(core) = parse_cpu_list(list) else { return unreadable(CHECK, list) };
        several |= core.len() > 1;
        let on = |side: &[u32]| core.iter().any(|cpu| side.contains(cpu));
        if core.first() == Some(&cpu) && on(sides.server) && on(sides.generator) {
            split.extend(core);
        }
    }
    match (split.is_empty(), several) {
        (false, _) => warn(
            CHECK,
            format!("{} share cores between servers and generator", cpus_in_words(&split)),
            "pin whole cores to one side, or turn SMT off: echo off | sudo tee /sys/devices/system/cpu/smt/control",
        ),
        (true, true) => ok(CHECK, "cores have several threads, and none is on both sides"),
        (true, false) => ok(CHECK, "every CPU is a core of its own"),
    }
}

/// `scaling_governor` of each CPU: all but `performance` change the clock with the load.
pub(super) fn governor(governors: &BTreeMap<u32, Text>) -> Finding {
    const CHECK: &str = "governor";
    let mut others: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (&cpu, governor) in governors {
        match governor.as_deref().map(str::trim) {
            Ok("performance") => {}
            Ok(name) => others.entry(name).or_default().push(cpu),
            Err(reason) => {
                return unknown(CHECK, format!("{reason}; on a virtual machine its host sets the clock"));
            }
        }
    }
    if others.is_empty() {
        return match governors.is_empty() {
            true => unknown(CHECK, "no CPU to look at"),
            false => ok(CHECK, "performance on every CPU"),
        };
    }
    let found: Vec<String> =
        others.iter().map(|(name, cpus)| format!("{name} on {}", cpus_in_words(cpus))).collect();
    warn(CHECK, found.join(", "), "sudo cpupower frequency-set -g performance")
}

/// Whether the clock may rise above its nominal rate, for as long as heat and neighbours allow: by
/// `intel_pstate/no_turbo`, else by `cpufreq/boost`.
pub(super) fn turbo(no_turbo: Text, boost: Text) -> Finding {
    const CHECK: &str = "turbo";
    let (setting, on, off) = match (&no_turbo, &boost) {
        (Ok(_), _) => (no_turbo, "0", "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"),
        _ => (boost, "1", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"),
    };
    match setting.as_deref().map(str::trim) {
        Err(reason) => unknown(CHECK, format!("{reason}; no switch for turbo here")),
        Ok(value) if value == on => {
            warn(CHECK, "on: the clock depends on heat and on what other cores do", off)
        }
        Ok("0" | "1") => ok(CHECK, "off"),
        Ok(other) => unreadable(CHECK, other),
    }
}

/// A CPU quota of the cgroup: a process that has used it up stands still until the period ends,
/// typically for tens of milliseconds.
pub(super) fn quota(quota: Result<Option<f64>, String>, cpus: usize) -> Finding {
    const CHECK: &str = "cgroup-quota";
    let remedy = "lift it: `--cpus` of a container, `CPUQuota=` of a unit, limits of a pod";
    match quota {
        Err(reason) => unknown(CHECK, reason),
        Ok(None) => ok(CHECK, "no CPU quota"),
        Ok(Some(quota)) if quota < cpus as f64 => {
            bad(CHECK, format!("a quota of {quota:.2} CPUs for {cpus} in use: they will be stopped"), remedy)
        }
        Ok(Some(quota)) => warn(CHECK, format!("a quota of {quota:.2} CPUs may stop processes"), remedy),
    }
}

/// The share of time wanted since boot that the hypervisor gave to somebody else. Idle time is left
/// out of it, because it would hide the theft of a machine that has mostly slept.
pub(super) fn steal(stat: Text) -> Finding {
    const CHECK: &str = "steal";
    let stat = match stat {
        Ok(stat) => stat,
        Err(reason) => return unknown(CHECK, reason),
    };
    let mut all = CpuTimes::default();
    for times in parse_cpu_times(&stat).into_values() {
        all += times;
    }
    let wanted = all.busy.saturating_add(all.stolen);
    if wanted == 0 {
        return unreadable(CHECK, &stat);
    }
    let share = all.stolen as f64 / wanted as f64;
    let found = format!("{:.2} % of the CPU time wanted since boot was stolen", share * 100.0);
    match share >= MUCH_STOLEN {
        true => warn(
            CHECK,
            format!("{found} by other virtual machines"),
            "use a machine of your own or one with dedicated CPUs, and more rounds",
        ),
        false => ok(CHECK, found),
    }
}

/// The one-minute load average against the number of CPUs.
pub(super) fn load(loadavg: Text, cpus: usize) -> Finding {
    const CHECK: &str = "load";
    let loadavg = match loadavg {
        Ok(loadavg) => loadavg,
        Err(reason) => return unknown(CHECK, reason),
    };
    let Some(load) = parse_load(&loadavg) else { return unreadable(CHECK, &loadavg) };
    let found = format!("load average {load:.2} on {cpus} CPUs");
    match load > BUSY_LOAD * cpus as f64 {
        true => {
            warn(CHECK, format!("{found}: the machine is busy"), "wait until it is quiet, or end what runs")
        }
        false => ok(CHECK, found),
    }
}

/// The clock source: any that user space can read without a system call.
pub(super) fn clock_source(current: Text) -> Finding {
    const CHECK: &str = "clock-source";
    match current.as_deref().map(str::trim) {
        Err(reason) => unknown(CHECK, reason.as_str()),
        Ok("") => unreadable(CHECK, ""),
        Ok(source) if FAST_CLOCKS.contains(&source) => ok(CHECK, source),
        Ok(source) => warn(
            CHECK,
            format!("{source}: every reading of the clock is a system call"),
            "look why the kernel gave up its fast clock (`dmesg | grep -i clocksource`)",
        ),
    }
}

/// CPUs as they stand in a sentence.
fn cpus_in_words(cpus: &[u32]) -> String {
    match cpus {
        [] => "no CPU".into(),
        [one] => format!("CPU {one}"),
        many => format!("CPUs {}", format_cpu_list(many)),
    }
}

/// A hundredth of the wanted time is as much as rounds commonly differ by.
const MUCH_STOLEN: f64 = 0.01;

/// Clock sources with a vDSO reading (vdso(7)): x86, its hypervisors, Arm, RISC-V, s390, POWER.
const FAST_CLOCKS: [&str; 7] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "riscv_clocksource",
    "tod",
    "timebase",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::FindingLevel::{self, Bad, Ok as Fine, Unknown, Warn};

    type Cpus = &'static [u32];

    fn text(text: &str) -> Text {
        Ok(text.into())
    }

    fn absent() -> Text {
        Err("cannot read it: no such file".into())
    }

    fn each(texts: &[&str]) -> BTreeMap<u32, Text> {
        (0..).zip(texts.iter().map(|&content| text(content))).collect()
    }

    #[test]
    fn pin_sets() {
        let cases: [(Cpus, Cpus, Cpus, FindingLevel); 8] = [
            (&[0], &[1], &[0, 1], Fine),
            (&[], &[], &[0, 1], Fine),
            (&[], &[], &[0], Warn),
            (&[0], &[], &[0, 1], Warn),
            (&[], &[1], &[0, 1], Warn),
            (&[0, 1], &[1], &[0, 1], Bad),
            (&[0], &[99], &[0, 1], Bad),
            (&[0], &[1], &[0], Bad),
        ];
        for (server, generator, usable, level) in cases {
            let finding = pinning(Sides { server, generator }, usable);
            assert_eq!(finding.level, level, "{server:?} {generator:?} {usable:?}: {finding:?}");
        }
    }

    #[test]
    fn a_core_on_both_sides_is_named() {
        let siblings = each(&["0,2\n", "1,3\n", "0,2\n", "1,3\n"]);
        let sides = |server, generator| Sides { server, generator };
        assert_eq!(smt_siblings(sides(&[0, 2], &[1, 3]), &siblings).level, Fine);
        let split = smt_siblings(sides(&[0, 1], &[2, 3]), &siblings);
        assert_eq!(split.level, Warn);
        assert_eq!(split.found, "CPUs 0,2,1,3 share cores between servers and generator");
        assert_eq!(smt_siblings(sides(&[], &[]), &siblings).level, Fine);
        assert_eq!(smt_siblings(sides(&[0], &[1]), &each(&["0", "1"])).level, Fine);
        assert_eq!(smt_siblings(sides(&[0], &[1]), &each(&["0", "?"])).level, Unknown);
        assert_eq!(smt_siblings(sides(&[0], &[1]), &BTreeMap::from([(0, absent())])).level, Unknown);
    }

    #[test]
    fn governors_are_named_with_their_cpus() {
        assert_eq!(governor(&each(&["performance\n", "performance\n"])).level, Fine);
        let mixed = governor(&each(&["powersave\n", "performance\n", "powersave\n"]));
        assert_eq!((mixed.level, mixed.found.as_str()), (Warn, "powersave on CPUs 0,2"));
        assert_eq!(governor(&BTreeMap::from([(0, absent())])).level, Unknown);
        assert_eq!(governor(&BTreeMap::new()).level, Unknown);
    }

    #[test]
    fn turbo_has_two_switches_of_opposite_sense() {
        for (no_turbo, boost, level) in [
            (text("0\n"), absent(), Warn),
            (text("1\n"), absent(), Fine),
            (absent(), text("1\n"), Warn),
            (absent(), text("0\n"), Fine),
            (text("1\n"), text("1\n"), Fine),
            (text("?"), absent(), Unknown),
            (absent(), absent(), Unknown),
        ] {
            assert_eq!(turbo(no_turbo.clone(), boost.clone()).level, level, "{no_turbo:?} {boost:?}");
        }
    }

    #[test]
    fn quotas() {
        for (found, level) in
            [(Ok(None), Fine), (Ok(Some(4.0)), Warn), (Ok(Some(1.5)), Bad), (Err("why".into()), Unknown)]
        {
            assert_eq!(quota(found.clone(), 2).level, level, "{found:?}");
        }
    }

    #[test]
    fn theft_is_a_share_of_the_time_wanted() {
        for (content, level) in [
            ("cpu0 1000 0 0 999999 0 0 0 5\n", Fine),
            ("cpu0 1000 0 0 999999 0 0 0 50\ncpu1 0 0 0 9 0 0 0 0\n", Warn),
            ("cpu0 0 0 0 1 0 0 0 0\n", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(steal(text(content)).level, level, "{content}");
        }
        assert_eq!(steal(absent()).level, Unknown);
    }

    #[test]
    fn load_counts_for_each_cpu() {
        for (content, cpus, level) in [
            ("0.40 0 0 1/2 3", 2, Fine),
            ("0.60 0 0 1/2 3", 2, Warn),
            ("0.60 0 0 1/2 3", 8, Fine),
            ("x", 2, Unknown),
        ] {
            assert_eq!(load(text(content), cpus).level, level, "{content}");
        }
        assert_eq!(load(absent(), 2).level, Unknown);
    }

    #[test]
    fn clocks_that_need_a_system_call_are_slow() {
        for (content, level) in
            [("tsc\n", Fine), ("kvm-clock\n", Fine), ("hpet\n", Warn), ("acpi_pm\n", Warn), ("\n", Unknown)]
        {
            assert_eq!(clock_source(text(content)).level, level, "{content}");
        }
        assert_eq!(clock_source(absent()).level, Unknown);
    }
}
