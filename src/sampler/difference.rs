//! Owns the arithmetic between two snapshots: what a server used during one window. Pure.

use super::tree::{ThreadUse, TreeSnapshot};
use crate::results::ServerSample;
use crate::time::{Instant, Span};

/// What the tree used between two snapshots, taken for edges due at `opened` and `closed`;
/// `ok` responses were counted meanwhile.
///
/// Nothing is scaled to the window: how far the snapshots lie from its edges is part of the sample.
/// No figure is negative, and one that is not defined (CPU per request without a response, or
/// after the root of the tree was lost) is `None`.
pub fn difference(
    open: &TreeSnapshot,
    close: &TreeSnapshot,
    opened: Instant,
    closed: Instant,
    ok: u64,
) -> ServerSample {
    let followed = open.found && close.found;
    let cpu_user_us = close.cpu.user_us.saturating_sub(open.cpu.user_us);
    let cpu_system_us = close.cpu.system_us.saturating_sub(open.cpu.system_us);
    let cpu_us = cpu_user_us.saturating_add(cpu_system_us);
    let cpu_schedstat_us = open.cpu.clock_us.zip(close.cpu.clock_us).map(|(a, b)| b.saturating_sub(a));
    let per_request = |us: u64| (followed && ok > 0).then(|| us as f64 / ok as f64);
    let threads = ThreadDeltas::between(open, close);
    ServerSample {
        udp_drops: udp_drops(open, close),
        cpu_user_us,
        cpu_system_us,
        cpu_schedstat_us,
        cpu_us_per_request: per_request(cpu_us),
        cpu_us_per_request_schedstat: cpu_schedstat_us
            .filter(|&fine| clocks_disagree(cpu_us, fine))
            .and_then(per_request),
        opening_offset_us: offset_us(opened, open.at),
        closing_offset_us: offset_us(closed, close.at),
        processes: close.processes,
        threads: u32::try_from(close.threads.len()).unwrap_or(u32::MAX),
        rss_kib: close.memory.rss_kib,
        // A process that ended inside the window took its mark with it.
        peak_rss_kib: open.memory.peak_rss_kib.max(close.memory.peak_rss_kib),
        anonymous_kib: close.memory.anonymous_kib,
        voluntary_switches: threads.voluntary_switches,
        involuntary_switches: threads.involuntary_switches,
        cpus_busy: share_busy(open, close),
        busiest_thread: threads.busiest_share(close.at.since(open.at)),
        listen_overflows: open
            .listen_overflows
            .zip(close.listen_overflows)
            .map(|(before, after)| after.saturating_sub(before)),
    }
}

/// Datagrams dropped at the UDP sockets that were open at the closing edge. One that is new since the
/// opening edge dropped all it did inside the window.
fn udp_drops(open: &TreeSnapshot, close: &TreeSnapshot) -> Option<u64> {
    let dropped = |(inode, after): (&u64, &u32)| {
        u64::from(after.wrapping_sub(open.udp_drops.get(inode).copied().unwrap_or(0)))
    };
    (!close.udp_drops.is_empty()).then(|| close.udp_drops.iter().map(dropped).sum())
}

/// What the threads alive at the closing edge used since the opening one.
#[derive(Default)]
struct ThreadDeltas {
    voluntary_switches: u64,
    involuntary_switches: u64,
    busiest_ns: Option<u64>,
}

impl ThreadDeltas {
    fn between(open: &TreeSnapshot, close: &TreeSnapshot) -> Self {
        let mut sum = Self::default();
        for (id, after) in &close.threads {
            // A thread that is new since the opening edge did all it did inside the window.
            let before = open.threads.get(id).copied().unwrap_or_default();
            let delta = |figure: fn(&ThreadUse) -> u64| figure(after).saturating_sub(figure(&before));
            sum.voluntary_switches = sum.voluntary_switches.saturating_add(delta(|t| t.voluntary_switches));
            sum.involuntary_switches =
                sum.involuntary_switches.saturating_add(delta(|t| t.involuntary_switches));
            sum.busiest_ns = sum.busiest_ns.max(Some(delta(|t| t.cpu_ns)));
        }
        sum
    }

