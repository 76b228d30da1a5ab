//! Owns the formats of `/proc` that the sampler reads: text to structs, pure. Every parser takes what
//! a kernel may print (odd process names, missing lines, absurd numbers) and answers `None` for what
//! it cannot read; none of them panics or guesses.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign};

/// CPU time in clock ticks (`sysconf(_SC_CLK_TCK)` to the second), user and system apart. All its
/// arithmetic saturates, because the numbers are read from outside.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Ticks {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
}

impl Ticks {
    /// What is left of each part after `other` is taken off, never below zero.
    pub(super) fn minus(self, other: Self) -> Self {
        Self { user: self.user.saturating_sub(other.user), system: self.system.saturating_sub(other.system) }
    }

    /// The smaller of each part.
    pub(super) fn min(self, other: Self) -> Self {
        Self { user: self.user.min(other.user), system: self.system.min(other.system) }
    }

    /// Both parts together.
    pub(super) fn total(self) -> u64 {
        self.user.saturating_add(self.system)
    }
}

impl Add for Ticks {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { user: self.user.saturating_add(other.user), system: self.system.saturating_add(other.system) }
    }
}

impl AddAssign for Ticks {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The fields of `/proc/<pid>/stat` that the sampler uses; see proc_pid_stat(5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessStat {
    /// Process id.
    pub pid: u32,
    /// One letter: `R`, `S`, `Z`, ...
    pub state: char,
    /// Process id of the parent.
    pub parent: u32,
    /// `utime` and `stime`: of all its threads, ended ones included.
    pub own: Ticks,
    /// `cutime` and `cstime`: of the children it has waited for, and of theirs.
    pub reaped: Ticks,
    /// When it started, in ticks since boot. With the pid it names a process for good.
    pub start: u64,
}

/// Reads `/proc/<pid>/stat`.
///
/// The name stands in parentheses and may itself hold spaces, line ends and parentheses, so that
/// fields are counted from the last closing parenthesis on.
pub(super) fn parse_process_stat(text: &str) -> Option<ProcessStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let pid = head.split_once(" (")?.0.parse().ok()?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // The manual numbers fields from 1, and the state, first after the name, is number 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |n: usize| field(n)?.parse::<u64>().ok();
    // The times of children are signed in the kernel's interface; they are never below zero.
    let signed = |n: usize| field(n)?.parse::<i64>().ok().map(|v| v.max(0).unsigned_abs());
    Some(ProcessStat {
        pid,
        state: field(3)?.chars().next()?,
        parent: field(4)?.parse().ok()?,
        own: Ticks { user: number(14)?, system: number(15)? },
        reaped: Ticks { user: signed(16)?, system: signed(17)? },
        start: number(22)?,
    })
}

/// Resident memory of one process in KiB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Memory {
    /// `VmRSS`: resident now.
    pub rss_kib: u64,
    /// `VmHWM`: most ever resident.
    pub peak_rss_kib: u64,
    /// `RssAnon`: the part of `rss_kib` that no file stands behind.
    pub anonymous_kib: u64,
}

impl AddAssign for Memory {
    fn add_assign(&mut self, other: Self) {
        self.rss_kib = self.rss_kib.saturating_add(other.rss_kib);
        self.peak_rss_kib = self.peak_rss_kib.saturating_add(other.peak_rss_kib);
        self.anonymous_kib = self.anonymous_kib.saturating_add(other.anonymous_kib);
    }
}

/// The lines of `/proc/<pid>/task/<tid>/status` that the sampler uses; see proc_pid_status(5).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct TaskStatus {
    /// Memory of the process; absent in a task that has given its memory up (a zombie).
    pub memory: Option<Memory>,
    /// Context switches of this thread because it had to wait.
    pub voluntary_switches: u64,
    /// Context switches of this thread because its time was up or another one came first.
    pub involuntary_switches: u64,
}

/// Reads `/proc/<pid>/task/<tid>/status`. Lines that are missing count as zero.
pub(super) fn parse_task_status(text: &str) -> TaskStatus {
    let mut status = TaskStatus::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = || value.split_ascii_whitespace().next().and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
        match key {
            "VmHWM" => status.memory.get_or_insert_default().peak_rss_kib = value(),
            "VmRSS" => status.memory.get_or_insert_default().rss_kib = value(),
            "RssAnon" => status.memory.get_or_insert_default().anonymous_kib = value(),
            "voluntary_ctxt_switches" => status.voluntary_switches = value(),
            "nonvoluntary_ctxt_switches" => status.involuntary_switches = value(),
            _ => {}
        }
    }
    status
}

/// Reads `/proc/<pid>/task/<tid>/schedstat`: nanoseconds the thread has spent on a CPU, the first of
/// its three numbers (Linux, Documentation/scheduler/sched-stats).
pub(super) fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Time of one or more CPUs in clock ticks since boot; see proc_stat(5).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuTimes {
    /// User, nice, system, interrupts and soft interrupts. Guests are part of user time.
    pub busy: u64,
    /// Time in which it had work and the hypervisor ran somebody else.
    pub stolen: u64,
    /// Idle, waiting for disks included.
    pub idle: u64,
}

