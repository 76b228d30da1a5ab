//! Owns sockets before they enter the ring, and their addresses.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::datagrams::{DatagramOptions, DatagramSocket};

/// An address to connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// TCP over IPv4 or IPv6, or UDP.
    Tcp(SocketAddr),
    /// A Unix stream socket.
    Unix(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() || path.len() >= 108 || path.contains('\0') {
                Err(format!("`{path}` cannot be a Unix socket: the path has 1 to 107 bytes and no NUL"))
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        text.parse()
            .map(Self::Tcp)
            .map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:80 or [::1]:80"))
    }
}

/// An address in the form the kernel reads.
pub(super) struct RawAddress {
    storage: Box<libc::sockaddr_storage>,
    len: libc::socklen_t,
}

impl RawAddress {
    pub(super) fn new(address: &Address) -> Self {
        // SAFETY: all zeroes is a valid sockaddr_storage.
        let mut storage: Box<libc::sockaddr_storage> =
            Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        let start: *mut libc::sockaddr_storage = &mut *storage;
        let len = match address {
            Address::Tcp(SocketAddr::V4(v4)) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                // SAFETY: sockaddr_storage is large enough and aligned for every sockaddr.
                unsafe { start.cast::<libc::sockaddr_in>().write(raw) };
                size_of::<libc::sockaddr_in>()
            }
            Address::Tcp(SocketAddr::V6(v6)) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: as above.
                unsafe { start.cast::<libc::sockaddr_in6>().write(raw) };
                size_of::<libc::sockaddr_in6>()
            }
            Address::Unix(path) => {
                // SAFETY: as above; zeroes are valid for every field.
                let raw = unsafe { &mut *start.cast::<libc::sockaddr_un>() };
                raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
                // One byte is left for the terminating NUL that the zeroed storage holds.
                for (to, from) in raw.sun_path.iter_mut().take(107).zip(path.bytes()) {
                    *to = from as libc::c_char;
                }
                size_of::<libc::sockaddr_un>()
            }
        };
        Self { storage, len: len as libc::socklen_t }
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const *self.storage).cast()
    }

    pub(super) fn len(&self) -> libc::socklen_t {
        self.len
    }

    fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }
}

/// A fresh stream socket for `to`, without Nagle's delay, bound to `source` where one is given.
pub(super) fn stream_socket(to: &RawAddress, source: Option<Ipv4Addr>) -> io::Result<OwnedFd> {
    let fd = socket(to.family(), libc::SOCK_STREAM)?;
    if to.family() != libc::AF_UNIX {
        set_option(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    }
    if let Some(source) = source {
        // The port is chosen at connect time, when the whole 4-tuple is known (ip(7)).
        set_option(&fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        bind(&fd, source)?;
    }
    Ok(fd)
}

/// A fresh UDP socket that sends to `to` and receives from there only, and what it can do.
pub(super) fn datagram_socket(
    to: &RawAddress,
    options: &DatagramOptions,
) -> io::Result<(OwnedFd, DatagramSocket)> {
    let (level, discover, mtu) = match to.family() {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_MTU),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_MTU),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "UDP needs an IP address and a port")),
    };
    let fd = socket(to.family(), libc::SOCK_DGRAM)?;
    let has = |level, name, value| set_option(&fd, level, name, value).is_ok();
    let buffer = |force, plain, read, bytes: u32| {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        let _ = bytes == 0 || has(libc::SOL_SOCKET, force, bytes) || has(libc::SOL_SOCKET, plain, bytes);
        option(&fd, libc::SOL_SOCKET, read).unwrap_or(0)
    };
    let receive_buffer =
        buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, libc::SO_RCVBUF, options.receive_buffer);
    let send_buffer = buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, libc::SO_SNDBUF, options.send_buffer);
    // Nothing is fragmented: what is too long fails as EMSGSIZE. IP_PMTUDISC_DO has the same value in
    // both families (ip(7), ipv6(7)).
    has(level, discover, libc::IP_PMTUDISC_DO);
    let gso = options.gso.is_some_and(|segment| has(libc::SOL_UDP, libc::UDP_SEGMENT, segment.into()));
    let gro = options.gro && has(libc::SOL_UDP, libc::UDP_GRO, 1);
    let overflow = has(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    if let Some(source) = options.source {
        bind(&fd, source)?;
    }
    // SAFETY: `to` is a valid address of `to.len()` bytes.
    if unsafe { libc::connect(fd.as_raw_fd(), to.as_ptr(), to.len()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mtu = option(&fd, level, mtu);
    Ok((fd, DatagramSocket { gso, gro, receive_buffer, send_buffer, overflow, mtu }))
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain system call; the descriptor it returns is owned by nothing else.
    unsafe {
        let fd = libc::socket(family, kind | libc::SOCK_CLOEXEC, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

fn bind(fd: &OwnedFd, source: Ipv4Addr) -> io::Result<()> {
    let raw = RawAddress::new(&Address::Tcp(SocketAddr::new(IpAddr::V4(source), 0)));
    // SAFETY: `raw` is a valid address of `raw.len()` bytes.
    let result = unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option value is a c_int of the stated size.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as u32,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The value of an option that is no negative int.
fn option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int) -> Option<u32> {
    let mut value: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: value and size are written at most to their stated sizes.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut size) };
    u32::try_from(value).ok().filter(|_| result >= 0)
}
