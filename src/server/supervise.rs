//! Owns the supervisor, the process between the orchestrator and one server: `bench supervise`.
//!
//! It has one thread and one loop over two descriptors: the orders of the orchestrator and a pipe
//! that SIGCHLD writes to. It sleeps in poll(2) and costs nothing while a server is measured.
//!
//! What it promises, and what that rests on:
//!
//! - **Everything the server starts stays below it**: it is a child subreaper (prctl(2),
//!   `PR_SET_CHILD_SUBREAPER`). A process whose ancestors died becomes its own child. Hence no
//!   descendant is left exactly when waitpid(2) says that it has no child.
//! - **It kills nothing else**: SIGKILL goes to its own children only. Their numbers cannot pass to
//!   another process before it has waited for them, and it waits in the same thread. A child that
//!   dies hands its own children up, and they are next.
//! - **Nobody survives the orchestrator**: its orders come through a pipe of which only the
//!   orchestrator has the other end, so the kernel reports the end of the orchestrator, by SIGKILL
//!   too, as the end of the orders. `PR_SET_PDEATHSIG` would be no substitute: it fires when the
//!   *thread* that made the supervisor ends, and it kills where there is still something to do.
//!   The server's main process does carry it, for the case that somebody kills the supervisor.
//! - **A terminal's Ctrl-C does not reach the server**: the supervisor leads a session of its own and
//!   ignores the signals of one. When to stop is the orchestrator's decision.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, getppid, read, setsid};
use procfs::process::{Process, all_processes};

use super::control::{Ended, Event, LINE_LIMIT, Order, Plan, Used, send};
use crate::clock;
use crate::time::Span;

/// How long SIGKILL may take. A process can be in the kernel for long, but not for this long.
pub(super) const KILL_LIMIT: Span = Span::from_secs(10);

/// Pause between two rounds of SIGKILL. A child's death ends it early, a grandchild's handing up of
/// its children is not reported and is what it is for.
const KILL_POLL: Span = Span::from_millis(2);

/// Pause between two looks for newly adopted processes during the grace.
const GRACE_POLL: Span = Span::from_millis(10);

/// Runs a supervisor on this process's standard streams until its server has ended.
///
/// Must be called early in a process made for it, while that has one thread.
///
/// # Errors
/// When the process cannot be made a supervisor or an order is not one; nothing is left running.
pub fn supervise() -> io::Result<()> {
    let stdin = io::stdin();
    let mut supervisor = Supervisor::new(stdin.as_fd(), io::stdout())?;
    let outcome = supervisor.run();
    supervisor.kill_all();
    outcome
}

/// Becomes the server: the last step of a start, in the process that the supervisor made for it.
/// Sets what survives execve(2): to die with the supervisor, and the CPUs. Returns only an error.
///
/// `supervisor` is the process id of the supervisor, `cpus` those to run on (empty: any).
pub fn become_server(supervisor: i32, cpus: &[u32], command: &[String]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return io::Error::other("no command to run");
    };
    if let Err(error) = prepare(supervisor, cpus) {
        return error;
    }
    let error = Command::new(program).args(arguments).exec();
    io::Error::new(error.kind(), format!("cannot run `{program}`: {error}"))
}

fn prepare(supervisor: i32, cpus: &[u32]) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // A supervisor that died before that line will never be reported.
    if getppid().as_raw() != supervisor {
        return Err(io::Error::other("the supervisor is gone"));
    }
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        // A number beyond the set's size is refused here, one that does not exist below.
        set.set(usize::try_from(*cpu).unwrap_or(usize::MAX))
            .map_err(|_| io::Error::other(format!("there is no CPU {cpu} to pin it to")))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .map_err(|errno| io::Error::other(format!("cannot pin it to CPUs {cpus:?}: {}", errno.desc())))
}

struct Supervisor<'a, W> {
    orders: Orders<'a>,
    events: W,
    /// Readable after each SIGCHLD.
    deaths: UnixStream,
    /// The main process until it has been waited for.
    main: Option<Pid>,
}

