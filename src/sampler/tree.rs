//! Owns the reading of a live process tree: [`TreeSampler`] finds all descendants of a process and
//! adds up what they have used and hold, in one [`TreeSnapshot`] per call.

use std::collections::BTreeMap;

use super::ledger::{Ledger, ProcessCpu, ProcessId, Reading};
use super::read::{Reader, numeric_entries, process_clock_ns, socket_inodes, ticks_per_second};
use super::stat::{
    CpuTimes, Memory, ProcessStat, Ticks, parse_cpu_times, parse_ids, parse_netstat, parse_process_stat,
    parse_schedstat, parse_task_status, parse_udp_drops,
};
use crate::clock;
use crate::time::{Instant, Span};

/// Everything read of a process tree, and of the CPUs it is pinned to, at one edge of a window.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TreeSnapshot {
    /// When it was taken: the middle of the reading of CPU times.
    pub at: Instant,
    /// False when the root itself could not be read, so that nothing below it was found either.
    pub found: bool,
    /// CPU of the tree since each of its processes started, gone ones included.
    pub cpu: TreeCpu,
    /// Processes alive, zombies left out.
    pub processes: u32,
    /// Their memory, summed.
    pub memory: Memory,
    /// Their threads.
    pub threads: BTreeMap<ThreadId, ThreadUse>,
    /// Time of the CPUs asked for, summed; `None` when none was asked for or none could be read.
    pub cpus: Option<CpuTimes>,
    /// `ListenOverflows` of the network namespace.
    pub listen_overflows: Option<u64>,
    /// Datagrams that the kernel dropped at each UDP socket of the tree since it was opened, by the inode of
    /// the socket. Wraps.
    pub udp_drops: BTreeMap<u64, u32>,
}

/// A total that only grows; the difference of two is what the tree used in between.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TreeCpu {
    /// User time in µs, in steps of a clock tick.
    pub user_us: u64,
    /// System time in µs, in steps of a clock tick.
    pub system_us: u64,
    /// Both by the scheduler's nanosecond clock, in µs: exact for live processes, in steps of a clock
    /// tick for reaped ones. `None` when a live process's clock could not be read.
    pub clock_us: Option<u64>,
}

/// Names a thread: its process and its thread id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ThreadId {
    /// The process.
    pub process: ProcessId,
    /// Thread id.
    pub tid: u32,
}

/// What one thread has used since it started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ThreadUse {
    /// CPU in ns, by `schedstat`, or by `stat` in steps of a clock tick where there is none.
    pub cpu_ns: u64,
    /// Context switches because it had to wait.
    pub voluntary_switches: u64,
    /// Context switches because its time was up or another one came first.
    pub involuntary_switches: u64,
}

/// Follows the process tree below a supervisor; see `server::supervise`.
///
/// The root must be the child subreaper (prctl(2), `PR_SET_CHILD_SUBREAPER`) of everything below it
/// and must wait for its children, so that orphans stay in the tree and their time is kept. Of the root
/// itself nothing is counted but the time of the children it has reaped. How the CPU of
/// processes that come and go is kept is told in `sampler::ledger`; more snapshots between the two
/// edges of a window narrow what is lost of children that a parent ignoring SIGCHLD does not wait for.
#[derive(Debug)]
pub struct TreeSampler {
    root: u32,
    cpus: Vec<u32>,
    ledger: Ledger,
    reader: Reader,
    /// Whether `/proc/<pid>/task/<tid>/children` is there (`CONFIG_PROC_CHILDREN`).
    has_children_files: bool,
    tick_us: u64,
}

impl TreeSampler {
    /// A sampler of all descendants of process `root` (itself left out), and of `cpus`.
    pub fn new(root: u32, cpus: &[u32]) -> Self {
        Self {
            root,
            cpus: cpus.to_vec(),
            ledger: Ledger::new(root),
            reader: Reader::default(),
            has_children_files: std::fs::exists("/proc/thread-self/children").unwrap_or(false),
            tick_us: 1_000_000 / ticks_per_second(),
        }
    }

    /// Reads the tree now. Takes well under a millisecond for a few processes with a few threads;
    /// CPU times come first, memory and threads after them.
    pub fn snapshot(&mut self) -> TreeSnapshot {
        let Some((tree, at)) = self.steady_tree() else {
            return TreeSnapshot { at: clock::now(), ..TreeSnapshot::default() };
        };
        let mut snapshot = TreeSnapshot {
            at,
            found: true,
            cpu: self.account(&tree),
            cpus: self.read_cpus(),
            listen_overflows: self.read_listen_overflows(),
            ..TreeSnapshot::default()
        };
        for process in tree.processes.iter().filter(|process| !matches!(process.stat.state, 'Z' | 'X')) {
            snapshot.processes += 1;
            self.read_threads(process.id(), &mut snapshot);
        }
        snapshot.udp_drops = self.read_udp_drops(&tree);
        snapshot
    }

