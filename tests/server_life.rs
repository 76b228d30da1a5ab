//! The life of servers, with real processes: what they leave behind must be nothing, whatever they
//! do and whatever happens to the orchestrator.
//!
//! Every server of a test carries a variable of its own in its environment, by which the test finds
//! all of its processes wherever they went. Conditions are polled for, with a deadline that only a
//! broken program reaches.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bench::results::Protocol;
use bench::sampler::{TreeSampler, difference};
use bench::scenario::ServerSpec;
use bench::server::{self, Certificate, Host, Ports, Probe, Running, ServerError, allocate_ports};
use bench::time::Span;

/// Far beyond what anything here takes.
const LONG: Span = Span::from_secs(60);

const TOKEN: &str = "BENCH_TEST_SERVER";

const NOBODY: [u32; 0] = [];

/// One test's folder, server and ports.
struct Bed {
    host: Host,
    spec: ServerSpec,
    ports: Ports,
    token: String,
    dir: tempfile::TempDir,
}

impl Bed {
    /// A server that runs `command`.
    fn new(command: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let token = format!("{}.{number}", std::process::id());
        let dir = tempfile::tempdir().unwrap();
        let host = Host {
            exe: env!("CARGO_BIN_EXE_bench").into(),
            scratch: dir.path().join("scratch"),
            logs: dir.path().join("logs"),
            certificate: Certificate::generate(dir.path()).unwrap(),
            cpus: Vec::new(),
            workers: 4,
        };
        let spec = ServerSpec {
            name: "tested".into(),
            label: "Tested".into(),
            dir: data().to_str().unwrap().into(),
            requires: Vec::new(),
            build: Vec::new(),
            command: strings(command),
            env: BTreeMap::from([(TOKEN.into(), token.clone())]),
            render: Vec::new(),
            protocols: vec![Protocol::H1],
            version: Vec::new(),
            stop_signal: "TERM".into(),
            stop_grace: LONG,
            port: None,
            tls_port: None,
            note: None,
            workers: None,
            variant: None,
            revision: None,
            gate: None,
        };
        Self { host, ports: own_ports(&spec), spec, token, dir }
    }

    /// A server that runs a shell script.
    fn shell(script: &str) -> Self {
        Self::new(&["sh", "-c", script])
    }

    fn start(&self, mut probe: impl FnMut() -> Probe) -> Result<(Running, Span), ServerError> {
        self.start_within(LONG, &mut probe)
    }

    fn start_within(
        &self,
        deadline: Span,
        probe: &mut dyn FnMut() -> Probe,
    ) -> Result<(Running, Span), ServerError> {
        Running::start(&self.host, &self.spec, Protocol::H1, self.ports, deadline, probe)
    }

    /// Starts it; it is ready when `file` exists in the test's folder.
    fn start_until(&self, file: &str) -> Running {
        let path = self.dir.path().join(file);
        self.start(|| if path.exists() { Probe::Ready } else { Probe::NotYet("no file".into()) }).unwrap().0
    }

    fn path(&self, file: &str) -> String {
        self.dir.path().join(file).to_str().unwrap().into()
    }

    fn living(&self) -> Vec<u32> {
        living(&self.token)
    }

    /// How often `line` stands in the log. Shells print lines of their own about signals.
    fn printed(&self, line: &str) -> usize {
        let log = fs::read_to_string(self.host.logs.join("tested.log")).unwrap();
        log.lines().filter(|printed| *printed == line).count()
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/server")
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).into()).collect()
}

/// Two free ports that no other test of this file gets.
fn own_ports(spec: &ServerSpec) -> Ports {
    static NEXT: AtomicU16 = AtomicU16::new(21_000);
    loop {
        let http = NEXT.fetch_add(2, Ordering::Relaxed);
        assert!(http < 30_000, "no free port for a test");
        let fixed = ServerSpec { port: Some(http), tls_port: Some(http + 1), ..spec.clone() };
        if let Ok(ports) = allocate_ports(&fixed) {
            return ports;
        }
    }
}

/// The processes whose environment carries `token`.
fn living(token: &str) -> Vec<u32> {
    let wanted = format!("{TOKEN}={token}");
    let carries = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(carries).collect()
}

