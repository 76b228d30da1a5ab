//! Owns the books on a process tree's CPU time: one total that never falls, whichever way the
//! processes of the tree come, go and are waited for. Pure.
//!
//! A process that is waited for (wait(2)) hands its time on to the one that waited, so that
//!
//! > Σ over live processes of (own time + time of reaped children) + the root's time of reaped children
//!
//! does not change when a process is reaped anywhere below the root, and grows only with work. What
//! this sum loses is the time of children whose parent ignores SIGCHLD: the kernel reaps those itself
//! and credits nobody (wait(2), notes). The ledger notices that a process is gone and nobody above
//! it has been credited, and keeps the time last seen of it. What such a process used after it was
//! last seen is not covered, and neither is one that came and went between two readings.

use std::collections::BTreeMap;

use super::stat::Ticks;

/// Names a process for good: its id, which is used again, and its start in ticks since boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId {
    /// Process id.
    pub pid: u32,
    /// Start in ticks since boot.
    pub start: u64,
}

/// The CPU time of one process below the root, at one reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessCpu {
    /// Which process.
    pub id: ProcessId,
    /// Process id of its parent.
    pub parent: u32,
    /// Time of its threads.
    pub own: Ticks,
    /// Time of the children it has waited for, and of theirs.
    pub reaped: Ticks,
}

/// One reading of a whole tree.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Reading {
    /// Time of the children that the root has waited for. The root's own time is not the tree's.
    pub root_reaped: Ticks,
    /// Every process below the root, zombies included, each once.
    pub processes: Vec<ProcessCpu>,
}

/// Follows a tree from reading to reading.
#[derive(Debug)]
pub(super) struct Ledger {
    root: u32,
    last: Reading,
    lost: Ticks,
}

impl Ledger {
    /// Books on the processes below process `root`.
    pub(super) fn new(root: u32) -> Self {
        Self { root, last: Reading::default(), lost: Ticks::default() }
    }

    /// Enters a reading. Returns the time to add to those of `reading` for the total of the tree:
    /// what processes had used that are gone and were credited to nobody.
    pub(super) fn enter(&mut self, reading: Reading) -> Ticks {
        self.lost += self.uncredited(&reading);
        self.last = reading;
        self.lost
    }

    /// The time of processes in the last reading that is nowhere in `now`.
    ///
    /// A process that is gone left a claim with its heir, the nearest of its forebears that still
    /// lives: the heir must have been credited at least what was last seen of it. When the process was
    /// not a child of the heir itself it may have been orphaned first and adopted further up, so what
    /// the heir was not credited of such claims is asked of the heir's own parent, up to the root.
    fn uncredited(&self, now: &Reading) -> Ticks {
        let living: BTreeMap<u32, &ProcessCpu> = now.processes.iter().map(|p| (p.id.pid, p)).collect();
        let before: BTreeMap<u32, &ProcessCpu> = self.last.processes.iter().map(|p| (p.id.pid, p)).collect();
        let lives = |process: &ProcessCpu| living.get(&process.id.pid).is_some_and(|p| p.id == process.id);

        let mut claims: BTreeMap<u32, Claim> = BTreeMap::new();
        for gone in self.last.processes.iter().filter(|process| !lives(process)) {
            let mut heir = gone.parent;
            let mut direct = true;
            // No chain of parents is longer than the number of processes.
            for _ in 0..before.len() {
                match before.get(&heir) {
                    Some(parent) if heir != self.root && !lives(parent) => heir = parent.parent,
                    _ => break,
                }
                direct = false;
            }
            let heir = if living.contains_key(&heir) { heir } else { self.root };
            let claim = claims.entry(heir).or_default();
            *(if direct { &mut claim.of_children } else { &mut claim.of_descendants }) +=
                gone.own + gone.reaped;
        }

        let mut lost = Ticks::default();
        for heir in deepest_first(&living) {
            let Some(claim) = claims.get(&heir.id.pid).copied() else { continue };
            // A process that was not there before has been credited everything since.
            let earlier = before
                .get(&heir.id.pid)
                .filter(|p| p.id == heir.id)
                .map_or_else(Ticks::default, |p| p.reaped);
            let missing = (claim.of_children + claim.of_descendants).minus(heir.reaped.minus(earlier));
            let perhaps_above = missing.min(claim.of_descendants);
            lost += missing.minus(perhaps_above);
            let above = if living.contains_key(&heir.parent) { heir.parent } else { self.root };
            claims.entry(above).or_default().of_descendants += perhaps_above;
        }
        let at_root = claims.get(&self.root).copied().unwrap_or_default();
        let credited = now.root_reaped.minus(self.last.root_reaped);
        lost + (at_root.of_children + at_root.of_descendants).minus(credited)
    }
}