    /// The tree, and the middle of its reading.
    ///
    /// A process that is reaped between the reading of itself and that of its parent would be counted
    /// twice or not at all. So the tree is read again until two readings in a row have the same
    /// processes and the same reaped times; then nothing was reaped in between.
    fn steady_tree(&mut self) -> Option<(Tree, Instant)> {
        let mut before = self.read_tree()?;
        let mut readings = 1;
        loop {
            let began = clock::now();
            let tree = self.read_tree()?;
            let middle = Span::from_nanos(clock::now().since(began).as_nanos() / 2);
            readings += 1;
            if readings == MAX_READINGS || tree.has_shape_of(&before) {
                return Some((tree, began + middle));
            }
            before = tree;
        }
    }

    fn read_tree(&mut self) -> Option<Tree> {
        let root = self.read_stat(self.root)?;
        let processes = match self.has_children_files {
            true => self.descend(),
            false => self.filter_all(),
        };
        Some(Tree { root_reaped: root.reaped, processes })
    }

    /// Follows the lists of children from the root down.
    fn descend(&mut self) -> Vec<Process> {
        let mut found = BTreeMap::new();
        let mut parents = vec![self.root];
        while let Some(parent) = parents.pop() {
            for tid in numeric_entries(&format!("/proc/{parent}/task")) {
                let path = format!("/proc/{parent}/task/{tid}/children");
                let Ok(children) = self.reader.text(&path) else { continue };
                let children: Vec<u32> = parse_ids(&children).collect();
                for child in children {
                    // A child that has ended since belongs to the next reading; one that was adopted
                    // while its old parent was read is not counted twice.
                    let Some(process) = self.read_process(child) else { continue };
                    if found.insert(child, process).is_none() {
                        parents.push(child);
                    }
                }
            }
        }
        found.into_values().collect()
    }

    /// Reads every process of the machine and keeps those whose parents lead to the root.
    fn filter_all(&mut self) -> Vec<Process> {
        let all: BTreeMap<u32, ProcessStat> = numeric_entries("/proc")
            .into_iter()
            .filter_map(|pid| Some((pid, self.read_stat(pid)?)))
            .collect();
        let below_root = |stat: &ProcessStat| {
            let parents = std::iter::successors(Some(stat.parent), |pid| all.get(pid).map(|p| p.parent));
            parents.take(all.len() + 1).any(|pid| pid == self.root)
        };
        let below = all.values().filter(|stat| below_root(stat));
        below.map(|&stat| Process { stat, clock_ns: process_clock_ns(stat.pid) }).collect()
    }

    fn read_process(&mut self, pid: u32) -> Option<Process> {
        Some(Process { stat: self.read_stat(pid)?, clock_ns: process_clock_ns(pid) })
    }

    fn read_stat(&mut self, pid: u32) -> Option<ProcessStat> {
        parse_process_stat(&self.reader.text(&format!("/proc/{pid}/stat")).ok()?)
    }

    /// Enters the tree in the books and adds up both clocks.
    fn account(&mut self, tree: &Tree) -> TreeCpu {
        let lost = self.ledger.enter(tree.reading());
        let reaped = tree.processes.iter().fold(tree.root_reaped + lost, |sum, p| sum + p.stat.reaped);
        let all = tree.processes.iter().fold(reaped, |sum, p| sum + p.stat.own);
        let live_ns = tree.processes.iter().try_fold(0u64, |sum, p| Some(sum.saturating_add(p.clock_ns?)));
        let micros = |ticks: u64| ticks.saturating_mul(self.tick_us);
        TreeCpu {
            user_us: micros(all.user),
            system_us: micros(all.system),
            clock_us: live_ns.map(|ns| (ns / 1_000).saturating_add(micros(reaped.total()))),
        }
    }

    fn read_cpus(&mut self) -> Option<CpuTimes> {
        if self.cpus.is_empty() {
            return None;
        }
        let all = parse_cpu_times(&self.reader.text("/proc/stat").ok()?);
        let mut sum = CpuTimes::default();
        for cpu in &self.cpus {
            sum += *all.get(cpu)?;
        }
        Some(sum)
    }

    fn read_listen_overflows(&mut self) -> Option<u64> {
        parse_netstat(&self.reader.text("/proc/net/netstat").ok()?, "TcpExt:", "ListenOverflows")
    }

