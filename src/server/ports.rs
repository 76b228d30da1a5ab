//! Owns the choice of listen ports: which numbers are safe, which are free, and who holds one.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;

use nix::errno::Errno;
use procfs::net::{TcpState, tcp, tcp6, udp, udp6};
use procfs::process::{FDTarget, all_processes};

use super::{Ports, ServerError};
use crate::clock;
use crate::scenario::ServerSpec;
use crate::time::Span;

/// Where the search for a port of cleartext protocols starts.
const FIRST_HTTP: u16 = 20_080;

/// Where the search for a port of TLS protocols starts.
const FIRST_HTTPS: u16 = 20_443;

/// Ports below this one need a privilege (ip(7), `ip_unprivileged_port_start`).
const FIRST_UNPRIVILEGED: u16 = 1024;

/// How long a port may stay taken after its last process has ended. A socket closes with its
/// process; one that is held by an io_uring closes when the kernel has torn that down, a little later.
const RELEASE: Span = Span::from_secs(2);

/// Pause between two looks at a port that is to become free.
const RELEASE_POLL: Span = Span::from_millis(5);

/// Runs that go on at the same time begin their search apart, so that neither finds a port free that
/// the other is about to listen on.
fn own_offset() -> u16 {
    (std::process::id() % 10) as u16 * 1_000
}

/// See [`super::allocate_ports`].
pub(super) fn allocate(spec: &ServerSpec) -> Result<Ports, ServerError> {
    let safe = Safe::of_this_machine();
    let http = match spec.port {
        Some(port) => require(port)?,
        None => find(&safe, FIRST_HTTP + own_offset(), spec.tls_port)?,
    };
    let https = match spec.tls_port {
        Some(port) => require(port)?,
        None => find(&safe, FIRST_HTTPS + own_offset(), Some(http))?,
    };
    Ok(Ports { http, https })
}

/// Checks that nobody listens on either port.
///
/// # Errors
/// Names the port and, when it can be seen, its holder.
pub(super) fn require_free(ports: Ports) -> Result<(), ServerError> {
    require(ports.http)?;
    require(ports.https)?;
    Ok(())
}

/// Waits until both ports are free; what to say about one that is not after two seconds.
pub(super) fn wait_free(ports: Ports) -> Option<String> {
    let deadline = clock::now() + RELEASE;
    loop {
        match require_free(ports) {
            Ok(()) => return None,
            Err(error) if clock::now() >= deadline => return Some(error.reason),
            Err(_) => clock::sleep_until(clock::now() + RELEASE_POLL),
        }
    }
}

/// The port, when it is free.
fn require(port: u16) -> Result<u16, ServerError> {
    match bind(port) {
        Ok(()) => Ok(port),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(ServerError::failed(format!(
            "port {port} is taken by {}; end that process or choose another port",
            holder(port).unwrap_or_else(|| "a process that cannot be seen from here".into())
        ))),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(ServerError::failed(format!(
            "port {port} may not be listened on by this user; choose one from {FIRST_UNPRIVILEGED} up"
        ))),
        Err(error) => Err(ServerError::failed(format!("port {port} cannot be listened on: {error}"))),
    }
}

/// The first safe port from `first` on that is free and is not `other`.
fn find(safe: &Safe, first: u16, other: Option<u16>) -> Result<u16, ServerError> {
    let mut any = false;
    for port in safe.from(first).filter(|port| Some(*port) != other) {
        any = true;
        if bind(port).is_ok() {
            return Ok(port);
        }
    }
    let (low, high) = (safe.ephemeral.start(), safe.ephemeral.end());
    Err(ServerError::failed(if any {
        format!("every port outside the ephemeral range {low}-{high} is taken; fix `port` and `tls_port`")
    } else {
        format!(
            "no port lies outside the ephemeral range {low}-{high}, where a client's socket could take it; \
             narrow it with `sysctl net.ipv4.ip_local_port_range=\"32768 60999\"` or fix `port` and `tls_port`"
        )
    }))
}

/// Listens on `port` for a moment as a server would: both loopback addresses, TCP with
/// `SO_REUSEADDR` (which the standard library sets), so that connections in TIME_WAIT do not count
/// and any listener does; UDP for the protocols over QUIC.
fn bind(port: u16) -> io::Result<()> {
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let address = SocketAddr::new(ip, port);
        let bound = TcpListener::bind(address).and_then(|tcp| Ok((tcp, UdpSocket::bind(address)?)));
        match bound {
            // A machine without IPv6 has nobody on that address either.
            Err(error) if ip.is_ipv6() && lacks_ipv6(&error) => {}
            bound => drop(bound?),
        }
    }
    Ok(())
}

fn lacks_ipv6(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL))
}

