//! CPU per request as `bench run` reports it against what the server's own processes say they used,
//! by getrusage(2), over a tree whose workers are replaced while they are measured.

#[path = "common/bed.rs"]
mod bed;

use std::collections::{BTreeMap, BTreeSet};

use bed::{Bed, data, section};
use bench::results::CellStatus;

const REQUESTS: u64 = 400;

/// The unit of utime, stime, cutime and cstime in proc_pid_stat(5).
const TICK_US: f64 = 10_000.0;

#[test]
fn cpu_per_request_is_what_the_servers_processes_say_they_used() {
    let log = tempfile::NamedTempFile::new().expect("a file for the server's accounts");
    let script = data("burning.py");
    let server = format!(
        "[[server]]\nname = \"burning\"\nprotocols = [\"h1\"]\nstop = {{ signal = \"TERM\", grace = \"100ms\" }}\n\
         command = [\"sh\", \"-c\", 'python3 \"$@\"; exit 0', \"sh\", \"{}\", \"{{http_port}}\", \"{}\"]\n",
        script.display(),
        log.path().display()
    );
    let closed_loop = "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"2x1\"]";
    let bed = Bed::new(
        "rounds = 1",
        &[server, section("Burn", &format!("{closed_loop}\nrequests = {REQUESTS}"))].concat(),
    );
    let output = bed.bench().output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    bed.assert_nothing_is_left();

    let results = bed.results();
    let cell = &results.sections[0].cells[0];
    let round = &cell.rounds[0];
    assert_eq!(round.status, CellStatus::Measured);
    let measurement = round.measurement.as_ref().expect("it was measured");
    assert_eq!(measurement.requests.ok, REQUESTS);
    let edges = measurement.window.opened_at_ns.zip(measurement.window.closed_at_ns);
    let accounts = Accounts::read(log.path(), edges.expect("the window opened and closed"));
    assert_eq!(accounts.answers, REQUESTS, "the server's own count of the window");
    assert!(accounts.processes.len() > 4, "workers were replaced: {:?}", accounts.processes);

    let truth = accounts.used_us as f64 / REQUESTS as f64;
    let sample = round.server.as_ref().expect("the server was sampled");
    let reported = sample.cpu_us_per_request.expect("there were answers");
    let fine = sample.cpu_schedstat_us.expect("Linux has CPU clocks for processes") as f64 / REQUESTS as f64;
    // Every process may be a tick off: the workers, and the master that forks them. By the fine clock
    // only those are that have ended, whose user and system time stand in their parent's accounts.
    let processes = accounts.processes.len() + 1;
    for (clock, figure, ticks) in [("ticks", reported, processes), ("nanoseconds", fine, 2)] {
        let tolerance = 0.02 * truth + ticks as f64 * TICK_US / REQUESTS as f64;
        assert!((figure - truth).abs() <= tolerance, "{clock}: {figure} µs, but {truth} µs were used");
    }
    assert_eq!(cell.summary.server_cpu_us_per_request, Some(reported), "what the report shows");
}

/// What the server's processes wrote down of one window.
struct Accounts {
    used_us: u64,
    answers: u64,
    processes: BTreeSet<u32>,
}

impl Accounts {
    fn read(log: &std::path::Path, (opened, closed): (u64, u64)) -> Self {
        let text = std::fs::read_to_string(log).expect("the server wrote its accounts");
        // CPU of each process at both edges; one that began inside the window had used nothing.
        let mut used: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        let mut accounts = Self { used_us: 0, answers: 0, processes: BTreeSet::new() };
        for line in text.lines() {
            let fields: Vec<u64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
            let [pid, at, cpu_us] = fields[..] else { panic!("{line}") };
            let pid = u32::try_from(pid).expect("process ids are small");
            let is_answer = used.contains_key(&pid);
            let edges = used.entry(pid).or_default();
            if at <= opened {
                *edges = [cpu_us; 2];
            } else if at <= closed {
                edges[1] = cpu_us;
                accounts.answers += u64::from(is_answer);
                accounts.processes.insert(pid);
            }
        }
        accounts.used_us = used.values().map(|[before, after]| after - before).sum();
        accounts
    }
}
