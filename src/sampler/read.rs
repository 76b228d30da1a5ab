//! Owns the thin layer between the sampler and the kernel's files: whole files of bounded size as
//! text, or the reason why not.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};

use nix::errno::Errno;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::stat::parse_socket_inode;

/// A file's text, or why it could not be read, with its path: what a check is given.
pub(super) type Text = Result<String, String>;

/// Reads a small file of `/proc` or `/sys`.
pub(super) fn text(path: &str) -> Text {
    let mut reader = Reader::default();
    reader.text(path).map(Cow::into_owned).map_err(|error| {
        // The number that the standard library adds to the words helps nobody here.
        let words = error.raw_os_error().map(|code| Errno::from_raw(code).desc().to_lowercase());
        format!("cannot read {path}: {}", words.unwrap_or_else(|| error.to_string()))
    })
}

/// Reads one file after another into one buffer, so that a snapshot does not allocate for each.
#[derive(Debug, Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    /// The text of `path`, at most [`MAX_FILE`] bytes of it. Bytes that are not UTF-8 (a process may
    /// call itself anything) are replaced.
    ///
    /// # Errors
    /// As open(2) and read(2); a process that ended meanwhile is `ENOENT` or `ESRCH`.
    pub(super) fn text(&mut self, path: &str) -> io::Result<Cow<'_, str>> {
        self.buffer.clear();
        // With room for the whole file one read(2) fetches it, and the kernel formats it only once.
        self.buffer.reserve(TYPICAL_FILE);
        File::open(path)?.take(MAX_FILE).read_to_end(&mut self.buffer)?;
        Ok(String::from_utf8_lossy(&self.buffer))
    }
}

/// The numeric entries of a folder of `/proc`: processes, or the threads of one. None when it cannot
/// be listed, because the process has ended.
pub(super) fn numeric_entries(folder: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Inodes of the sockets that process `pid` has open. None when its files cannot be listed, because it
/// has ended or belongs to another user.
pub(super) fn socket_inodes(pid: u32) -> impl Iterator<Item = u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    entries.filter_map(|entry| {
        let target = std::fs::read_link(entry.ok()?.path()).ok()?;
        parse_socket_inode(target.to_str()?)
    })
}

/// Nanoseconds of CPU that process `pid` has used, all its threads and the ended ones included: its
/// CPU-time clock (clock_getcpuclockid(3)), which counts what `schedstat` counts for one thread.
/// `None` when it has been reaped, or a sandbox does not have such clocks.
pub(super) fn process_clock_ns(pid: u32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    let time = clock_gettime(clock).ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let nanos = u64::try_from(time.tv_nsec()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Clock ticks to the second, the unit of `/proc/<pid>/stat` and `/proc/stat` (sysconf(3)).
pub(super) fn ticks_per_second() -> u64 {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    ticks.and_then(|ticks| u64::try_from(ticks).ok()).filter(|&ticks| ticks > 0).unwrap_or(USER_HZ)
}

/// Clock ticks to the second on every architecture that Linux is run on today.
const USER_HZ: u64 = 100;

/// Fits every file read for a process or a thread.
const TYPICAL_FILE: usize = 4096;

/// `/proc/stat` has a counter for every interrupt and grows with the machine; nothing read here comes
/// near this size.
const MAX_FILE: u64 = 4 << 20;
