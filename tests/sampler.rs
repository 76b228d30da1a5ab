//! The sampler against processes that tell what they used, and `bench doctor` as a user meets it.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use bench::results::{Finding, FindingLevel};
use bench::sampler::{TreeSampler, TreeSnapshot, difference, environment, machine};

/// The tree of `tests/data/process_tree.py`, driven line by line. It ends when it is dropped.
struct Tree {
    supervisor: Child,
    commands: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Tree {
    fn start(workers: u32) -> Self {
        let mut supervisor = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/process_tree.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed for this test");
        let commands = supervisor.stdin.take();
        let replies = BufReader::new(supervisor.stdout.take().expect("it was asked for"));
        let mut tree = Self { supervisor, commands, replies };
        tree.does(&format!("start {workers}"));
        tree
    }

    fn ask(&mut self, command: &str) -> String {
        let commands = self.commands.as_mut().expect("open until dropped");
        writeln!(commands, "{command}").expect("the tree lives");
        let mut reply = String::new();
        self.replies.read_line(&mut reply).expect("text");
        assert!(reply.ends_with('\n'), "the tree died of `{command}`");
        reply.trim_end().to_owned()
    }

    fn does(&mut self, command: &str) {
        assert_eq!(self.ask(command), "ok", "{command}");
    }

    /// Seconds of CPU that its processes say they have used, and a snapshot of the same moment.
    fn account(&mut self, sampler: &mut TreeSampler) -> (f64, TreeSnapshot) {
        let used = self.ask("used").parse().expect("a number");
        (used, sampler.snapshot())
    }

    fn sampler(&self) -> TreeSampler {
        TreeSampler::new(self.supervisor.id(), &machine().cpus)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        drop(self.commands.take());
        // A supervisor that cannot be waited for has ended already.
        let _ = self.supervisor.wait();
    }
}

const TICK: f64 = 0.01;

/// Asserts that `seconds` is within 2 % of `truth`, or within one clock tick for each process.
fn assert_agrees(what: &str, seconds: f64, truth: f64, processes: u32) {
    let tolerance = (0.02 * truth).max(TICK * f64::from(processes));
    let error = (seconds - truth).abs();
    assert!(error <= tolerance, "{what}: {seconds} s, but {truth} s were used (±{tolerance} s)");
}

#[test]
fn cpu_of_an_awkward_tree_is_what_its_processes_say_they_used() {
    let mut tree = Tree::start(4);
    let mut sampler = tree.sampler();
    let (used_before, open) = tree.account(&mut sampler);
    for worker in 0..4 {
        tree.does(&format!("burn {worker} 0.3"));
    }
    tree.does("replace 1");
    tree.does("burn 1 0.2");
    tree.does("orphan 0.3");
    tree.does("replace 2");
    let (used_after, close) = tree.account(&mut sampler);

    let truth = used_after - used_before;
    assert!(truth > 1.7, "the tree did its work: {truth} s");
    let sample = difference(&open, &close, open.at, close.at, 1_000);
    // The master, four workers and the two that took their places, the orphan and its parent.
    let processes = 9;
    let seconds = |us: u64| us as f64 / 1e6;
    assert_agrees("ticks", seconds(sample.cpu_user_us + sample.cpu_system_us), truth, processes);
    let fine = sample.cpu_schedstat_us.expect("Linux has CPU clocks for processes");
    assert_agrees("nanosecond clock", seconds(fine), truth, processes);
    let per_request = sample.cpu_us_per_request.expect("there were responses");
    assert_agrees("per request", per_request * 1_000.0 / 1e6, truth, processes);

    assert_eq!(sample.processes, 5, "the master and four workers; the wrapper is gone");
    assert_eq!(sample.threads, 5);
    assert!(sample.anonymous_kib > 0 && sample.anonymous_kib <= sample.rss_kib, "{sample:?}");
    assert!(sample.peak_rss_kib >= sample.rss_kib, "{sample:?}");
    assert!(sample.voluntary_switches > 0, "workers waited for commands: {sample:?}");
    assert!(sample.cpus_busy.is_some_and(|share| share > 0.0 && share <= 1.0), "{sample:?}");
    assert!(sample.listen_overflows.is_some());
    assert_eq!((sample.opening_offset_us, sample.closing_offset_us), (0, 0));
}

#[test]
fn the_busiest_thread_is_the_one_that_worked() {
    let mut tree = Tree::start(3);
    let mut sampler = tree.sampler();
    let open = sampler.snapshot();
    tree.does("spin 1 0.4");
    tree.does("spin 2 0.1");
    let close = sampler.snapshot();
    let sample = difference(&open, &close, open.at, close.at, 0);
    let share = sample.busiest_thread.expect("threads were there at both edges");
    let busiest = share * close.at.since(open.at).as_secs_f64();
    // What the worker did besides, reading a command and answering it, is little.
    assert!((0.39..0.45).contains(&busiest), "{busiest} s");
}

#[test]
fn time_of_children_nobody_waits_for_is_kept_as_last_seen() {
    let mut tree = Tree::start(1);
    tree.does("ignore");
    let mut sampler = tree.sampler();
    let total = |snapshot: &TreeSnapshot| snapshot.cpu.user_us + snapshot.cpu.system_us;
    let before = sampler.snapshot();
    tree.does("burn 0 0.3");
    let seen = sampler.snapshot();
    tree.does("dismiss 0");
    let gone = sampler.snapshot();
    assert_eq!((seen.processes, gone.processes), (2, 1));
    assert!(total(&gone) >= total(&seen), "{} then {}", total(&seen), total(&gone));
    let sample = difference(&before, &gone, before.at, gone.at, 1);
    let seconds = (sample.cpu_user_us + sample.cpu_system_us) as f64 / 1e6;
    assert!(seconds >= 0.3 - 2.0 * TICK, "{seconds} s");
}

#[test]
fn datagrams_dropped_at_a_socket_of_the_tree_are_counted() {
    let mut tree = Tree::start(1);
    let mut sampler = tree.sampler();
    let without = sampler.snapshot();
    assert_eq!(difference(&without, &without, without.at, without.at, 0).udp_drops, None);

    let port: u16 = tree.ask("udp").parse().expect("a port");
    let open = sampler.snapshot();
    let client = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let sent = 300;
    for _ in 0..sent {
        client.send_to(&[7; 1000], ("127.0.0.1", port)).expect("loopback takes it");
    }
    let read: u64 = tree.ask("drain").parse().expect("a number");
    let close = sampler.snapshot();
    assert!(read < sent, "the buffer is small");
    assert_eq!(difference(&open, &close, open.at, close.at, 0).udp_drops, Some(sent - read));
    // Drops of this process's own sockets are none of the tree's, and neither are those of before.
    let own = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    for _ in 0..1000 {
        client.send_to(&[7; 1000], own.local_addr().expect("it is bound")).expect("loopback takes it");
    }
    let after = sampler.snapshot();
    assert_eq!(difference(&close, &after, close.at, after.at, 0).udp_drops, Some(0));
}

#[test]
fn an_environment_is_complete_and_serialisable() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let environment = environment(folder.path(), &[], &[]);
    assert!(environment.kernel.starts_with("Linux "), "{}", environment.kernel);
    assert!(environment.logical_cpus as usize >= machine().cpus.len());
    assert!(environment.memory_kib > 0);
    assert!(environment.load_at_start.is_some_and(|load| load >= 0.0));
    // In CI the commit is known without a repository.
    assert_eq!(environment.commit, std::env::var("GITHUB_SHA").ok());
    let json = serde_json::to_string(&environment).expect("all of it can be written");
    assert_eq!(serde_json::from_str::<bench::results::Environment>(&json).expect("and read"), environment);
}

