//! Owns the examination of the machine: which checks there are, what each of them reads, and their
//! order. The checks themselves are pure functions from text to finding, one file for each subject.

mod cgroup;
mod cpu;
mod kernel;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::utsname::uname;

use super::machine::{ephemeral_text, machine, reserved_text, siblings_text};
use super::read::text;
use crate::results::{Finding, FindingLevel};

/// What `bench doctor` finds; `ports` are listen ports of a scenario, empty without one. Either list of
/// CPUs is empty when that side is not pinned.
///
/// Reads and changes nothing, takes a few milliseconds. What cannot be read is a finding as well, at
/// level `unknown` with the reason.
pub fn doctor(server_cpus: &[u32], generator_cpus: &[u32], ports: &[u16]) -> Vec<Finding> {
    let machine = machine();
    let sides = cpu::Sides { server: server_cpus, generator: generator_cpus };
    let measured = sides.measured(&machine.cpus);
    let of_each = |file: &str| cpu::of_each(&measured, |cpu| text(&format!("{CPUS}/cpu{cpu}/{file}")));
    let release = uname().map(|name| name.release().to_string_lossy().into_owned());
    let fd_limit = getrlimit(Resource::RLIMIT_NOFILE).map(|(_, hard)| hard);
    vec![
        kernel::release(release.map_err(|error| format!("uname: {error}"))),
        kernel::io_uring(text("/proc/sys/kernel/io_uring_disabled"), text("/proc/self/status")),
        kernel::fd_limit(fd_limit.map_err(|error| format!("getrlimit: {error}"))),
        kernel::ephemeral_ports(ephemeral_text(), reserved_text(), ports),
        kernel::somaxconn(text("/proc/sys/net/core/somaxconn")),
        kernel::tcp_tw_reuse(text("/proc/sys/net/ipv4/tcp_tw_reuse")),
        kernel::udp_buffers(text("/proc/sys/net/core/rmem_max"), text("/proc/sys/net/core/wmem_max")),
        kernel::loopback_mtu(text("/sys/class/net/lo/mtu")),
        kernel::ipv6_loopback(text("/proc/net/if_inet6")),
        kernel::memory(text("/proc/meminfo")),
        cpu::pinning(sides, &machine.cpus),
        cpu::smt_siblings(sides, &cpu::of_each(&measured, siblings_text)),
        cpu::governor(&of_each("cpufreq/scaling_governor")),
        cpu::turbo(text(&format!("{CPUS}/intel_pstate/no_turbo")), text(&format!("{CPUS}/cpufreq/boost"))),
        cpu::quota(cgroup::smallest_quota(), measured.len()),
        cpu::steal(text("/proc/stat")),
        cpu::load(text("/proc/loadavg"), machine.cpus.len()),
        cpu::clock_source(text("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    ]
}

/// Where the kernel describes its CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

fn ok(check: &str, found: impl Into<String>) -> Finding {
    Finding { check: check.into(), level: FindingLevel::Ok, found: found.into(), remedy: None }
}

fn unknown(check: &str, reason: impl Into<String>) -> Finding {
    Finding { check: check.into(), level: FindingLevel::Unknown, found: reason.into(), remedy: None }
}

fn warn(check: &str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    let (found, remedy) = (found.into(), Some(remedy.into()));
    Finding { check: check.into(), level: FindingLevel::Warn, found, remedy }
}

fn bad(check: &str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { level: FindingLevel::Bad, ..warn(check, found, remedy) }
}

/// Reads a file that holds one number.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// A file was there and held something else than this kind of file does.
fn unreadable(check: &str, text: &str) -> Finding {
    let start: String = text.chars().take(60).collect();
    unknown(check, format!("cannot make sense of {start:?}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own_and_every_complaint_a_remedy() {
        let findings = doctor(&[], &[], &[]);
        let names: BTreeSet<&str> = findings.iter().map(|finding| finding.check.as_str()).collect();
        assert_eq!(names.len(), findings.len());
        for finding in &findings {
            let complaint = finding.level >= FindingLevel::Warn;
            assert_eq!(finding.remedy.is_some(), complaint, "{finding:?}");
            assert!(!finding.found.is_empty() && !finding.found.contains('\n'), "{finding:?}");
        }
    }
}
