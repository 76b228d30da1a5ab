//! Owns the checks of what the kernel offers and allows: its version, `io_uring`, limits, ports,
//! sockets, memory. Pure.

use super::{bad, number, ok, unknown, unreadable, warn};
use crate::results::Finding;
use crate::sampler::machine::{parse_port_list, parse_port_range};
use crate::sampler::read::Text;
use crate::sampler::stat::parse_meminfo;

/// The release, as `uname -r` prints it, against what the generator needs.
pub(super) fn release(release: Text) -> Finding {
    const CHECK: &str = "kernel";
    let release = match release {
        Ok(release) => release,
        Err(reason) => return unknown(CHECK, reason),
    };
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
        return unreadable(CHECK, &release);
    };
    let (need_major, need_minor) = NEEDED_KERNEL;
    match (major, minor) >= NEEDED_KERNEL {
        true => ok(CHECK, format!("Linux {release}")),
        false => bad(
            CHECK,
            format!("Linux {release}, older than {need_major}.{need_minor}"),
            format!(
                "run on Linux {need_major}.{need_minor} or newer: the generator needs its io_uring features"
            ),
        ),
    }
}

/// The switch `kernel.io_uring_disabled` (Linux, Documentation/admin-guide/sysctl/kernel): 0 for
/// all, 1 for privileged processes and one group, 2 for nobody. A container's seccomp filter may
/// refuse it as well; that is found out only by trying.
pub(super) fn io_uring(switch: Text, own_status: Text) -> Finding {
    const CHECK: &str = "io-uring";
    let Ok(switch) = switch else {
        return ok(CHECK, "this kernel has no switch that turns it off");
    };
    let remedy = "sudo sysctl kernel.io_uring_disabled=0";
    match number::<u32>(&switch) {
        Some(0) => ok(CHECK, "allowed (kernel.io_uring_disabled = 0)"),
        Some(1) if own_status.is_ok_and(|status| has_sys_admin(&status)) => {
            ok(CHECK, "allowed for privileged processes, and this is one (kernel.io_uring_disabled = 1)")
        }
        Some(1) => bad(
            CHECK,
            "allowed for privileged processes and one group only (kernel.io_uring_disabled = 1)",
            format!("{remedy}, or join the group of kernel.io_uring_group"),
        ),
        Some(2) => bad(CHECK, "turned off (kernel.io_uring_disabled = 2)", remedy),
        _ => unreadable(CHECK, &switch),
    }
}

/// Whether `/proc/self/status` shows the capability `CAP_SYS_ADMIN` (capabilities(7)) in effect.
fn has_sys_admin(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> CAP_SYS_ADMIN & 1 == 1)
}

/// The hard limit of open files. The soft one does not matter: it is raised when it must be.
pub(super) fn fd_limit(hard: Result<u64, String>) -> Finding {
    const CHECK: &str = "fd-limit";
    let remedy = "raise it: `ulimit -Hn 65536` as root, `nofile` in /etc/security/limits.conf, \
                  `LimitNOFILE=` of a unit, `--ulimit nofile=` of a container";
    match hard {
        Err(reason) => unknown(CHECK, reason),
        Ok(u64::MAX) => ok(CHECK, "no hard limit of open files"),
        Ok(hard) if hard < FEW_FILES => bad(
            CHECK,
            format!("hard limit of {hard} open files, too few for a cell of 1000 connections"),
            remedy,
        ),
        Ok(hard) if hard < ENOUGH_FILES => {
            warn(CHECK, format!("hard limit of {hard} open files bounds the connections of a cell"), remedy)
        }
        Ok(hard) => ok(CHECK, format!("hard limit of {hard} open files")),
    }
}