    /// At most 1: a thread's time and the distance of the snapshots are not read at one instant.
    fn busiest_share(&self, length: Span) -> Option<f64> {
        let busiest = self.busiest_ns.filter(|_| !length.is_zero())?;
        Some((busiest as f64 / length.as_nanos() as f64).min(1.0))
    }
}

/// Share of the pinned CPUs' time that was not idle. Stolen time counts as busy: the CPU had work and
/// could not do it, and that is the end of its capacity as much as work is.
fn share_busy(open: &TreeSnapshot, close: &TreeSnapshot) -> Option<f64> {
    let (before, after) = open.cpus.zip(close.cpus)?;
    // The kernel's idle and I/O wait counters may step back by a little (proc_stat(5)).
    let busy =
        after.busy.saturating_sub(before.busy) as f64 + after.stolen.saturating_sub(before.stolen) as f64;
    let idle = after.idle.saturating_sub(before.idle) as f64;
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

/// True when the scheduler's clock is over 2 % away from the tick counters.
fn clocks_disagree(ticks_us: u64, fine_us: u64) -> bool {
    fine_us.abs_diff(ticks_us) as f64 > CLOCK_TOLERANCE * ticks_us as f64
}

/// Microseconds from `due` to `taken`, negative when it was taken early.
fn offset_us(due: Instant, taken: Instant) -> i64 {
    let micros = |span: Span| i64::try_from(span.as_nanos() / 1_000).unwrap_or(i64::MAX);
    micros(taken.since(due)) - micros(due.since(taken))
}

/// Above this relative difference both clocks are reported.
const CLOCK_TOLERANCE: f64 = 0.02;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::ledger::ProcessId;
    use super::super::stat::{CpuTimes, Memory};
    use super::super::tree::{ThreadId, TreeCpu};
    use super::*;

    fn thread(tid: u32) -> ThreadId {
        ThreadId { process: ProcessId { pid: 10, start: 5 }, tid }
    }

    fn used(cpu_ns: u64, voluntary_switches: u64, involuntary_switches: u64) -> ThreadUse {
        ThreadUse { cpu_ns, voluntary_switches, involuntary_switches }
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn pair() -> (TreeSnapshot, TreeSnapshot) {
        let open = TreeSnapshot {
            at: at_ms(1_000),
            found: true,
            cpu: TreeCpu { user_us: 500_000, system_us: 100_000, clock_us: Some(605_000) },
            processes: 2,
            memory: Memory { rss_kib: 900, peak_rss_kib: 2_000, anonymous_kib: 300 },
            threads: BTreeMap::from([(thread(10), used(1_000, 5, 5)), (thread(11), used(7, 7, 7))]),
            cpus: Some(CpuTimes { busy: 100, stolen: 0, idle: 1_000 }),
            listen_overflows: Some(4),
            udp_drops: BTreeMap::from([(70, 5), (71, u32::MAX), (72, 9)]),
        };
        let close = TreeSnapshot {
            at: at_ms(3_000),
            found: true,
            cpu: TreeCpu { user_us: 1_500_000, system_us: 600_000, clock_us: Some(2_115_000) },
            processes: 1,
            memory: Memory { rss_kib: 1_000, peak_rss_kib: 1_500, anonymous_kib: 400 },
            threads: BTreeMap::from([
                (thread(10), used(1_500_001_000, 105, 25)),
                (thread(12), used(400_000_000, 3, 1)),
            ]),
            cpus: Some(CpuTimes { busy: 230, stolen: 20, idle: 1_050 }),
            listen_overflows: Some(9),
            udp_drops: BTreeMap::from([(70, 7), (71, 2), (73, 40)]),
        };
        (open, close)
    }

    #[test]
    fn figures_are_differences() {
        let (open, close) = pair();
        let sample = difference(&open, &close, at_ms(999), at_ms(3_001), 1_000);
        let expected = ServerSample {
            // Two, three around the end of the counter, and all of the new socket's.
            udp_drops: Some(2 + 3 + 40),
            cpu_user_us: 1_000_000,
            cpu_system_us: 500_000,
            cpu_schedstat_us: Some(1_510_000),
            cpu_us_per_request: Some(1_500.0),
            cpu_us_per_request_schedstat: None,
            opening_offset_us: 1_000,
            closing_offset_us: -1_000,
            processes: 1,
            threads: 2,
            rss_kib: 1_000,
            peak_rss_kib: 2_000,
            anonymous_kib: 400,
            voluntary_switches: 103,
            involuntary_switches: 21,
            cpus_busy: Some(0.75),
            busiest_thread: Some(0.75),
            listen_overflows: Some(5),
        };
        assert_eq!(sample, expected);
    }

    #[test]
    fn both_clocks_are_given_when_they_are_over_two_percent_apart() {
        let (open, mut close) = pair();
        for (clock_us, shown) in [(2_135_000, None), (2_136_000, Some(1_531.0)), (2_073_000, Some(1_468.0))] {
            close.cpu.clock_us = Some(clock_us);
            let sample = difference(&open, &close, at_ms(1_000), at_ms(3_000), 1_000);
            assert_eq!(sample.cpu_us_per_request_schedstat, shown, "{clock_us}");
        }
    }

    #[test]
    fn nothing_is_claimed_of_a_tree_that_was_lost_or_did_nothing() {
        let (open, close) = pair();
        let lost = TreeSnapshot { at: close.at, ..TreeSnapshot::default() };
        let sample = difference(&open, &lost, at_ms(1_000), at_ms(3_000), 1_000);
        assert_eq!((sample.cpu_us_per_request, sample.cpu_schedstat_us), (None, None));
        assert_eq!((sample.cpus_busy, sample.busiest_thread, sample.udp_drops), (None, None, None));
        assert_eq!(difference(&open, &close, open.at, close.at, 0).cpu_us_per_request, None);
        let nothing = difference(&open, &open, open.at, open.at, 7);
        assert_eq!(nothing.cpu_us_per_request, Some(0.0));
        assert_eq!((nothing.cpus_busy, nothing.busiest_thread), (None, None));
    }

    fn snapshots() -> impl Strategy<Value = TreeSnapshot> {
        // Small numbers collide and cross; large ones overflow what is added carelessly.
        let number = || prop_oneof![0u64..10, any::<u64>(), Just(u64::MAX)];
        let uses = (number(), number(), number()).prop_map(|(a, b, c)| used(a, b, c));
        let threads = proptest::collection::btree_map((0u32..4).prop_map(thread), uses, 0..4);
        let cpus = proptest::option::of((number(), number(), number()))
            .prop_map(|cpus| cpus.map(|(busy, stolen, idle)| CpuTimes { busy, stolen, idle }));
        let cpu = (number(), number(), proptest::option::of(number()))
            .prop_map(|(user_us, system_us, clock_us)| TreeCpu { user_us, system_us, clock_us });
        (number(), any::<bool>(), cpu, threads, cpus, proptest::option::of(number())).prop_map(
            |(at, found, cpu, threads, cpus, listen_overflows)| TreeSnapshot {
                at: Instant::from_nanos(at),
                found,
                cpu,
                threads,
                cpus,
                listen_overflows,
                ..TreeSnapshot::default()
            },
        )
    }

    proptest! {
        #[test]
        fn no_pair_of_snapshots_gives_a_negative_or_undefined_figure(
            open in snapshots(), close in snapshots(), opened: u64, closed: u64, ok: u64,
        ) {
            let (opened, closed) = (Instant::from_nanos(opened), Instant::from_nanos(closed));
            let sample = difference(&open, &close, opened, closed, ok);
            for figure in [sample.cpu_us_per_request, sample.cpu_us_per_request_schedstat] {
                prop_assert!(figure.is_none_or(|f| f.is_finite() && f >= 0.0), "{figure:?}");
            }
            for share in [sample.cpus_busy, sample.busiest_thread] {
                prop_assert!(share.is_none_or(|s| (0.0..=1.0).contains(&s)), "{share:?}");
            }
        }
    }
}