/// The session of a process, field 6 of proc_pid_stat(5).
fn session(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    after_name.split(' ').nth(3).unwrap().into()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends one line to the awkward server and returns its answer.
fn ask(port: u16, order: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    writeln!(stream, "{order}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.trim().into())
}

fn probe_awkward(port: u16) -> Probe {
    match ask(port, "who") {
        Ok(answer) if answer.parse::<u32>().is_ok() => Probe::Ready,
        Ok(answer) => Probe::Wrong(answer),
        Err(error) => Probe::NotYet(error.to_string()),
    }
}

/// True for the master and the workers of the awkward server, without its wrapper.
fn is_complete(pids: &[u32]) -> bool {
    let is_awkward = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("awkward.py"))
    };
    pids.len() == 5 && pids.iter().all(is_awkward)
}

/// A process that is none of the server's, and has the same name and environment keys.
fn bystander() -> Child {
    let mut child = Command::new("python3")
        .arg(data().join("idle.py"))
        .env(TOKEN, "bystander")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "idle\n");
    child
}

fn end(mut bystander: Child) {
    assert!(bystander.try_wait().unwrap().is_none(), "a bystander was killed");
    drop(bystander.stdin.take());
    assert!(bystander.wait().unwrap().success());
}

#[test]
fn an_awkward_server_is_followed_and_leaves_nothing_behind() {
    let mut bed = Bed::new(&["./wrapper.sh", "{port}"]);
    bed.spec.stop_grace = Span::from_millis(100);
    let bystander = bystander();
    let port = bed.ports.http;
    let (mut running, _) = bed.start(|| probe_awkward(port)).unwrap();
    assert_ne!(session(running.root()), session(std::process::id()), "a terminal's Ctrl-C would reach it");

    // The wrapper has ended, and what it left is the server.
    eventually("the wrapper ends", || running.log_tail(1) == ["wrapper: started"]);
    eventually("a master and four workers run", || is_complete(&bed.living()));
    assert_eq!(running.exited(), None);

    let before = bed.living();
    assert_eq!(ask(port, "quit").unwrap_or_default(), "");
    eventually("the worker is replaced", || {
        let now = bed.living();
        is_complete(&now) && now.iter().any(|pid| !before.contains(pid))
    });

    let stopped = running.stop();
    assert!(stopped.killed);
    assert_eq!(stopped.problem, None);
    assert_eq!(bed.living(), NOBODY);
    end(bystander);
    // The port can be taken by the next server at once.
    drop(TcpListener::bind(("127.0.0.1", port)).unwrap());
}

#[test]
fn the_cpu_time_of_workers_is_found_below_the_supervisor_also_when_they_are_replaced() {
    let mut bed = Bed::new(&["./wrapper.sh", "{port}"]);
    bed.spec.stop_grace = Span::ZERO;
    let port = bed.ports.http;
    let (running, _) = bed.start(|| probe_awkward(port)).unwrap();
    eventually("a master and four workers run", || is_complete(&bed.living()));

    let mut sampler = TreeSampler::new(running.root(), &[]);
    let open = sampler.snapshot();
    let mut truth = 0;
    for _ in 0..6 {
        truth += ask(port, "burn 200").unwrap().parse::<u64>().unwrap();
        // Mid-way its worker may go, and its CPU time with it to whoever waits for it.
        let before = bed.living();
        assert_eq!(ask(port, "quit").unwrap_or_default(), "");
        eventually("the worker is replaced", || {
            let now = bed.living();
            is_complete(&now) && now != before
        });
    }
    let close = sampler.snapshot();
    let used = difference(&open, &close, open.at, close.at, 1);
    let found = used.cpu_user_us + used.cpu_system_us;
    // Accounts are kept in ticks of 10 ms, and each of at most 11 processes may be one off. Starting
    // and answering cost something that the workers do not report.
    let tolerance = truth / 50 + 11 * 10_000;
    assert!(found.abs_diff(truth) <= tolerance, "{found} µs found, {truth} µs reported");
    running.stop();
}