/// Ephemeral ports against the scenario's listen ports, and whether there are enough for cells that
/// open a connection for each request.
pub(super) fn ephemeral_ports(range: Text, reserved: Text, listen: &[u16]) -> Finding {
    const CHECK: &str = "ephemeral-ports";
    let range = match range {
        Ok(range) => range,
        Err(reason) => return unknown(CHECK, reason),
    };
    let Some((first, last)) = parse_port_range(&range) else { return unreadable(CHECK, &range) };
    let reserved = reserved.map_or_else(|_| Vec::new(), |list| parse_port_list(&list));
    let is_reserved = |port: &u16| reserved.iter().any(|(first, last)| (first..=last).contains(&port));
    let at_risk: Vec<String> = listen
        .iter()
        .filter(|port| (first..=last).contains(port) && !is_reserved(port))
        .map(u16::to_string)
        .collect();
    let count = u32::from(last - first) + 1;
    if !at_risk.is_empty() {
        let ports = at_risk.join(",");
        return bad(
            CHECK,
            format!(
                "listen port {ports} lies inside the ephemeral range {first}-{last}: a client may take it first"
            ),
            format!(
                "choose a port outside the range, or add it to what is reserved: \
                 sudo sysctl net.ipv4.ip_local_reserved_ports={ports}"
            ),
        );
    }
    match count < ENOUGH_PORTS {
        true => warn(
            CHECK,
            format!("{count} ephemeral ports ({first}-{last}) are soon used up by cells of kind `setup`"),
            "sudo sysctl net.ipv4.ip_local_port_range=\"32768 60999\"",
        ),
        false => ok(CHECK, format!("{count} ephemeral ports ({first}-{last})")),
    }
}

/// `net.core.somaxconn`: how long the queue of connections not yet accepted may be (listen(2)).
pub(super) fn somaxconn(limit: Text) -> Finding {
    const CHECK: &str = "somaxconn";
    let limit = match limit {
        Ok(limit) => limit,
        Err(reason) => return unknown(CHECK, reason),
    };
    match number::<u64>(&limit) {
        None => unreadable(CHECK, &limit),
        Some(limit) if limit < LONG_QUEUE => warn(
            CHECK,
            format!(
                "accept queues hold at most {limit} connections; a burst of connects overflows them and waits 1 s"
            ),
            "sudo sysctl net.core.somaxconn=4096",
        ),
        Some(limit) => ok(CHECK, format!("accept queues hold up to {limit} connections")),
    }
}

/// `net.ipv4.tcp_tw_reuse` (tcp(7), Linux, Documentation/networking/ip-sysctl): whether a new
/// connection may take the port of one that is in TIME-WAIT; 1 for all, 2 on loopback.
pub(super) fn tcp_tw_reuse(setting: Text) -> Finding {
    const CHECK: &str = "tcp-tw-reuse";
    let setting = match setting {
        Ok(setting) => setting,
        Err(reason) => return unknown(CHECK, reason),
    };
    match number::<u32>(&setting) {
        Some(0) => warn(
            CHECK,
            "ports in TIME-WAIT are not used again for 60 s, so cells of kind `setup` run out of them",
            "sudo sysctl net.ipv4.tcp_tw_reuse=2",
        ),
        Some(1) => ok(CHECK, "ports in TIME-WAIT are used again"),
        Some(2) => ok(CHECK, "ports in TIME-WAIT are used again on loopback"),
        _ => unreadable(CHECK, &setting),
    }
}

/// `net.core.rmem_max` and `wmem_max` (socket(7)): what a server may ask for as buffers of its UDP sockets. What
/// does not fit a receive buffer is dropped, and QUIC has to send it again.
pub(super) fn udp_buffers(receive: Text, send: Text) -> Finding {
    const CHECK: &str = "udp-buffers";
    let (receive, send) = match (receive, send) {
        (Ok(receive), Ok(send)) => (receive, send),
        (Err(reason), _) | (_, Err(reason)) => return unknown(CHECK, reason),
    };
    let limits = [("rmem_max", number::<u64>(&receive)), ("wmem_max", number::<u64>(&send))];
    let [(_, Some(most_received)), (_, Some(most_sent))] = limits else {
        return unreadable(CHECK, &format!("{receive} {send}"));
    };
    let found = format!(
        "UDP sockets may have {} KiB to receive into and {} KiB to send from",
        most_received / 1024,
        most_sent / 1024
    );
    let short: Vec<String> = limits
        .iter()
        .filter(|(_, limit)| limit.is_some_and(|limit| limit < LARGE_BUFFER))
        .map(|(name, _)| format!("net.core.{name}={LARGE_BUFFER}"))
        .collect();
    if short.is_empty() {
        return ok(CHECK, found);
    }
    warn(
        CHECK,
        format!("{found}: QUIC servers that ask for more lose datagrams under load"),
        format!("sudo sysctl {}", short.join(" ")),
    )
}

