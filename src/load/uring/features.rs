//! Owns what the kernel's `io_uring` can do, and what to tell a user when it can do nothing.

use std::collections::BTreeMap;
use std::io;

/// Kernel features in use, each probed when the ring is made (io_uring_setup(2), io_uring_enter(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// `IORING_SETUP_NO_SQARRAY`, Linux 6.6: no indirection in the submission queue.
    pub no_sqarray: bool,
    /// `IORING_FEAT_MIN_TIMEOUT`, Linux 6.12: hold out for a batch for a bounded time.
    pub min_timeout: bool,
    /// `IORING_FEAT_NO_IOWAIT`, Linux 6.15: waiting is idle time, not I/O wait.
    pub no_iowait: bool,
    /// The ring's own descriptor is registered (`IORING_REGISTER_RING_FDS`, Linux 5.18).
    pub registered_ring: bool,
    /// Of UDP sockets, once one was opened.
    pub datagrams: Option<DatagramFeatures>,
}

/// Socket options of UDP in use, each probed when a socket is opened (udp(7), socket(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramFeatures {
    /// `UDP_SEGMENT`, Linux 4.18: several datagrams in one send.
    pub gso: bool,
    /// `UDP_GRO`, Linux 5.0: several datagrams in one reception.
    pub gro: bool,
    /// `SO_RXQ_OVFL`: receptions tell what was dropped.
    pub overflow: bool,
}

impl Features {
    /// Every feature by name, those the minimum kernel guarantees included, those of UDP where it is used.
    pub fn by_name(self) -> BTreeMap<String, bool> {
        let datagrams = self
            .datagrams
            .map(|udp| [("udp_gso", udp.gso), ("udp_gro", udp.gro), ("udp_overflow", udp.overflow)]);
        [
            ("defer_taskrun", true),
            ("single_issuer", true),
            ("multishot_receive", true),
            ("provided_buffer_ring", true),
            ("registered_files", true),
            ("registered_ring", self.registered_ring),
            ("no_sqarray", self.no_sqarray),
            ("min_wait", self.min_timeout),
            ("no_iowait", self.no_iowait),
        ]
        .into_iter()
        .chain(datagrams.into_iter().flatten())
        .map(|(name, used)| (name.to_owned(), used))
        .collect()
    }
}

/// Why there is no ring. The message names the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// `EPERM`: a sysctl or a seccomp filter.
    #[error(
        "io_uring is not permitted here{}; on the host set `sysctl kernel.io_uring_disabled=0`, in a container \
         use a seccomp profile that allows io_uring_setup (for Docker: `--security-opt seccomp=unconfined`)",
        sysctl_note()
    )]
    Refused,
    /// `ENOSYS`: not built in, or filtered as if it were not.
    #[error(
        "this kernel has no io_uring (ENOSYS); bench needs Linux 6.1 or newer built with CONFIG_IO_URING, and in \
         a container a seccomp profile that allows io_uring_setup"
    )]
    Missing,
    /// A feature of Linux 6.1 is absent.
    #[error("this kernel's io_uring is too old ({0}); bench needs Linux 6.1 or newer")]
    TooOld(String),
    /// Memory or descriptors ran out.
    #[error("cannot set up io_uring: {what}: {source}")]
    Setup {
        /// The step.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl RingError {
    pub(super) fn from_setup(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Refused,
            Some(libc::ENOSYS) => Self::Missing,
            Some(libc::EINVAL) => Self::TooOld("setup flags of Linux 6.1 are not known to it".into()),
            _ => Self::Setup { what: "io_uring_setup", source: error },
        }
    }
}

fn sysctl_note() -> String {
    match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").as_deref().map(str::trim) {
        Ok("0") => " (kernel.io_uring_disabled is 0, so a seccomp filter refuses it)".into(),
        Ok(value) => format!(" (kernel.io_uring_disabled = {value})"),
        Err(_) => String::new(),
    }
}