#[test]
fn dropping_a_server_kills_all_of_it_also_in_a_panic() {
    let bed = Bed::new(&["./wrapper.sh", "{port}"]);
    let port = bed.ports.http;
    let (running, _) = bed.start(|| probe_awkward(port)).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _running = running;
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    assert_eq!(bed.living(), NOBODY);
}

#[test]
#[ignore = "is run, and killed, by the test below; alone it starts and stops a server"]
fn orchestrator() {
    let bed = Bed::new(&["./wrapper.sh", "{port}"]);
    let port = bed.ports.http;
    let (running, _) = bed.start(|| probe_awkward(port)).unwrap();
    println!("\nserver {} {}", bed.token, running.root());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(running);
    assert_eq!(bed.living(), NOBODY);
}

#[test]
fn a_killed_orchestrator_leaves_nothing_behind() {
    let mut orchestrator = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "orchestrator"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(orchestrator.stdout.take().unwrap()).lines();
    let line =
        lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("server "))).unwrap().unwrap();
    let (token, supervisor) = line["server ".len()..].split_once(' ').unwrap();
    eventually("a master and four workers run", || is_complete(&living(token)));
    orchestrator.kill().unwrap();
    orchestrator.wait().unwrap();
    eventually("all processes are gone", || living(token).is_empty());
    eventually("the supervisor is gone", || {
        // Until its new parent has waited for it, it is a zombie.
        fs::read_to_string(format!("/proc/{supervisor}/stat")).map_or(true, |stat| stat.contains(") Z"))
    });
}

#[test]
fn the_end_of_the_orchestrator_ends_the_grace() {
    let bed = Bed::shell("");
    let ready = bed.path("ready");
    let start = serde_json::json!({ "start": {
        "command": ["/bin/sh", "-c", format!("trap '' TERM; setsid sleep 1000 & touch {ready}; wait")],
        "dir": "/", "unset": [], "env": bed.spec.env, "cpus": [],
    }});
    let stop = serde_json::json!({ "stop": { "signal": "TERM", "grace": Span::from_secs(3600) } });
    let mut supervisor = Command::new(&bed.host.exe)
        .arg("supervise")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut orders = supervisor.stdin.take().unwrap();
    writeln!(orders, "{start}").unwrap();
    eventually("the server runs", || Path::new(&ready).exists());
    writeln!(orders, "{stop}").unwrap();
    assert!(!bed.living().is_empty());
    drop(orders);
    assert!(supervisor.wait().unwrap().success());
    assert_eq!(bed.living(), NOBODY);
}