/// MTU of the loopback interface: with less than its stock 64 KiB, TCP and UDP are cut into more packets than
/// on other machines.
pub(super) fn loopback_mtu(mtu: Text) -> Finding {
    const CHECK: &str = "loopback-mtu";
    let mtu = match mtu {
        Ok(mtu) => mtu,
        Err(reason) => return unknown(CHECK, reason),
    };
    match number::<u32>(&mtu) {
        None => unreadable(CHECK, &mtu),
        Some(mtu) if mtu < LOOPBACK_MTU => warn(
            CHECK,
            format!("packets over loopback have at most {mtu} bytes, {LOOPBACK_MTU} are usual"),
            format!("unless that is what you mean to measure: sudo ip link set lo mtu {LOOPBACK_MTU}"),
        ),
        Some(mtu) => ok(CHECK, format!("packets over loopback have up to {mtu} bytes")),
    }
}

/// Whether `::1` is there, which `localhost` may mean.
pub(super) fn ipv6_loopback(addresses: Text) -> Finding {
    const CHECK: &str = "ipv6-loopback";
    let missing = "use 127.0.0.1, or turn IPv6 on: sudo sysctl net.ipv6.conf.lo.disable_ipv6=0";
    match addresses {
        // Without IPv6 in the kernel the file is not there at all.
        Err(reason) => unknown(CHECK, reason),
        Ok(list) if list.lines().any(|line| line.starts_with(IPV6_LOOPBACK)) => ok(CHECK, "::1 is there"),
        Ok(_) => warn(CHECK, "::1 is not there; servers that listen on it only cannot be measured", missing),
    }
}

/// `MemAvailable`: what can be had without swapping.
pub(super) fn memory(info: Text) -> Finding {
    const CHECK: &str = "memory";
    let info = match info {
        Ok(info) => info,
        Err(reason) => return unknown(CHECK, reason),
    };
    let Some(available) = parse_meminfo(&info, "MemAvailable") else {
        return unknown(CHECK, "/proc/meminfo has no line MemAvailable");
    };
    let found = format!("{} MiB of memory available", available / 1024);
    match available < ENOUGH_MEMORY_KIB {
        true => warn(CHECK, format!("{found}; servers may be swapped or killed"), "end what uses the memory"),
        false => ok(CHECK, found),
    }
}

/// The first release with everything the generator cannot do without.
const NEEDED_KERNEL: (u32, u32) = (6, 1);

/// Bit of `CAP_SYS_ADMIN` in a capability mask.
const CAP_SYS_ADMIN: u32 = 21;

/// Below this many files a common cell cannot be opened.
const FEW_FILES: u64 = 1_024;

/// Ten thousand connections, and room; server and generator each have a limit of their own.
const ENOUGH_FILES: u64 = 10_240;

/// A third of the stock range.
const ENOUGH_PORTS: u32 = 10_000;

/// Connections that scenarios commonly open at once, several times over.
const LONG_QUEUE: u64 = 1_024;

/// What QUIC implementations commonly ask for, and this generator does.
const LARGE_BUFFER: u64 = 4 << 20;

/// What Linux gives the loopback interface.
const LOOPBACK_MTU: u32 = 65_536;

/// `::1` as `/proc/net/if_inet6` prints it.
const IPV6_LOOPBACK: &str = "00000000000000000000000000000001 ";