    /// The UDP sockets of the tree. Whose a socket is is told by the files that processes have open: ports
    /// would not tell, since several sockets may share one and some are of no server.
    fn read_udp_drops(&mut self, tree: &Tree) -> BTreeMap<u64, u32> {
        let mut all = BTreeMap::new();
        for path in ["/proc/net/udp", "/proc/net/udp6"] {
            if let Ok(text) = self.reader.text(path) {
                all.extend(parse_udp_drops(&text));
            }
        }
        if all.is_empty() {
            return all;
        }
        let sockets = tree.processes.iter().flat_map(|process| socket_inodes(process.stat.pid));
        sockets.filter_map(|inode| Some((inode, *all.get(&inode)?))).collect()
    }

    /// Adds the threads and the memory of one process to `snapshot`.
    fn read_threads(&mut self, process: ProcessId, snapshot: &mut TreeSnapshot) {
        let mut memory = None;
        for tid in numeric_entries(&format!("/proc/{}/task", process.pid)) {
            let folder = format!("/proc/{}/task/{tid}", process.pid);
            let Ok(status) = self.reader.text(&format!("{folder}/status")) else { continue };
            let status = parse_task_status(&status);
            // Threads share their memory, but the first one may have ended and given its view of it up.
            memory = memory.or(status.memory);
            let thread = ThreadUse {
                cpu_ns: self.read_thread_cpu(&folder).unwrap_or(0),
                voluntary_switches: status.voluntary_switches,
                involuntary_switches: status.involuntary_switches,
            };
            snapshot.threads.insert(ThreadId { process, tid }, thread);
        }
        snapshot.memory += memory.unwrap_or_default();
    }

    fn read_thread_cpu(&mut self, folder: &str) -> Option<u64> {
        if let Ok(text) = self.reader.text(&format!("{folder}/schedstat")) {
            return parse_schedstat(&text);
        }
        let stat = parse_process_stat(&self.reader.text(&format!("{folder}/stat")).ok()?)?;
        Some(stat.own.total().saturating_mul(self.tick_us).saturating_mul(1_000))
    }
}

/// One pass over the tree.
struct Tree {
    root_reaped: Ticks,
    processes: Vec<Process>,
}

struct Process {
    stat: ProcessStat,
    clock_ns: Option<u64>,
}

impl Tree {
    /// True when the same processes are there and none has reaped anything since `other`.
    fn has_shape_of(&self, other: &Self) -> bool {
        let same = |a: &Process, b: &Process| a.id() == b.id() && a.stat.reaped == b.stat.reaped;
        self.root_reaped == other.root_reaped
            && self.processes.len() == other.processes.len()
            && self.processes.iter().zip(&other.processes).all(|(a, b)| same(a, b))
    }

    fn reading(&self) -> Reading {
        let cpu = |process: &Process| ProcessCpu {
            id: process.id(),
            parent: process.stat.parent,
            own: process.stat.own,
            reaped: process.stat.reaped,
        };
        Reading { root_reaped: self.root_reaped, processes: self.processes.iter().map(cpu).collect() }
    }
}

impl Process {
    fn id(&self) -> ProcessId {
        ProcessId { pid: self.stat.pid, start: self.stat.start }
    }
}

/// Readings of a tree that will not hold still, after which the last one is taken as it is: a server
/// that forks for each request would otherwise never be sampled.
const MAX_READINGS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of finding descendants must see the same: this test's own child.
    #[test]
    fn a_scan_of_all_processes_finds_what_the_lists_of_children_name() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat is on every machine");
        let mut sampler = TreeSampler::new(std::process::id(), &[]);
        let scanned: Vec<u32> = sampler.filter_all().iter().map(|p| p.stat.pid).collect();
        assert!(scanned.contains(&child.id()));
        if sampler.has_children_files {
            // Other tests of this process may start children of their own meanwhile.
            let listed: Vec<u32> = sampler.descend().iter().map(|p| p.stat.pid).collect();
            assert!(listed.contains(&child.id()));
        }
        drop(child.stdin.take());
        child.wait().expect("cat ends with its input");
    }

    #[test]
    fn a_root_that_does_not_live_is_an_empty_snapshot() {
        // One more than the largest process id Linux gives (proc_sys_kernel(5), pid_max).
        let snapshot = TreeSampler::new((1 << 22) + 1, &[]).snapshot();
        assert!(!snapshot.found);
        assert_eq!((snapshot.processes, snapshot.threads.len()), (0, 0));
    }
}