impl<'a, W: Write> Supervisor<'a, W> {
    fn new(orders: BorrowedFd<'a>, events: W) -> io::Result<Self> {
        // It must not be found by the name of the program whose servers it guards.
        prctl::set_name(c"supervisor")?;
        setsid()?;
        prctl::set_child_subreaper(true)?;
        // Handlers rather than SIG_IGN, for ignoring is inherited by the server and a handler is not.
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT, Signal::SIGHUP] {
            signal_hook::flag::register(signal as i32, Arc::new(AtomicBool::new(false)))?;
        }
        let (deaths, written) = UnixStream::pair()?;
        deaths.set_nonblocking(true)?;
        // This also undoes a SIGCHLD ignored by whoever started the orchestrator, with which the
        // kernel would throw away the CPU times of children.
        signal_hook::low_level::pipe::register(Signal::SIGCHLD as i32, written)?;
        Ok(Self { orders: Orders::new(orders), events, deaths, main: None })
    }

    fn run(&mut self) -> io::Result<()> {
        let plan = loop {
            match self.orders.next()? {
                Next::Order(Order::Start(plan)) => break plan,
                Next::Order(Order::Stop { .. }) | Next::End => return Ok(()),
                Next::None => self.wait(None)?,
            }
        };
        let at = clock::now();
        match spawn(&plan) {
            Ok(pid) => {
                self.main = Some(pid);
                self.report(&Event::Started { pid: pid.as_raw(), at });
            }
            Err(error) => {
                self.report(&Event::NotStarted { reason: error.to_string() });
                return Ok(());
            }
        }
        loop {
            if self.reap() {
                self.report(&Event::Gone);
                return Ok(());
            }
            match self.orders.next()? {
                Next::Order(Order::Stop { signal, grace }) => {
                    let stopped = self.stop(&signal, grace)?;
                    self.report(&stopped);
                    return Ok(());
                }
                Next::Order(Order::Start(_)) => return Err(io::Error::other("a second order to start")),
                Next::End => return Ok(()),
                Next::None => self.wait(None)?,
            }
        }
    }

    /// Asks, waits, kills.
    ///
    /// Each process group with a member directly below is asked once: at first the main process and
    /// its group, or what a main process that ended left behind, and later each group that turns up
    /// because what stood above it has ended. A process is thus asked once, as by Ctrl-C on a
    /// terminal (many servers take a second request for impatience), and what stands below a living
    /// process in a group of its own is left to that process. The end of the orders ends the grace.
    fn stop(&mut self, signal: &str, grace: Span) -> io::Result<Event> {
        let signal = parse_signal(signal).map_err(io::Error::other)?;
        let began = clock::now();
        let deadline = began + grace;
        let mut asked = BTreeSet::from([getpgrp()]);
        loop {
            if self.reap() {
                return Ok(Event::Stopped {
                    took: clock::now().since(began),
                    killed: false,
                    left: Vec::new(),
                });
            }
            for child in children() {
                if asked.insert(child.group) {
                    // All members of the group are descendants: it belongs to the session of this
                    // process or to one that a descendant made.
                    let _ = killpg(child.group, signal);
                }
            }
            let left = deadline.since(clock::now());
            if left.is_zero() || matches!(self.orders.next(), Ok(Next::End) | Err(_)) {
                break;
            }
            self.wait(Some(left.min(GRACE_POLL)))?;
        }
        let left = self.kill_all();
        Ok(Event::Stopped { took: clock::now().since(began), killed: true, left })
    }

    /// Kills all descendants; returns those that did not die in time.
    fn kill_all(&mut self) -> Vec<String> {
        let deadline = clock::now() + KILL_LIMIT;
        loop {
            if self.reap() {
                return Vec::new();
            }
            let children = children();
            for child in &children {
                let _ = kill(child.pid, Signal::SIGKILL);
            }
            if clock::now() >= deadline {
                return children.into_iter().map(|child| format!("{} ({})", child.pid, child.name)).collect();
            }
            // The orders may have ended, which would wake the other wait without end.
            let _ = wait_readable(&[self.deaths.as_fd()], Some(KILL_POLL));
            self.forget_deaths();
        }
    }

    /// Waits for all children that have ended; true when no child is left.
    fn reap(&mut self) -> bool {
        self.forget_deaths();
        loop {
            let (pid, ended) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => (pid, Ended::Status(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Ended::Signal(signal.to_string())),
                Ok(WaitStatus::StillAlive) => return false,
                // Stops and continuations are not asked for.
                Ok(_) | Err(Errno::EINTR) => continue,
                // The one signal without a name there is a real-time signal, and the error does not
                // say whose; the main process is found missing below.
                Err(Errno::EINVAL) => match self.main {
                    Some(main) if !children().iter().any(|child| child.pid == main) => {
                        (main, Ended::Signal("a real-time signal".into()))
                    }
                    _ => continue,
                },
                Err(_) => return true,
            };
            if self.main == Some(pid) {
                self.main = None;
                self.report(&Event::MainEnded { how: ended, at: clock::now(), used: used_by_children() });
            }
        }
    }

    /// Empties the pipe that SIGCHLD writes to; before waiting for children, so that a death after
    /// that is noticed.
    fn forget_deaths(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.deaths.read(&mut bytes), Ok(1..)) {}
    }

    /// Sleeps until an order or a death, or for `limit`.
    fn wait(&self, limit: Option<Span>) -> io::Result<()> {
        wait_readable(&[self.orders.input, self.deaths.as_fd()], limit)
    }

    /// Tells the orchestrator. When it is gone, the end of its orders says so.
    fn report(&mut self, event: &Event) {
        let _ = send(&mut self.events, event);
    }
}