impl AddAssign for CpuTimes {
    fn add_assign(&mut self, other: Self) {
        self.busy = self.busy.saturating_add(other.busy);
        self.stolen = self.stolen.saturating_add(other.stolen);
        self.idle = self.idle.saturating_add(other.idle);
    }
}

/// Reads the `cpu<N>` lines of `/proc/stat`, by CPU number.
pub(super) fn parse_cpu_times(text: &str) -> BTreeMap<u32, CpuTimes> {
    text.lines().filter_map(parse_cpu_line).collect()
}

fn parse_cpu_line(line: &str) -> Option<(u32, CpuTimes)> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let cpu = fields.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
    let mut time = [0u64; 8];
    for (slot, field) in time.iter_mut().zip(fields) {
        *slot = field.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = time;
    let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, &part| sum.saturating_add(part));
    let times = CpuTimes {
        busy: sum(&[user, nice, system, irq, softirq]),
        stolen: steal,
        idle: sum(&[idle, iowait]),
    };
    Some((cpu, times))
}

/// Reads one counter of `/proc/net/netstat`, where a line of names is followed by a line of values
/// with the same prefix, e.g. `TcpExt:` and `ListenOverflows`.
pub(super) fn parse_netstat(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(prefix));
    let names = lines.next()?.split_ascii_whitespace();
    let values = lines.next()?.split_ascii_whitespace();
    names.zip(values).find(|(candidate, _)| *candidate == name)?.1.parse().ok()
}

/// The sockets of `/proc/net/udp` or `udp6`: inode, and datagrams dropped since it was opened
/// (proc_net(5)), a counter of 32 bits that older kernels print with a sign.
pub(super) fn parse_udp_drops(text: &str) -> impl Iterator<Item = (u64, u32)> + '_ {
    text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(UDP_INODE);
        let inode = fields.next()?.parse().ok()?;
        let drops: i64 = fields.nth(UDP_DROPS - UDP_INODE - 1)?.parse().ok()?;
        Some((inode, drops as u32))
    })
}

/// The inode of a socket in the target of `/proc/<pid>/fd/<n>` (proc_pid_fd(5)); `None` for other files.
pub(super) fn parse_socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The one-minute average of `/proc/loadavg`.
pub(super) fn parse_load(text: &str) -> Option<f64> {
    let load: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (load.is_finite() && load >= 0.0).then_some(load)
}

/// One line of `/proc/meminfo` in KiB.
pub(super) fn parse_meminfo(text: &str, key: &str) -> Option<u64> {
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| *name == key)?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// Reads a list of process or thread ids separated by blanks, as in `/proc/<pid>/task/<tid>/children`.
pub(super) fn parse_ids(text: &str) -> impl Iterator<Item = u32> {
    text.split_ascii_whitespace().filter_map(|id| id.parse().ok())
}

/// Reads a list of CPUs in the kernel's notation, e.g. `0-2,5`: ascending, each once. Blanks around
/// it are ignored, and the empty list is a list.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Prints CPUs as [`parse_cpu_list`] reads them.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let print = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(print).collect::<Vec<_>>().join(",")
}

/// No CPU has a number this high (Linux builds for at most 8192), and a list that names one would
/// only cost memory.
const MAX_CPUS: u32 = 8192;