/// The process that listens on `port`, as far as this user may see it: `` `nginx` (pid 12) ``.
fn holder(port: u16) -> Option<String> {
    let listeners = [tcp(), tcp6()].into_iter().filter_map(Result::ok).flatten();
    let sockets = [udp(), udp6()].into_iter().filter_map(Result::ok).flatten();
    let inodes: Vec<u64> = listeners
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port)
        .map(|entry| entry.inode)
        .chain(sockets.filter(|entry| entry.local_address.port() == port).map(|entry| entry.inode))
        .collect();
    let holds = |process: &procfs::process::Process| {
        process.fd().is_ok_and(|fds| {
            fds.filter_map(Result::ok)
                .any(|fd| matches!(fd.target, FDTarget::Socket(inode) if inodes.contains(&inode)))
        })
    };
    let process = all_processes().ok()?.filter_map(Result::ok).find(holds)?;
    let stat = process.stat().ok()?;
    Some(format!("`{}` (pid {})", stat.comm, stat.pid))
}

/// The ports that no client's socket can take by chance.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Safe {
    /// `ip_local_port_range` (ip(7)).
    ephemeral: RangeInclusive<u16>,
    /// `ip_local_reserved_ports`: never given to a client, though inside the range.
    reserved: Vec<RangeInclusive<u16>>,
}

impl Safe {
    fn of_this_machine() -> Self {
        let read = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        Self {
            // The kernel's own default, for a /proc that does not show it.
            ephemeral: parse_range(&read("ip_local_port_range")).unwrap_or(32_768..=60_999),
            reserved: parse_reserved(&read("ip_local_reserved_ports")),
        }
    }

    /// All safe ports that need no privilege: from `first` up, then those below it.
    fn from(&self, first: u16) -> impl Iterator<Item = u16> {
        (first..=u16::MAX).chain(FIRST_UNPRIVILEGED..first).filter(|port| {
            !self.ephemeral.contains(port) || self.reserved.iter().any(|range| range.contains(port))
        })
    }
}

/// Reads `ip_local_port_range`: two numbers between blanks.
fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next()?, numbers.next()?) {
        (Ok(low), Ok(high)) => Some(low..=high),
        _ => None,
    }
}

/// Reads `ip_local_reserved_ports`: numbers and ranges between commas. What is no port is left out.
fn parse_reserved(text: &str) -> Vec<RangeInclusive<u16>> {
    let range = |item: &str| {
        let (low, high) = item.split_once('-').unwrap_or((item, item));
        Some(low.trim().parse().ok()?..=high.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kernel_files_read_as_the_kernel_writes_them() {
        assert_eq!(parse_range("32768\t60999\n"), Some(32_768..=60_999));
        for bad in ["", "32768", "a b", "1 70000"] {
            assert_eq!(parse_range(bad), None, "{bad}");
        }
        assert_eq!(parse_reserved("\n"), []);
        assert_eq!(parse_reserved("8080,9148-9150\n"), [8080..=8080, 9148..=9150]);
        assert_eq!(parse_reserved("x,1-y,-,7"), [7..=7]);
    }

    proptest! {
        #[test]
        fn candidates_are_safe_unprivileged_and_named_once(
            low in 1u16.., high in 1u16.., first in 1024u16.., held in prop::collection::vec(1u16.., 0..3),
        ) {
            let safe = Safe { ephemeral: low..=high, reserved: held.iter().map(|p| *p..=*p).collect() };
            let candidates: Vec<u16> = safe.from(first).collect();
            let mut sorted = candidates.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), candidates.len());
            for port in 1024..=u16::MAX {
                let is_safe = !(low..=high).contains(&port) || held.contains(&port);
                prop_assert_eq!(sorted.binary_search(&port).is_ok(), is_safe, "{}", port);
            }
        }
    }

    #[test]
    fn a_range_that_covers_everything_is_an_error_with_the_remedy() {
        let safe = Safe { ephemeral: 1..=u16::MAX, reserved: Vec::new() };
        assert!(find(&safe, FIRST_HTTP, None).unwrap_err().reason.contains("ip_local_port_range"));
        let reserved = Safe { reserved: vec![FIRST_HTTP..=FIRST_HTTP + 999], ..safe };
        assert!((FIRST_HTTP..FIRST_HTTP + 1000).contains(&find(&reserved, FIRST_HTTP, None).unwrap()));
    }

    #[test]
    fn a_listener_counts_and_is_named_and_a_finished_connection_does_not() {
        for any in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            // Not an ephemeral port, which any other test could be given in between.
            let port = find(&Safe::of_this_machine(), 23_000, None).unwrap();
            let listener = TcpListener::bind((any, port)).unwrap();
            let reason = require(port).unwrap_err().reason;
            assert!(reason.contains(&format!("pid {}", std::process::id())), "{reason}");

            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let client = std::net::TcpStream::connect(address).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            drop(listener);
            // Closed from the server's side first, so that TIME_WAIT stays with its port.
            drop(accepted);
            drop(client);
            assert_eq!(require(port), Ok(port));
        }
    }

    #[test]
    fn a_datagram_socket_counts() {
        let port = find(&Safe::of_this_machine(), 24_000, None).unwrap();
        let _socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(require(port).unwrap_err().reason.contains("taken by `"));
    }
}