#[test]
fn a_killed_supervisor_takes_the_main_process_along_and_is_told() {
    let bed = Bed::shell("exec sleep 1000");
    let (mut running, _) = bed.start(|| Probe::Ready).unwrap();
    let supervisor = i32::try_from(running.root()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(supervisor), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
    eventually("the loss is noticed", || running.exited().is_some());
    assert_eq!(running.exited().as_deref(), Some("lost its supervisor, which somebody killed"));
    eventually("the main process is gone", || bed.living().is_empty());
}

#[test]
fn a_server_that_stops_when_asked_is_asked_once_and_not_killed() {
    let mut bed = Bed::shell("");
    let ready = bed.path("ready");
    // The whole group is asked: the child that the shell waits for ends by it. That child says when it
    // is there, for a shell's child that has not replaced the shell yet may lose a signal.
    let child = format!("touch {ready}; exec sleep 1000");
    bed.spec.command[2] = format!("trap 'echo asked' TERM; sh -c '{child}' & wait; sleep 0.2");
    let stopped = bed.start_until("ready").stop();
    assert!(!stopped.killed);
    assert_eq!(stopped.problem, None);
    assert_eq!(bed.printed("asked"), 1);
    assert_eq!(bed.living(), NOBODY);
}

#[test]
fn what_a_stopped_main_process_leaves_in_another_session_is_asked_too() {
    let mut bed = Bed::shell("");
    let ready = bed.path("ready");
    let child =
        format!("trap \"echo child asked; exit 0\" TERM; touch {ready}; while :; do sleep 0.01; done");
    bed.spec.command[2] = format!("setsid sh -c '{child}' & wait");
    let stopped = bed.start_until("ready").stop();
    assert!(!stopped.killed);
    assert_eq!(bed.printed("child asked"), 1);
}

#[test]
fn a_server_that_forks_while_it_is_killed_leaves_nothing_behind() {
    let mut bed = Bed::shell("");
    let ready = bed.path("ready");
    bed.spec.stop_grace = Span::from_millis(20);
    bed.spec.command[2] =
        format!("trap '' TERM; touch {ready}; while :; do (setsid sleep 1000 &); sleep 0.001; done");
    let stopped = bed.start_until("ready").stop();
    assert!(stopped.killed);
    assert_eq!(stopped.problem, None);
    assert_eq!(bed.living(), NOBODY);
}

#[test]
fn the_stop_signal_is_the_servers_own() {
    let mut bed = Bed::shell("");
    let ready = bed.path("ready");
    bed.spec.stop_signal = "QUIT".into();
    bed.spec.command[2] =
        format!("trap '' TERM; trap 'echo quit; exit 0' QUIT; touch {ready}; while :; do sleep 0.01; done");
    assert!(!bed.start_until("ready").stop().killed);
    assert_eq!(bed.printed("quit"), 1);

    bed.spec.stop_signal = "HALT".into();
    assert!(bed.start(|| Probe::Ready).unwrap_err().reason.contains("no signal `HALT`"));
}

#[test]
fn a_server_that_exits_at_once_fails_with_its_status_and_last_lines() {
    for (script, how) in [
        ("for i in $(seq 30); do echo line $i; done; echo 'cannot bind' >&2; exit 3", "exited with status 3"),
        ("echo cannot bind; kill -SEGV $$", "was killed by SIGSEGV"),
        // A signal without a name, of the real-time range.
        ("echo cannot bind; kill -40 $$", "was killed by a real-time signal"),
        // The main process ends well, and so does what it left, before it was ready.
        ("(echo cannot bind) & exit 0", "exited with status 0"),
    ] {
        let bed = Bed::shell(script);
        let error = bed.start(|| Probe::NotYet("connection refused".into())).unwrap_err();
        assert_eq!(error.reason, format!("it {how} before it was ready"));
        assert_eq!(error.log_tail.last().map(String::as_str), Some("cannot bind"), "{script}");
        assert!(error.log_tail.len() <= 20 && !error.absent);
    }
}

#[test]
fn a_server_that_is_never_ready_fails_with_what_the_last_probe_said() {
    for (found, told) in [
        (Probe::NotYet("connection refused".into()), "not ready within 50ms: connection refused"),
        (
            Probe::Wrong("status 404".into()),
            "not ready within 50ms: it answers, but not as expected: status 404",
        ),
    ] {
        let bed = Bed::shell("echo waiting; setsid sleep 1000 & sleep 1000");
        let error = bed.start_within(Span::from_millis(50), &mut || found.clone()).unwrap_err();
        assert_eq!(error.reason, told);
        assert_eq!(bed.living(), NOBODY);
    }
}

#[test]
fn a_server_that_ends_after_it_was_ready_is_noticed() {
    let mut bed = Bed::shell("");
    let go = bed.path("go");
    bed.spec.command[2] = format!("until [ -e {go} ]; do sleep 0.01; done; echo out of memory; exit 4");
    let (mut running, ready_after) = bed.start(|| Probe::Ready).unwrap();
    assert!(!ready_after.is_zero());
    assert_eq!(running.exited(), None);
    fs::write(&go, "").unwrap();
    eventually("the end is noticed", || running.exited().is_some());
    assert_eq!(running.exited().as_deref(), Some("exited with status 4"));
    assert_eq!(running.log_tail(20), ["out of memory"]);
    let stopped = running.stop();
    assert_eq!(stopped.problem.as_deref(), Some("it exited with status 4 before it was asked to stop"));
}

#[test]
fn a_server_that_floods_its_log_keeps_running_and_the_log_stays_small() {
    let mut bed = Bed::shell("");
    let ready = bed.path("ready");
    // It gets to the last line only when 50 MiB were taken from it.
    bed.spec.command[2] = format!(
        "echo first; head -c 52428800 /dev/zero | tr '\\0' 'x'; echo; echo last; touch {ready}; exec sleep 1000"
    );
    let running = bed.start_until("ready");
    eventually("the last line arrives", || running.log_tail(1) == ["last"]);
    let path = running.log_path().to_owned();
    running.stop();
    let log = fs::read_to_string(path).unwrap();
    assert!(log.len() < 1024 * 1024 + 100, "{}", log.len());
    assert!(log.starts_with("first\nx") && log.ends_with("x\nlast\n"));
    assert!(log.contains(&format!("[... {} bytes left out ...]", 52_428_800 + 12 - 1024 * 1024)));
}

#[test]
fn a_busy_port_is_named_with_its_holder_and_nothing_is_started() {
    let bed = Bed::shell("exec sleep 1000");
    let _listener = TcpListener::bind(("127.0.0.1", bed.ports.https)).unwrap();
    let error = bed.start(|| Probe::Ready).unwrap_err();
    let told = format!("port {} is taken by `", bed.ports.https);
    assert!(error.reason.starts_with(&told), "{error}");
    assert!(error.reason.contains(&format!("(pid {})", std::process::id())), "{error}");
    assert!(!bed.host.logs.exists());

    let fixed = ServerSpec { tls_port: Some(bed.ports.https), ..bed.spec.clone() };
    assert_eq!(allocate_ports(&fixed).unwrap_err().reason, error.reason);
}

#[test]
fn a_port_that_stays_taken_is_a_problem_of_the_stop() {
    let bed = Bed::shell("exec sleep 1000");
    let (running, _) = bed.start(|| Probe::Ready).unwrap();
    let _listener = TcpListener::bind(("127.0.0.1", bed.ports.http)).unwrap();
    let stopped = running.stop();
    assert!(!stopped.killed);
    let problem = stopped.problem.unwrap();
    assert!(problem.starts_with(&format!("port {} is taken by", bed.ports.http)), "{problem}");
}

#[test]
fn allocated_ports_lie_outside_the_ephemeral_range() {
    let ports = allocate_ports(&Bed::shell("").spec).unwrap();
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let bounds: Vec<u16> = range.split_whitespace().map(|bound| bound.parse().unwrap()).collect();
    assert_ne!(ports.http, ports.https);
    assert!(
        !(bounds[0]..=bounds[1]).contains(&ports.http) && !(bounds[0]..=bounds[1]).contains(&ports.https)
    );
}

#[test]
fn a_server_gets_its_values_its_cpus_and_a_session_of_its_own() {
    let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let cpu = (0..1024).find(|cpu| allowed.is_set(*cpu).unwrap()).unwrap();
    let mut bed = Bed::shell("");
    let config = tempfile::tempdir().unwrap();
    fs::create_dir(config.path().join("conf")).unwrap();
    fs::write(
        config.path().join("conf/server.conf"),
        "listen {port} {https_port}; {path} { workers {workers} }\n",
    )
    .unwrap();
    bed.host.cpus = vec![u32::try_from(cpu).unwrap()];
    bed.spec.dir = config.path().to_str().unwrap().into();
    bed.spec.render = vec!["conf/server.conf".into()];
    bed.spec.env.insert("CERT".into(), "{cert}".into());
    let ready = bed.path("ready");
    bed.spec.command = strings(&[
        "sh",
        "-c",
        &format!(
            "cat \"$1\"; echo $CERT; pwd; grep Cpus_allowed_list /proc/$$/status; cut -d' ' -f5 /proc/$$/stat; \
             env | grep -c ^CARGO_MANIFEST; touch {ready}; exec sleep 1000"
        ),
        "sh",
        "{config}",
    ]);
    let running = bed.start_until("ready");
    let main = bed.living();
    let Ports { http, https } = bed.ports;
    let expected = [
        format!("listen {http} {https}; {{path}} {{ workers 4 }}"),
        bed.host.certificate.cert.display().to_string(),
        config.path().canonicalize().unwrap().display().to_string(),
        format!("Cpus_allowed_list: {cpu}"),
        format!("{}", main[0]),
        "0".into(),
    ];
    eventually("all is printed", || running.log_tail(20).len() == expected.len());
    assert_eq!(running.log_tail(20), expected);
    assert_eq!(main.len(), 1);
    running.stop();
    assert!(fs::read_dir(&bed.host.scratch).unwrap().next().is_none(), "a run folder was left");
}

#[test]
fn what_cannot_be_started_says_why() {
    let mut bed = Bed::new(&["no-such-server"]);
    let error = bed.start(|| Probe::Ready).unwrap_err();
    assert_eq!(error.reason, "there is no program `no-such-server` to start; name it in `requires`");

    bed.spec.command = strings(&["sh", "{prot}"]);
    assert!(bed.start(|| Probe::Ready).unwrap_err().reason.starts_with("`{prot}` in command is unknown"));

    bed.spec.command = strings(&["sh", "-c", "exec sleep 1000"]);
    bed.spec.render = vec!["missing.conf".into()];
    assert!(bed.start(|| Probe::Ready).unwrap_err().reason.contains("missing.conf"));

    bed.spec.render.clear();
    bed.host.cpus = vec![1023];
    let error = bed.start(|| Probe::NotYet("connection refused".into())).unwrap_err();
    assert!(error.log_tail[0].contains("cannot pin it to CPUs [1023]"), "{error:?}");

    bed.host.cpus.clear();
    bed.spec.dir = "/no/such/folder".into();
    assert!(bed.start(|| Probe::Ready).unwrap_err().reason.starts_with("cannot start `"));
    assert_eq!(bed.living(), NOBODY);
}

#[test]
fn a_build_runs_once_in_the_servers_folder_with_a_clean_environment() {
    let mut bed = Bed::shell("");
    assert_eq!(server::build(&bed.host, &bed.spec, LONG), Ok(None));

    bed.spec.env.insert("PORT".into(), "{port}".into());
    bed.spec.build = strings(&["sh", "-c", "pwd; env; setsid sleep 1000 &"]);
    assert!(server::build(&bed.host, &bed.spec, LONG).unwrap().is_some());
    assert_eq!(bed.living(), NOBODY, "a daemon that the build left was not killed");
    let log = fs::read_to_string(bed.host.logs.join("tested.build.log")).unwrap();
    assert_eq!(log.lines().next(), bed.spec.dir.as_str().into());
    assert!(log.contains(TOKEN));
    for foreign in ["CARGO_MANIFEST_DIR=", "CARGO_PKG_NAME=", "PORT="] {
        assert!(!log.lines().any(|line| line.starts_with(foreign)), "{foreign}");
    }
}

#[test]
fn a_build_that_fails_or_takes_too_long_says_so_and_leaves_nothing() {
    let mut bed = Bed::shell("");
    bed.spec.build = strings(&["sh", "-c", "echo error: no such crate >&2; exit 7"]);
    let error = server::build(&bed.host, &bed.spec, LONG).unwrap_err();
    assert!(error.reason.starts_with("its build exited with status 7; all of its output is in "), "{error}");
    assert!(error.reason.ends_with("tested.build.log"), "{error}");
    assert_eq!(error.log_tail, ["error: no such crate"]);
    assert!(!error.absent);

    bed.spec.build = strings(&["sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"]);
    let error = server::build(&bed.host, &bed.spec, Span::from_millis(50)).unwrap_err();
    assert!(error.reason.starts_with("its build took longer than 50ms"), "{error}");
    assert_eq!(bed.living(), NOBODY);

    bed.spec.build = strings(&["no-such-compiler"]);
    let error = server::build(&bed.host, &bed.spec, LONG).unwrap_err();
    assert!(error.absent && error.reason.contains("`no-such-compiler`"), "{error}");
}

#[test]
fn the_supervisor_is_no_command_for_people() {
    let help = Command::new(env!("CARGO_BIN_EXE_bench")).arg("--help").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("supervise"));
    // Without orders it ends at once.
    let status =
        Command::new(env!("CARGO_BIN_EXE_bench")).arg("supervise").stdin(Stdio::null()).status().unwrap();
    assert!(status.success());
}