/// Fields of `/proc/net/udp` in front of the inode, and in front of the drops.
const UDP_INODE: usize = 9;
const UDP_DROPS: usize = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stat_line(name: &str) -> String {
        format!(
            "4242 ({name}) S 17 4242 4242 0 -1 4194304 100 200 0 0 31 7 310 70 20 0 5 0 98765 1000000 250 \
             18446744073709551615 1 1 0 0 0 0 0 4096 17663 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    #[test]
    fn process_stat_is_read_whatever_the_name() {
        for name in ["nginx", "a b", "(a) b) c", ") S 1 (", "", "x\ny", "tmux: server", "\u{fffd}"] {
            assert_eq!(
                parse_process_stat(&stat_line(name)),
                Some(ProcessStat {
                    pid: 4242,
                    state: 'S',
                    parent: 17,
                    own: Ticks { user: 31, system: 7 },
                    reaped: Ticks { user: 310, system: 70 },
                    start: 98_765,
                }),
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_stat_line_cut_short_is_refused() {
        let line = stat_line("nginx");
        let through_start_time = line.find("98765").expect("the line holds it") + "98765".len();
        for end in 0..through_start_time - "8765".len() {
            assert_eq!(parse_process_stat(&line[..end]), None, "{:?}", &line[..end]);
        }
        assert!(parse_process_stat(&line[..through_start_time]).is_some());
    }

    #[test]
    fn task_status_has_memory_and_switches() {
        let text = "Name:\tw\\norker: VmRSS:\t1\nState:\tS (sleeping)\nVmHWM:\t   18384 kB\nVmRSS:\t   18008 kB\n\
                    RssAnon:\t   11656 kB\nThreads:\t13\nvoluntary_ctxt_switches:\t373\n\
                    nonvoluntary_ctxt_switches:\t87\n";
        let memory = Memory { rss_kib: 18_008, peak_rss_kib: 18_384, anonymous_kib: 11_656 };
        let expected = TaskStatus { memory: Some(memory), voluntary_switches: 373, involuntary_switches: 87 };
        assert_eq!(parse_task_status(text), expected);
        assert_eq!(parse_task_status("Name:\tgone\nState:\tZ (zombie)\n").memory, None);
    }

    #[test]
    fn cpu_times_are_per_cpu_and_steal_stands_apart() {
        let text =
            "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 10 2 3 100 20 4 5 6 7 8\ncpu11 1 0 0 9\nintr 1 2\ncpufreq 1\n";
        let times = parse_cpu_times(text);
        assert_eq!(times.len(), 2);
        assert_eq!(times[&0], CpuTimes { busy: 24, stolen: 6, idle: 120 });
        assert_eq!(times[&11], CpuTimes { busy: 1, stolen: 0, idle: 9 });
    }

    #[test]
    fn netstat_counters_are_found_by_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: InNoRoutes\nIpExt: 4\n";
        assert_eq!(parse_netstat(text, "TcpExt:", "ListenOverflows"), Some(22));
        assert_eq!(parse_netstat(text, "IpExt:", "InNoRoutes"), Some(4));
        assert_eq!(parse_netstat(text, "TcpExt:", "Absent"), None);
        assert_eq!(parse_netstat("TcpExt: ListenOverflows\n", "TcpExt:", "ListenOverflows"), None);
    }

    #[test]
    fn udp_sockets_read_as_the_kernel_prints_them() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            \n\
             4603: 0100007F:20FE 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 15197367 2 00000000a4410275 0      \n\
            14604: 0100007F:480F 00000000:0000 07 00000000:00034E00 00:00000000 00000000     0        0 15197377 2 00000000459d1be0 1183   \n\
            14605: 0100007F:4810 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 15197364 2 000000009c2919e3 -1\n\
            14606: 0100007F:4811 00000000:0000 07\n";
        let sockets: Vec<_> = parse_udp_drops(text).collect();
        assert_eq!(sockets, [(15_197_367, 0), (15_197_377, 1183), (15_197_364, u32::MAX)]);
        assert_eq!(parse_udp_drops("").count(), 0);
        assert_eq!(parse_socket_inode("socket:[15197367]"), Some(15_197_367));
        for other in ["pipe:[7]", "socket:[]", "socket:[7", "/dev/null", "anon_inode:[eventpoll]"] {
            assert_eq!(parse_socket_inode(other), None, "{other}");
        }
    }

    #[test]
    fn load_and_memory_read_as_the_kernel_prints_them() {
        assert_eq!(parse_load("0.42 0.36 0.30 1/123 4567\n"), Some(0.42));
        for text in ["", "nan 1 2", "-1 0 0", "x"] {
            assert_eq!(parse_load(text), None, "{text:?}");
        }
        let info = "MemTotal:       16371232 kB\nMemAvailable:    9000000 kB\n";
        assert_eq!(parse_meminfo(info, "MemTotal"), Some(16_371_232));
        assert_eq!(parse_meminfo(info, "Mem"), None);
    }

    #[test]
    fn schedstat_is_its_first_number() {
        assert_eq!(parse_schedstat("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(parse_schedstat("\n"), None);
    }

    #[test]
    fn cpu_lists_read_as_the_kernel_prints_them() {
        for (text, cpus) in [
            ("0-2,5\n", Some(vec![0, 1, 2, 5])),
            ("3,1", Some(vec![1, 3])),
            ("0,0-1", Some(vec![0, 1])),
            ("", Some(vec![])),
            ("2-1", None),
            ("a", None),
            ("-1", None),
            ("0-4000000000", None),
        ] {
            assert_eq!(parse_cpu_list(text), cpus, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printed_cpu_lists_read_back(cpus in proptest::collection::btree_set(0u32..64, 0..20)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)), Some(cpus));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC*|[ 0-9()cpuRZ:\\n-]*") {
            parse_process_stat(&text);
            parse_task_status(&text);
            parse_schedstat(&text);
            parse_cpu_times(&text);
            parse_netstat(&text, "", "0");
            parse_socket_inode(&text);
            prop_assert!(parse_udp_drops(&text).count() <= text.len());
            parse_cpu_list(&text);
            parse_load(&text);
            parse_meminfo(&text, "");
            prop_assert!(parse_ids(&text).count() <= text.len());
        }
    }
}