fn doctor(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::cargo_bin("bench").expect("the binary is built with the tests");
    let output = command.arg("doctor").args(args).output().expect("it runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn doctor_exits_with_the_verdict_it_prints() {
    let (code, json) = doctor(&["--json"]);
    let findings: Vec<Finding> = serde_json::from_str(&json).expect("findings");
    let bad = findings.iter().any(|finding| finding.level == FindingLevel::Bad);
    assert_eq!(code, Some(i32::from(bad)), "{json}");
    for check in [
        "kernel",
        "io-uring",
        "fd-limit",
        "ephemeral-ports",
        "somaxconn",
        "udp-buffers",
        "loopback-mtu",
        "governor",
        "turbo",
    ] {
        assert!(findings.iter().any(|finding| finding.check == check), "{check} is looked at");
    }
}

#[test]
fn doctor_finds_pin_sets_that_cannot_be() {
    let cpu = machine().cpus[0].to_string();
    let (code, text) = doctor(&["--server-cpus", &cpu, "--generator-cpus", &cpu]);
    assert_eq!(code, Some(1), "{text}");
    let line = format!("CPU {cpu} would run servers and generator both");
    assert!(text.lines().any(|l| l.starts_with("bad ") && l.ends_with(&line)), "{text}");
    assert!(text.contains("-> give each side CPUs of its own"), "{text}");
}

#[test]
fn doctor_refuses_what_is_no_list_of_cpus() {
    assert_eq!(doctor(&["--server-cpus", "all"]).0, Some(2));
}
