//! Owns the facts of the machine that scenarios are checked against: CPUs, cores, limits, ports.

use std::collections::BTreeSet;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::Pid;

use super::read::{Text, text};
use super::stat::parse_cpu_list;
use crate::scenario::Machine;

/// The facts scenarios are checked against. What cannot be read is what a stock kernel has: every
/// CPU a core of its own, ephemeral ports 32768 to 60999, none of them reserved.
pub fn machine() -> Machine {
    let cpus = usable_cpus();
    let siblings = |cpu: u32| siblings_text(cpu).ok().and_then(|list| parse_cpu_list(&list));
    Machine {
        cores: group_by_core(&cpus, siblings),
        cpus,
        fd_hard_limit: getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard),
        ephemeral_ports: ephemeral_text()
            .ok()
            .and_then(|range| parse_port_range(&range))
            .unwrap_or(STOCK_EPHEMERAL_PORTS),
        reserved_ports: reserved_text().map_or_else(|_| Vec::new(), |ports| parse_port_list(&ports)),
    }
}

/// CPUs this process may run on (sched_getaffinity(2)), ascending; those of its cpuset included.
pub(super) fn usable_cpus() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let cpus = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false));
    cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// CPUs that share a core with `cpu`, itself included, in the kernel's notation.
pub(super) fn siblings_text(cpu: u32) -> Text {
    text(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
}

/// First and last ephemeral port; see ip(7).
pub(super) fn ephemeral_text() -> Text {
    text("/proc/sys/net/ipv4/ip_local_port_range")
}

/// Ports the kernel never gives out by itself.
pub(super) fn reserved_text() -> Text {
    text("/proc/sys/net/ipv4/ip_local_reserved_ports")
}

/// Divides `cpus` into cores: each CPU is in exactly one group, the groups are in the order of their
/// first CPUs. A CPU whose siblings are not known is a core of its own.
pub(super) fn group_by_core(cpus: &[u32], siblings: impl Fn(u32) -> Option<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut left: BTreeSet<u32> = cpus.iter().copied().collect();
    let mut cores = Vec::new();
    while let Some(first) = left.pop_first() {
        let mut core = vec![first];
        core.extend(siblings(first).unwrap_or_default().into_iter().filter(|cpu| left.remove(cpu)));
        core.sort_unstable();
        cores.push(core);
    }
    cores
}

/// Reads `first last`, as in `ip_local_port_range`.
pub(super) fn parse_port_range(text: &str) -> Option<(u16, u16)> {
    let mut ports = text.split_ascii_whitespace().map(str::parse);
    let (Some(Ok(first)), Some(Ok(last))) = (ports.next(), ports.next()) else { return None };
    (first <= last).then_some((first, last))
}

/// Reads `8080,9148-9150`, as in `ip_local_reserved_ports`. Entries that are no ports are left out.
pub(super) fn parse_port_list(text: &str) -> Vec<(u16, u16)> {
    let range = |entry: &str| {
        let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    text.split(',').filter_map(range).filter(|(first, last)| first <= last).collect()
}

/// What Linux starts with.
const STOCK_EPHEMERAL_PORTS: (u16, u16) = (32_768, 60_999);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cores_are_groups_of_usable_siblings() {
        let siblings = |cpu: u32| match cpu {
            0 | 4 => Some(vec![0, 4]),
            1 | 5 => Some(vec![1, 5]),
            _ => None,
        };
        assert_eq!(group_by_core(&[0, 1, 2, 4, 5], siblings), [vec![0, 4], vec![1, 5], vec![2]]);
        // A sibling that this process may not use belongs to no group of its.
        assert_eq!(group_by_core(&[4, 1], siblings), [vec![1], vec![4]]);
        assert!(group_by_core(&[], siblings).is_empty());
    }

    #[test]
    fn ports_read_as_the_kernel_prints_them() {
        assert_eq!(parse_port_range("32768\t60999\n"), Some((32_768, 60_999)));
        for text in ["", "1", "9 8", "1 70000", "a b"] {
            assert_eq!(parse_port_range(text), None, "{text:?}");
        }
        assert_eq!(parse_port_list("8080,9148-9150\n"), [(8080, 8080), (9148, 9150)]);
        assert_eq!(parse_port_list("\n"), []);
        assert_eq!(parse_port_list("9-8,x,70000,5"), [(5, 5)]);
    }

    #[test]
    fn this_machine_has_cpus_and_each_is_in_one_core() {
        let machine = machine();
        let mut of_cores: Vec<u32> = machine.cores.concat();
        of_cores.sort_unstable();
        assert!(!machine.cpus.is_empty());
        assert_eq!(of_cores, machine.cpus);
        assert!(machine.fd_hard_limit > 0);
        assert!(machine.ephemeral_ports.0 <= machine.ephemeral_ports.1);
    }

    proptest! {
        #[test]
        fn every_cpu_is_in_exactly_one_core(
            cpus in proptest::collection::btree_set(0u32..16, 0..16),
            siblings in proptest::collection::vec(proptest::option::of(proptest::collection::vec(0u32..16, 0..4)), 16),
        ) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            let mut grouped = group_by_core(&cpus, |cpu| siblings[cpu as usize].clone()).concat();
            grouped.sort_unstable();
            prop_assert_eq!(grouped, cpus);
        }
    }
}