/// CPU time of all children that were waited for, and of those that they waited for. It cannot fail for
/// the children of this process; nothing then is what there is to say.
fn used_by_children() -> Used {
    let micros = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Used::default(), |usage| Used {
        user_us: micros(usage.user_time()),
        system_us: micros(usage.system_time()),
    })
}

/// Makes the main process. It is a step between (`bench supervise --become`), because what must be
/// set in the new process itself is set by safe code there, and only then does it become the server.
fn spawn(plan: &Plan) -> io::Result<Pid> {
    let cpus = plan.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    // Both streams go where the supervisor's messages go: one pipe keeps their order.
    // The link leads to this very program even when its file was replaced by a newer build.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bench").args(["supervise", "--become", &getpid().to_string(), "--cpus", &cpus, "--"]);
    command.args(&plan.command).current_dir(&plan.dir).process_group(0).stdin(Stdio::null());
    command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    for name in &plan.unset {
        command.env_remove(name);
    }
    let pid = command.envs(&plan.env).spawn()?.id();
    // Process ids fit: /proc/sys/kernel/pid_max is at most 2^22.
    i32::try_from(pid).map(Pid::from_raw).map_err(io::Error::other)
}

/// Reads the name of a signal, `TERM` or `SIGTERM`.
///
/// # Errors
/// Says what a right name looks like.
pub(super) fn parse_signal(name: &str) -> Result<Signal, String> {
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    full.parse().map_err(|_| format!("there is no signal `{name}`; write it like TERM, INT or QUIT"))
}

/// A child of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ChildProcess {
    pid: Pid,
    group: Pid,
    name: String,
}

/// The children of this process, ended ones that were not waited for included. Processes that come
/// and go meanwhile may be missing.
fn children() -> Vec<ChildProcess> {
    // One file instead of all of /proc, on kernels built with CONFIG_PROC_CHILDREN; it lists the
    // children of a thread, and this process has one.
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list
            .split_ascii_whitespace()
            .filter_map(|pid| child_process(&Process::new(pid.parse().ok()?).ok()?))
            .collect(),
        Err(_) => children_by_parent(),
    }
}

/// The children of this process, found by the parents of all processes.
fn children_by_parent() -> Vec<ChildProcess> {
    let Ok(processes) = all_processes() else { return Vec::new() };
    processes.filter_map(|process| child_process(&process.ok()?)).collect()
}

/// That process, if it is a child of this one.
fn child_process(process: &Process) -> Option<ChildProcess> {
    let stat = process.stat().ok().filter(|stat| stat.ppid == getpid().as_raw())?;
    let (pid, group) = (Pid::from_raw(stat.pid), Pid::from_raw(stat.pgrp));
    Some(ChildProcess { pid, group, name: stat.comm })
}