/// What a living process must have been credited if nothing was lost.
#[derive(Clone, Copy, Default)]
struct Claim {
    /// For children of its own.
    of_children: Ticks,
    /// For processes further down, which may have been adopted further up.
    of_descendants: Ticks,
}

/// The processes ordered so that each stands before its parent.
fn deepest_first<'a>(living: &BTreeMap<u32, &'a ProcessCpu>) -> Vec<&'a ProcessCpu> {
    let depth = |process: &ProcessCpu| {
        let parents = std::iter::successors(Some(process.parent), |pid| living.get(pid).map(|p| p.parent));
        parents.take(living.len() + 1).count()
    };
    let mut ordered: Vec<(usize, &ProcessCpu)> = living.values().map(|p| (depth(p), *p)).collect();
    ordered.sort_by_key(|&(depth, _)| std::cmp::Reverse(depth));
    ordered.into_iter().map(|(_, process)| process).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOT: u32 = 1;

    /// A tree of processes that behaves as wait(2), exit(2) and prctl(2) say: the root, and some
    /// processes below it, adopt orphans; some ignore SIGCHLD.
    #[derive(Clone, Debug)]
    struct Tree {
        processes: Vec<Simulated>,
        root_reaped: Ticks,
        burnt: Ticks,
        next_pid: u32,
    }

    #[derive(Clone, Debug)]
    struct Simulated {
        cpu: ProcessCpu,
        adopts: bool,
        ignores_sigchld: bool,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Fork { parent: usize, adopts: bool, ignores_sigchld: bool },
        Burn { process: usize, user: u64, system: u64 },
        Exit { process: usize },
        Read,
    }

    impl Tree {
        fn new() -> Self {
            Self {
                processes: Vec::new(),
                root_reaped: Ticks::default(),
                burnt: Ticks::default(),
                next_pid: 2,
            }
        }

        fn position(&self, pid: u32) -> Option<usize> {
            self.processes.iter().position(|p| p.cpu.id.pid == pid)
        }

        /// The process meant by a random number; `None` is the root.
        fn pick(&self, number: usize) -> Option<usize> {
            (number % (self.processes.len() + 1)).checked_sub(1)
        }

        fn apply(&mut self, step: &Step) {
            match *step {
                Step::Fork { parent, adopts, ignores_sigchld } => {
                    let parent = self.pick(parent).map_or(ROOT, |p| self.processes[p].cpu.id.pid);
                    let id = ProcessId { pid: self.next_pid, start: u64::from(self.next_pid) };
                    let cpu = ProcessCpu { id, parent, own: Ticks::default(), reaped: Ticks::default() };
                    self.processes.push(Simulated { cpu, adopts, ignores_sigchld });
                    self.next_pid += 1;
                }
                Step::Burn { process, user, system } => {
                    let Some(process) = self.pick(process) else { return };
                    self.processes[process].cpu.own += Ticks { user, system };
                    self.burnt += Ticks { user, system };
                }
                Step::Exit { process } => {
                    if let Some(process) = self.pick(process) {
                        self.exit(process);
                    }
                }
                Step::Read => {}
            }
        }

        fn exit(&mut self, process: usize) {
            let gone = self.processes[process].cpu;
            let mut adopter = gone.parent;
            while let Some(above) = self.position(adopter).filter(|&p| !self.processes[p].adopts) {
                adopter = self.processes[above].cpu.parent;
            }
            for orphan in self.processes.iter_mut().filter(|p| p.cpu.parent == gone.id.pid) {
                orphan.cpu.parent = adopter;
            }
            match self.position(gone.parent) {
                None => self.root_reaped += gone.own + gone.reaped,
                Some(parent) if self.processes[parent].ignores_sigchld => {}
                Some(parent) => self.processes[parent].cpu.reaped += gone.own + gone.reaped,
            }
            self.processes.remove(process);
        }

        fn reading(&self) -> Reading {
            Reading {
                root_reaped: self.root_reaped,
                processes: self.processes.iter().map(|p| p.cpu).collect(),
            }
        }
    }

    fn total(ledger: &mut Ledger, reading: Reading) -> Ticks {
        let below = reading.processes.iter().fold(reading.root_reaped, |sum, p| sum + p.own + p.reaped);
        below + ledger.enter(reading)
    }

    fn steps(ignoring: bool) -> impl Strategy<Value = Vec<Step>> {
        let number = || 0usize..64;
        let fork = (number(), any::<bool>(), any::<bool>()).prop_map(move |(parent, adopts, ignores)| {
            Step::Fork { parent, adopts, ignores_sigchld: ignoring && ignores }
        });
        let burn = (number(), 0u64..50, 0u64..50).prop_map(|(process, user, system)| Step::Burn {
            process,
            user,
            system,
        });
        let exit = number().prop_map(|process| Step::Exit { process });
        proptest::collection::vec(prop_oneof![3 => fork, 4 => burn, 3 => exit, 2 => Just(Step::Read)], 0..80)
    }

    proptest! {
        #[test]
        fn all_time_is_counted_once_when_everybody_waits(steps in steps(false)) {
            let (mut tree, mut ledger) = (Tree::new(), Ledger::new(ROOT));
            for step in &steps {
                tree.apply(step);
                if matches!(step, Step::Read) {
                    prop_assert_eq!(total(&mut ledger, tree.reading()), tree.burnt);
                }
            }
        }

        #[test]
        fn the_total_never_falls_and_never_exceeds_what_was_used(steps in steps(true)) {
            let (mut tree, mut ledger) = (Tree::new(), Ledger::new(ROOT));
            let mut last = Ticks::default();
            for step in &steps {
                tree.apply(step);
                if matches!(step, Step::Read) {
                    let now = total(&mut ledger, tree.reading());
                    prop_assert_eq!(last.minus(now), Ticks::default());
                    prop_assert_eq!(now.minus(tree.burnt), Ticks::default());
                    last = now;
                }
            }
        }

        #[test]
        fn nothing_is_lost_of_what_was_seen_when_each_step_is_read(steps in steps(true)) {
            let (mut tree, mut ledger) = (Tree::new(), Ledger::new(ROOT));
            for step in &steps {
                tree.apply(step);
                prop_assert_eq!(total(&mut ledger, tree.reading()), tree.burnt);
            }
        }
    }

    #[test]
    fn a_child_of_a_parent_that_ignores_sigchld_keeps_what_was_last_seen() {
        let (mut tree, mut ledger) = (Tree::new(), Ledger::new(ROOT));
        tree.apply(&Step::Fork { parent: 0, adopts: false, ignores_sigchld: true });
        tree.apply(&Step::Fork { parent: 1, adopts: false, ignores_sigchld: false });
        tree.apply(&Step::Burn { process: 2, user: 40, system: 2 });
        assert_eq!(total(&mut ledger, tree.reading()), Ticks { user: 40, system: 2 });
        tree.apply(&Step::Burn { process: 2, user: 5, system: 0 });
        tree.apply(&Step::Exit { process: 2 });
        // The five ticks after the last reading are gone with it.
        assert_eq!(total(&mut ledger, tree.reading()), Ticks { user: 40, system: 2 });
    }

    #[test]
    fn a_reused_process_id_is_another_process() {
        let mut ledger = Ledger::new(ROOT);
        let process = |start, user| ProcessCpu {
            id: ProcessId { pid: 9, start },
            parent: ROOT,
            own: Ticks { user, system: 0 },
            reaped: Ticks::default(),
        };
        let first = Reading { root_reaped: Ticks::default(), processes: vec![process(1, 30)] };
        assert_eq!(total(&mut ledger, first).user, 30);
        let root_reaped = Ticks { user: 30, system: 0 };
        let second = Reading { root_reaped, processes: vec![process(2, 4)] };
        assert_eq!(total(&mut ledger, second).user, 34);
    }
}
