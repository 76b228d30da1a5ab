//! Owns the moments all workers share: they meet here before load begins and before the window
//! opens, and are told the edges. Between these moments workers share nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::uring::Waker;
use crate::time::Instant;

/// When load begins and the window opens and closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edges {
    /// Load begins.
    pub begins: Instant,
    /// The window opens; with a count after a warm-up, when the warm-up ends.
    pub opens: Instant,
    /// The window closes; `None` when a count ends it.
    pub closes: Option<Instant>,
}

/// What a worker says when its connections had their first attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// Connections that are up.
    pub up: u32,
    /// Connections that are not.
    pub down: u32,
}

#[derive(Debug, Default)]
struct State {
    arrivals: [Vec<Arrival>; 2],
    released: [Option<Option<Edges>>; 2],
    wakers: Vec<Waker>,
}

/// The two meetings: connected, and warm-up over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// Every connection was tried.
    Connected = 0,
    /// Nothing is in flight after the warm-up of a counted run.
    Quiet = 1,
}

/// The gate of one run.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

impl Gate {
    /// A gate with nobody waiting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run early: workers close their windows as soon as they notice, which waking makes
    /// at once.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        for waker in &self.lock().wakers {
            waker.wake();
        }
    }

    /// True once [`Gate::stop`] was called.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// A worker can be woken through `waker`.
    pub fn register(&self, waker: Waker) {
        self.lock().wakers.push(waker);
    }

    /// A worker arrives and waits for the edges; `None` means the run is not to begin.
    pub fn arrive(&self, meeting: Meeting, arrival: Arrival) -> Option<Edges> {
        let mut state = self.lock();
        state.arrivals[meeting as usize].push(arrival);
        self.changed.notify_all();
        loop {
            if let Some(edges) = state.released[meeting as usize] {
                return edges;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `workers` have arrived and returns the sum of what they said.
    pub fn await_arrivals(&self, meeting: Meeting, workers: usize) -> Arrival {
        let mut state = self.lock();
        while state.arrivals[meeting as usize].len() < workers {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.arrivals[meeting as usize]
            .iter()
            .fold(Arrival::default(), |sum, a| Arrival { up: sum.up + a.up, down: sum.down + a.down })
    }

    /// Lets the workers of a meeting go.
    pub fn release(&self, meeting: Meeting, edges: Option<Edges>) {
        self.lock().released[meeting as usize] = Some(edges);
        self.changed.notify_all();
    }

    /// A worker cannot go on: the others end as well, wherever they are.
    pub fn abort(&self) {
        self.stop();
        let mut state = self.lock();
        for released in &mut state.released {
            released.get_or_insert(None);
        }
        for arrivals in &mut state.arrivals {
            arrivals.push(Arrival::default());
        }
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