/// Sleeps until one of `inputs` can be read or has ended, or for `limit` (`None`: without end). A
/// signal may end it early.
fn wait_readable(inputs: &[BorrowedFd<'_>], limit: Option<Span>) -> io::Result<()> {
    let mut waited: Vec<PollFd<'_>> =
        inputs.iter().map(|input| PollFd::new(*input, PollFlags::POLLIN)).collect();
    let timeout = match limit {
        // Rounded up, so that a rest of less than a millisecond is not spent in a busy loop.
        Some(limit) => {
            PollTimeout::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX)
        }
        None => PollTimeout::NONE,
    };
    match poll(&mut waited, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The orders that come in, whole lines only.
struct Orders<'a> {
    input: BorrowedFd<'a>,
    bytes: VecDeque<u8>,
}

enum Next {
    Order(Order),
    /// None yet.
    None,
    /// The other side is gone.
    End,
}

impl<'a> Orders<'a> {
    fn new(input: BorrowedFd<'a>) -> Self {
        Self { input, bytes: VecDeque::new() }
    }

    /// The next order, without waiting.
    fn next(&mut self) -> io::Result<Next> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Ok(Next::Order(serde_json::from_slice(&line)?));
            }
            if self.bytes.len() > LINE_LIMIT {
                return Err(io::Error::other("an order is too long"));
            }
            let mut ready = [PollFd::new(self.input, PollFlags::POLLIN)];
            if matches!(poll(&mut ready, PollTimeout::ZERO), Ok(0) | Err(Errno::EINTR)) {
                return Ok(Next::None);
            }
            let mut buffer = [0; 4096];
            match read(self.input, &mut buffer) {
                Ok(0) => return Ok(Next::End),
                Ok(length) => self.bytes.extend(&buffer[..length]),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    #[test]
    fn orders_come_whole_however_they_are_split() {
        let (reader, mut writer) = pipe().unwrap();
        let mut orders = Orders::new(reader.as_fd());
        let stop = Order::Stop { signal: "TERM".into(), grace: Span::from_secs(1) };
        let mut wire = Vec::new();
        send(&mut wire, &stop).unwrap();
        send(&mut wire, &stop).unwrap();
        let first = wire.len() / 2;
        for (i, byte) in wire.iter().enumerate() {
            writer.write_all(&[*byte]).unwrap();
            let next = orders.next().unwrap();
            if (i + 1) % first == 0 {
                assert!(matches!(next, Next::Order(order) if order == stop));
            } else {
                assert!(matches!(next, Next::None));
            }
        }
        drop(writer);
        assert!(matches!(orders.next(), Ok(Next::End)));
    }

    #[test]
    fn garbage_and_endless_orders_are_errors() {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"hello\n").unwrap();
        assert!(Orders::new(reader.as_fd()).next().is_err());

        let (reader, mut writer) = pipe().unwrap();
        let feeder = std::thread::spawn(move || writer.write_all(&vec![b' '; 2 * LINE_LIMIT]));
        let mut orders = Orders::new(reader.as_fd());
        while orders.next().is_ok() {}
        assert!(orders.bytes.len() <= LINE_LIMIT + 4096);
        drop(orders);
        drop(reader);
        assert!(feeder.join().unwrap().is_err());
    }

    #[test]
    fn signals_are_named_with_or_without_sig() {
        assert_eq!(parse_signal("TERM"), Ok(Signal::SIGTERM));
        assert_eq!(parse_signal("SIGQUIT"), Ok(Signal::SIGQUIT));
        for bad in ["", "15", "term", "SIG", "STOPP"] {
            assert!(parse_signal(bad).unwrap_err().contains("like TERM"), "{bad}");
        }
    }

    #[test]
    fn children_are_found_either_way_until_they_are_waited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).process_group(0).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let expected = ChildProcess { pid, group: pid, name: "cat".into() };
        for list in [children, children_by_parent] {
            assert!(list().contains(&expected));
        }
        drop(child.stdin.take());
        let has_ended = || Process::new(pid.as_raw()).unwrap().stat().unwrap().state == 'Z';
        while !has_ended() {
            std::thread::yield_now();
        }
        for list in [children, children_by_parent] {
            assert!(list().contains(&expected));
        }
        child.wait().unwrap();
        for list in [children, children_by_parent] {
            assert!(!list().contains(&expected));
        }
    }

    #[test]
    fn a_process_becomes_a_server_only_below_its_supervisor_and_on_real_cpus() {
        let command = [String::from("true")];
        assert!(become_server(1, &[], &[]).to_string().contains("no command"));
        for (cpus, told) in [(&[1 << 20][..], "no CPU 1048576"), (&[1023], "cannot pin")] {
            // The parent of this test's process stands for the supervisor.
            let error = become_server(getppid().as_raw(), cpus, &command).to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(become_server(getpid().as_raw(), &[], &command).to_string().contains("gone"));
    }
}