/// 512 MiB: a few servers of the heavier runtimes.
const ENOUGH_MEMORY_KIB: u64 = 512 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::FindingLevel::{self, Bad, Ok as Fine, Unknown, Warn};

    type Check = fn(Text) -> Finding;

    fn text(text: &str) -> Text {
        Ok(text.into())
    }

    fn absent() -> Text {
        Err("cannot read it: no such file".into())
    }

    #[test]
    fn kernels_older_than_needed_are_bad() {
        for (text_of, level) in [
            (text("6.18.44-fc-v657"), Fine),
            (text("6.1.0-13-amd64"), Fine),
            (text("6.1"), Fine),
            (text("10.0.1"), Fine),
            (text("6.0.19"), Bad),
            (text("5.15.0-generic"), Bad),
            (text("custom"), Unknown),
            (absent(), Unknown),
        ] {
            assert_eq!(release(text_of.clone()).level, level, "{text_of:?}");
        }
    }

    #[test]
    fn io_uring_switches() {
        let root = || text("Name:\tbench\nCapEff:\t000001ffffffffff\n");
        let user = || text("Name:\tbench\nCapEff:\t0000000000000000\n");
        for (switch, status, level) in [
            (text("0\n"), user(), Fine),
            (text("1\n"), root(), Fine),
            (text("1\n"), user(), Bad),
            (text("1\n"), absent(), Bad),
            (text("2\n"), root(), Bad),
            (text("?"), root(), Unknown),
            (absent(), user(), Fine),
        ] {
            assert_eq!(io_uring(switch.clone(), status.clone()).level, level, "{switch:?} {status:?}");
        }
    }

    #[test]
    fn limits_on_open_files() {
        for (hard, level) in [(256, Bad), (4_096, Warn), (10_240, Fine), (u64::MAX, Fine)] {
            assert_eq!(fd_limit(Ok(hard)).level, level, "{hard}");
        }
        assert_eq!(fd_limit(Err("getrlimit: EINVAL".into())).level, Unknown);
    }

    #[test]
    fn listen_ports_inside_the_ephemeral_range_are_bad_unless_reserved() {
        let stock = || text("32768\t60999\n");
        let cases: [(Text, &str, &[u16], FindingLevel); 9] = [
            (stock(), "", &[], Fine),
            (stock(), "", &[8080, 32_767, 61_000], Fine),
            (stock(), "", &[8080, 32_768], Bad),
            (stock(), "", &[60_999], Bad),
            (stock(), "32768,60000-61000", &[32_768, 60_999], Fine),
            (stock(), "32769", &[32_768], Bad),
            (text("60000 60999"), "", &[8080], Warn),
            (text("0"), "", &[8080], Unknown),
            (absent(), "", &[8080], Unknown),
        ];
        for (range, reserved, listen, level) in cases {
            let finding = ephemeral_ports(range.clone(), text(reserved), listen);
            assert_eq!(finding.level, level, "{range:?} {reserved} {listen:?}");
        }
        let all = ephemeral_ports(text("0 65535"), absent(), &[80, 443]);
        assert!(all.found.contains("80,443"), "{all:?}");
    }

    #[test]
    fn udp_buffers_smaller_than_what_is_asked_for_are_named() {
        let large = || text("4194304\n");
        let stock = || text("212992\n");
        for (receive, send, level, remedy) in [
            (large(), large(), Fine, None),
            (stock(), large(), Warn, Some("sudo sysctl net.core.rmem_max=4194304")),
            (large(), stock(), Warn, Some("sudo sysctl net.core.wmem_max=4194304")),
            (stock(), stock(), Warn, Some("sudo sysctl net.core.rmem_max=4194304 net.core.wmem_max=4194304")),
            (text("?"), large(), Unknown, None),
            (absent(), large(), Unknown, None),
            (large(), absent(), Unknown, None),
        ] {
            let finding = udp_buffers(receive.clone(), send.clone());
            assert_eq!((finding.level, finding.remedy.as_deref()), (level, remedy), "{receive:?} {send:?}");
        }
    }

    #[test]
    fn sockets_and_memory() {
        let cases: [(Check, &str, FindingLevel); 16] = [
            (loopback_mtu, "65536\n", Fine),
            (loopback_mtu, "1500\n", Warn),
            (loopback_mtu, "x", Unknown),
            (somaxconn, "4096\n", Fine),
            (somaxconn, "128\n", Warn),
            (somaxconn, "", Unknown),
            (tcp_tw_reuse, "0\n", Warn),
            (tcp_tw_reuse, "1\n", Fine),
            (tcp_tw_reuse, "2\n", Fine),
            (tcp_tw_reuse, "9\n", Unknown),
            (ipv6_loopback, "00000000000000000000000000000001 01 80 10 80       lo\n", Fine),
            (ipv6_loopback, "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n", Warn),
            (ipv6_loopback, "", Warn),
            (memory, "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n", Fine),
            (memory, "MemTotal: 16000000 kB\nMemAvailable: 100000 kB\n", Warn),
            (memory, "MemTotal: 16000000 kB\n", Unknown),
        ];
        for (check, content, level) in cases {
            let finding = check(text(content));
            assert_eq!(finding.level, level, "{content:?}: {finding:?}");
            assert_eq!(check(absent()).level, Unknown);
        }
    }
}
