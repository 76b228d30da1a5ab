//! Owns the event loop, once for all protocols: a thread, a ring, its connections and its record.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::Ipv4Addr;

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};

use super::batch::Batcher;
use super::client::{Client, Job, Step, Transmit, fault};
use super::gate::{Arrival, Edges, Gate, Meeting};
use super::pacing::Pace;
use super::plan::Quic;
use super::quic::{Births, Datagrams, QuicTotals};
use super::record::{Fault, Record, Stage};
use super::uring::{Completion, Features, ImageId, Op, Ring, Token};
use crate::clock;
use crate::results::Phase;
use crate::time::{Instant, Span};

/// What one worker is to do.
#[derive(Debug)]
pub struct Assignment {
    /// Its connections.
    pub connections: u32,
    /// Requests of its window; `None`: as many as the window's length allows.
    pub budget: Option<u64>,
    /// Longest wait for answers after the window.
    pub drain: Span,
    /// Longest wait for one response; zero: none.
    pub timeout: Span,
    /// Longest wait for one connection, TLS included.
    pub connect_timeout: Span,
    /// False: a connection for each request, which begins with it.
    pub keepalive: bool,
    /// Connections are replaced after so many requests as the plan says: opening one in place of another is
    /// no sign of trouble, and the time to its first response is measured.
    pub replaces: bool,
    /// Poll the ring instead of sleeping while requests are in flight.
    pub poll: bool,
    /// With `poll`: sleep after so long without an answer; `None`: never.
    pub poll_limit: Option<Span>,
    /// Completions to hold out for when sleeping; 0: decided by load.
    pub batch: u32,
    /// Source addresses to spread connections over; empty: the kernel's choice.
    pub sources: Vec<Ipv4Addr>,
    /// What connections of datagrams need; `None`: they are of bytes.
    pub quic: Option<Quic>,
}

/// CPU used by the worker's thread, and time it spent polling, so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// User time.
    pub user: Span,
    /// System time.
    pub system: Span,
    /// Time polled in vain.
    pub polling: Span,
}

/// What a worker brings back.
#[derive(Debug)]
pub struct Outcome {
    /// Counts and latencies.
    pub record: Record,
    /// The window as this worker saw it; `None` when it never opened.
    pub window: Option<(Instant, Instant)>,
    /// How late this worker noticed the closing edge.
    pub late: Span,
    /// Usage inside it.
    pub usage: Usage,
    /// Connection attempts.
    pub attempted: u64,
    /// Connections established.
    pub opened: u64,
    /// Of these: replacements.
    pub reopened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Most connections established at one time.
    pub peak: u64,
    /// Connections with a request older than a second when the window closed.
    pub stalled: u64,
    /// Kernel features in use.
    pub features: Features,
    /// What QUIC counted in the window.
    pub quic: Option<QuicTotals>,
}

/// The state of one slot's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// None, and none wanted.
    Down,
    /// None until the back-off is over.
    Waiting,
    /// Connecting, TLS included.
    Connecting,
    /// Ready for requests.
    Up,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) client: Client,
    pub(super) generation: u32,
    pub(super) link: Link,
    pub(super) receiving: bool,
    /// It stands in [`Worker::touched`].
    touched: bool,
    was_up: bool,
    tried: bool,
    /// The time to its first ok response is still to be measured.
    unanswered: bool,
    /// Failures since the last answered request.
    pub(super) failures: u32,
    begun: Instant,
    /// The earliest entry of [`Worker::timers`] for it.
    pub(super) timer: Option<Instant>,
}

impl Slot {
    /// Takes the time to the connection's first ok response if that is what happened since there were `ok`.
    #[inline]
    pub(super) fn note_first_response(&mut self, record: &mut Record, ok: u64, now: Instant) {
        if self.unanswered && record.now().requests.ok > ok {
            self.unanswered = false;
            record.first_response(self.begun, now);
        }
    }
}

/// A worker: made on its thread, run to its end.
pub struct Worker<'a> {
    pub(super) ring: Ring,
    image: ImageId,
    quiet: bool,
    pub(super) job: Job,
    assignment: Assignment,
    gate: &'a Gate,
    pub(super) slots: Vec<Slot>,
    pub(super) record: Record,
    pace: Pace,
    batcher: Batcher,
    /// Slots whose request goes out with the next submission.
    begun: Vec<u32>,
    /// Slots on which something happened since the last submission.
    touched: Vec<u32>,
    completions: Vec<Completion>,
    retries: BinaryHeap<Reverse<(Instant, u32)>>,
    /// When connections have something to do of themselves; entries may be out of date.
    pub(super) timers: BinaryHeap<Reverse<(Instant, u32)>>,
    pub(super) datagrams: Option<Datagrams>,
    births: Births,
    next_scan: Instant,
    connecting: u32,
    up: u64,
    polling: Span,
    pub(super) now: Instant,
    /// Responses when the last wait began.
    answers: u64,
    outcome: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    attempted: u64,
    opened: u64,
    reopened: u64,
    failed: u64,
    peak: u64,
}

impl<'a> Worker<'a> {
    /// A worker with nothing connected.
    ///
    /// # Errors
    /// A fault when TLS cannot begin at all.
    pub fn new(mut ring: Ring, job: Job, assignment: Assignment, gate: &'a Gate) -> Result<Self, Fault> {
        let image = ring.add_image(job.request.image());
        let quiet = job.request.image().len() <= QUIET_SEND;
        let batcher = Batcher::new(assignment.batch);
        let mut births = Births::new();
        let datagrams = assignment.quic.as_ref().map(|quic| Datagrams::new(quic, assignment.connections));
        let slots = (0..assignment.connections)
            .map(|index| {
                Ok(Slot {
                    client: Client::new(&job, births.next(clock::now(), index, 0))?,
                    generation: 0,
                    link: Link::Down,
                    receiving: false,
                    touched: false,
                    was_up: false,
                    tried: false,
                    unanswered: false,
                    failures: 0,
                    begun: Instant::default(),
                    timer: None,
                })
            })
            .collect::<Result<Vec<_>, Fault>>()?;
        gate.register(ring.waker());
        let mut record = Record::new();
        record.sample = job.sample.then(Box::default);
        Ok(Self {
            ring,
            image,
            quiet,
            job,
            assignment,
            gate,
            slots,
            record,
            pace: Pace::default(),
            batcher,
            begun: Vec::new(),
            touched: Vec::new(),
            completions: Vec::new(),
            retries: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            datagrams,
            births,
            next_scan: Instant::default(),
            connecting: 0,
            up: 0,
            polling: Span::ZERO,
            now: clock::now(),
            answers: 0,
            outcome: Counters::default(),
        })
    }

    /// Connects, loads, measures, drains.
    ///
    /// # Errors
    /// When the kernel refuses to go on.
    pub fn run(mut self) -> io::Result<Outcome> {
        self.open_shared()?;
        let connected = self.connect_all();
        // Workers that failed arrive as well: the others wait for them.
        let up = self.slots.iter().filter(|slot| slot.link == Link::Up).count() as u32;
        let down = self.slots.len() as u32 - up;
        let edges = self.gate.arrive(Meeting::Connected, Arrival { up, down });
        connected?;
        let Some(edges) = edges else {
            self.record.finish(None);
            return Ok(self.finish(None, Usage::default(), 0));
        };
        self.now = clock::now();
        let opened = self.reach_window(edges)?;
        let Some(opened) = opened else {
            // Stopped while it warmed up: what was asked is still answered and counted.
            self.pace.hold();
            self.finish_batch()?;
            self.drain()?;
            self.record.finish(self.oldest());
            return Ok(self.finish(None, Usage::default(), 0));
        };
        let before = self.usage();
        let quic_before = self.quic_totals();
        self.record.open_window(opened);
        for limit in self.slots.iter().filter_map(|slot| slot.client.limit()) {
            self.record.limit(limit);
        }
        self.pace.go(self.assignment.budget);
        // What the turn that met the edge has taken belongs to the window. Left for later, a single
        // connection would sleep until the window's end for an answer that is already here.
        self.finish_batch()?;
        self.kick()?;
        while !self.window_over(edges.closes) {
            self.turn(edges.closes)?;
            if edges.closes.is_some_and(|closes| self.now >= closes) {
                // What was taken after the edge belongs to the drain.
                break;
            }
            self.record.tick(self.now);
            self.record.waits += u64::from(!self.completions.is_empty());
            self.finish_batch()?;
        }
        let closed = edges.closes.filter(|closes| *closes <= self.now).unwrap_or(self.now);
        let late = self.now.since(closed);
        self.pace.hold();
        self.record.close_window(self.oldest_at(closed));
        let usage = self.usage().since(before);
        let quic = self.quic_totals().zip(quic_before).map(|(after, before)| after.since(&before));
        let stalled = self.stalled(closed);
        self.finish_batch()?;
        self.drain()?;
        self.record.finish(self.oldest());
        let mut outcome = self.finish(Some((opened, closed)), usage, stalled);
        outcome.late = late;
        outcome.quic = quic;
        Ok(outcome)
    }

    /// Connects every slot, a bounded number at a time so that accept queues do not overflow; returns
    /// when each has succeeded or failed once. With a connection for each request there is nothing to
    /// connect ahead.
    fn connect_all(&mut self) -> io::Result<()> {
        if !self.assignment.keepalive {
            return Ok(());
        }
        let mut next = 0;
        loop {
            while next < self.slots.len() as u32 && self.connecting < RAMP {
                self.connect(next)?;
                next += 1;
            }
            let done = next == self.slots.len() as u32 && self.slots.iter().all(|slot| slot.tried);
            if done || self.gate.stopped() {
                return Ok(());
            }
            self.turn(None)?;
            self.finish_batch()?;
        }
    }

    /// Runs up to the opening edge, through the warm-up where there is one; returns when the window
    /// opened, `None` when the run was stopped before.
    fn reach_window(&mut self, edges: Edges) -> io::Result<Option<Instant>> {
        let warm = edges.begins < edges.opens;
        self.idle_until(edges.begins)?;
        if warm {
            self.pace.go(None);
            self.kick()?;
            while self.now < edges.opens && !self.gate.stopped() {
                self.turn(Some(edges.opens))?;
                if self.now < edges.opens {
                    self.finish_batch()?;
                }
            }
        }
        if warm && self.assignment.budget.is_some() {
            // A count is of requests begun inside the window, so nothing may be carried into it.
            self.pace.hold();
            self.finish_batch()?;
            self.drain()?;
            let at = self.gate.arrive(Meeting::Quiet, Arrival::default());
            self.now = clock::now();
            let Some(edges) = at else { return Ok(None) };
            self.idle_until(edges.opens)?;
            return Ok((!self.gate.stopped()).then_some(edges.opens));
        }
        Ok((!self.gate.stopped() || self.now >= edges.opens).then_some(edges.opens))
    }

    fn idle_until(&mut self, instant: Instant) -> io::Result<()> {
        while self.now < instant && !self.gate.stopped() {
            self.turn(Some(instant))?;
            self.finish_batch()?;
        }
        Ok(())
    }

    fn window_over(&self, closes: Option<Instant>) -> bool {
        let counted_out =
            self.assignment.budget.is_some() && self.pace.exhausted() && self.record.in_flight == 0;
        counted_out
            || self.hopeless()
            || closes.is_some_and(|closes| self.now >= closes)
            || self.gate.stopped()
    }

    /// A counted window has no other end when the server is gone for good.
    fn hopeless(&self) -> bool {
        self.assignment.budget.is_some()
            && self.up == 0
            && self.slots.iter().all(|slot| slot.link == Link::Waiting && slot.failures >= HOPELESS_FAILURES)
    }

    fn drain(&mut self) -> io::Result<()> {
        let deadline = self.now + self.assignment.drain;
        while self.record.in_flight > 0 && self.now < deadline {
            self.turn(Some(deadline))?;
            self.finish_batch()?;
        }
        Ok(())
    }

    fn finish(mut self, window: Option<(Instant, Instant)>, usage: Usage, stalled: u64) -> Outcome {
        let Counters { attempted, opened, reopened, failed, peak } = self.outcome;
        self.part();
        let features = self.ring.features();
        if self.record.negotiated.is_none() {
            self.record.negotiated = self.slots.iter().find_map(|slot| slot.client.negotiated());
        }
        self.keep_head(0);
        Outcome {
            record: self.record,
            window,
            late: Span::ZERO,
            usage,
            attempted,
            opened,
            reopened,
            failed,
            peak,
            stalled,
            features,
            quic: None,
        }
    }

    /// Sends what is to be sent, waits for completions, and takes them; they are handled by
    /// [`Worker::finish_batch`], after the caller looked at the clock.
    fn turn(&mut self, edge: Option<Instant>) -> io::Result<()> {
        let sent = clock::now();
        for slot in self.begun.drain(..) {
            self.slots[slot as usize].client.stamp(sent);
        }
        if self.assignment.poll && self.record.in_flight > 0 {
            self.poll(sent, edge)?;
        } else {
            self.sleep(sent, edge)?;
        }
        self.ring.reap(&mut self.completions);
        self.now = clock::now();
        let answers = self.record.answers - std::mem::replace(&mut self.answers, self.record.answers);
        self.batcher.observe(self.now, answers, self.record.in_flight);
        Ok(())
    }

    fn sleep(&mut self, now: Instant, edge: Option<Instant>) -> io::Result<()> {
        let until = self.next_deadline(edge);
        let timeout = until.map(|until| until.since(now));
        let (want, linger) = self.batch();
        // Nothing is held past an edge.
        let linger = timeout.map_or(linger, |timeout| linger.min(timeout));
        self.ring.enter(want, linger, timeout)
    }

    fn batch(&self) -> (u32, Span) {
        if self.record.in_flight == 0 || !self.ring.features().min_timeout {
            return (1, Span::ZERO);
        }
        self.batcher.hold(self.record.in_flight, self.slots.len() as u64, self.record.mean_latency())
    }

    fn poll(&mut self, sent: Instant, edge: Option<Instant>) -> io::Result<()> {
        self.ring.enter(0, Span::ZERO, None)?;
        if self.ring.has_completions() {
            return Ok(());
        }
        let mut looked = clock::now();
        let until = self.next_deadline(edge);
        let tired = self.assignment.poll_limit.map(|limit| sent + limit);
        while !self.spin() {
            let now = clock::now();
            self.polled(looked, now);
            looked = now;
            if until.is_some_and(|until| now >= until) || self.gate.stopped() {
                break;
            }
            if tired.is_some_and(|tired| now >= tired) {
                return self.sleep(now, edge);
            }
        }
        self.polled(looked, clock::now());
        self.ring.enter(0, Span::ZERO, None)
    }

    /// Counts one look at the ring as time polled. A look takes about a microsecond; one that took
    /// far longer was preempted, and then another thread had the CPU.
    #[inline]
    fn polled(&mut self, from: Instant, to: Instant) {
        self.polling = self.polling + to.since(from).min(LOOK_MAX);
    }

    /// Looks at the ring for about a microsecond; true when something is there.
    #[inline]
    fn spin(&mut self) -> bool {
        (0..SPINS_PER_CLOCK).any(|_| {
            std::hint::spin_loop();
            self.ring.ready()
        })
    }

    fn next_deadline(&self, edge: Option<Instant>) -> Option<Instant> {
        let retry = self.retries.peek().map(|Reverse((at, _))| *at);
        let scan = self.scan_interval().map(|_| self.next_scan);
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        [edge, retry, scan, timer].into_iter().flatten().min()
    }

    /// How often deadlines are looked at; `None` when there are none.
    fn scan_interval(&self) -> Option<Span> {
        // Stalls are looked for whether or not there is a timeout.
        let timeout = if self.assignment.timeout.is_zero() { STALL_SCAN } else { self.assignment.timeout };
        let barred = self.up > 0 && !self.pace.exhausted();
        let request = Some(timeout.min(STALL_SCAN)).filter(|_| self.record.in_flight > 0 || barred);
        let connect = Some(self.assignment.connect_timeout).filter(|_| self.connecting > 0);
        let shortest = request.into_iter().chain(connect).min()?;
        Some(Span::from_nanos((shortest.as_nanos() / 16).clamp(1_000_000, 100_000_000)))
    }

    /// Handles the completions taken, then what time has brought.
    fn finish_batch(&mut self) -> io::Result<()> {
        let mut completions = std::mem::take(&mut self.completions);
        for completion in &completions {
            self.handle(completion)?;
        }
        completions.clear();
        self.completions = completions;
        if let Some(interval) = self.scan_interval()
            && self.now >= self.next_scan
        {
            self.next_scan = self.now + interval;
            self.expire()?;
        }
        self.run_timers()?;
        while let Some(Reverse((at, slot))) = self.retries.peek().copied() {
            if at > self.now {
                break;
            }
            self.retries.pop();
            if self.slots[slot as usize].link == Link::Waiting {
                self.connect_or_wait(slot)?;
            }
        }
        self.send_all()
    }

    /// Begins and sends what can be on every connection that was touched.
    #[inline]
    fn send_all(&mut self) -> io::Result<()> {
        let mut touched = std::mem::take(&mut self.touched);
        for index in touched.drain(..) {
            self.slots[index as usize].touched = false;
            self.fill(index);
            self.transmit(index)?;
        }
        self.touched = touched;
        Ok(())
    }

    #[inline]
    fn handle(&mut self, completion: &Completion) -> io::Result<()> {
        let token = completion.token;
        let current = token.op == Op::Wake
            || self.slots.get(token.slot as usize).is_some_and(|slot| slot.generation == token.generation);
        match token.op {
            Op::Recv => {
                if current {
                    self.on_recv(completion)?;
                }
                if let Some(buffer) = completion.buffer {
                    self.ring.recycle(buffer);
                }
                Ok(())
            }
            Op::Connect if current => self.on_connect(completion),
            Op::SendImage if current => self.on_sent_image(token, completion.result),
            Op::Send => {
                let current_generation = self.slots[token.slot as usize].generation;
                let spare = self.ring.take_sent(token, current_generation);
                if current { self.on_sent(token, completion.result, spare) } else { Ok(()) }
            }
            Op::RecvDatagrams => {
                self.on_datagrams(completion)?;
                if let Some(buffer) = completion.buffer {
                    self.ring.recycle(buffer);
                }
                Ok(())
            }
            Op::SendDatagrams => self.on_unsent(completion, current),
            Op::SendNow if current => self.on_sent_short(token, completion.result),
            _ => Ok(()),
        }
    }

    #[inline]
    fn on_recv(&mut self, completion: &Completion) -> io::Result<()> {
        let index = completion.token.slot;
        let slot = &mut self.slots[index as usize];
        slot.receiving = completion.more;
        let ok = self.record.now().requests.ok;
        let step = match completion.result {
            1.. => {
                let input = self.ring.received(completion);
                self.record.now().received += input.len() as u64;
                slot.client.received(&mut self.job, &mut self.record, self.now, input)
            }
            0 => slot.client.closed(&self.job, &mut self.record, self.now),
            // The buffers were all in use; they come back with this batch.
            errno if errno == -(Errno::ENOBUFS as i32) => Step::Going,
            errno => Step::Failed(errno_fault(Phase::Read, errno)),
        };
        slot.note_first_response(&mut self.record, ok, self.now);
        self.after(index, step)?;
        let slot = &mut self.slots[index as usize];
        if !completion.more && slot.generation == completion.token.generation && slot.link != Link::Down {
            slot.receiving = true;
            self.ring.recv(index, completion.token.generation)?;
        }
        Ok(())
    }

    fn on_connect(&mut self, completion: &Completion) -> io::Result<()> {
        let Token { slot: index, generation, .. } = completion.token;
        if completion.result < 0 {
            let fault = if completion.result == -(Errno::ECANCELED as i32) {
                fault(Phase::Connect, "timeout", "no connection within the connect timeout")
            } else {
                errno_fault(Phase::Connect, completion.result)
            };
            return self.after(index, Step::Failed(fault));
        }
        let slot = &mut self.slots[index as usize];
        let step = slot.client.connected(&self.job, self.now);
        slot.receiving = true;
        self.ring.recv(index, generation)?;
        self.after(index, step)
    }

    fn on_sent_image(&mut self, token: Token, result: i32) -> io::Result<()> {
        if result < 0 {
            return self.after(token.slot, Step::Failed(errno_fault(Phase::Write, result)));
        }
        self.record.now().sent += result as u64;
        self.slots[token.slot as usize].client.sent(result as usize, None);
        self.touch(token.slot);
        Ok(())
    }

    fn on_sent(&mut self, token: Token, result: i32, spare: Option<Vec<u8>>) -> io::Result<()> {
        if result < 0 {
            return self.after(token.slot, Step::Failed(errno_fault(Phase::Write, result)));
        }
        let mut spare = spare.unwrap_or_default();
        self.record.now().sent += result as u64;
        let sent = result as usize;
        if sent < spare.len() {
            spare.drain(..sent);
            return self.ring.send(token.slot, token.generation, spare);
        }
        self.slots[token.slot as usize].client.sent(sent, Some(spare));
        self.touch(token.slot);
        Ok(())
    }

    /// A send that was to be done at once was not: the rest goes the slower way.
    #[cold]
    fn on_sent_short(&mut self, token: Token, result: i32) -> io::Result<()> {
        if result < 0 && result != -(Errno::EAGAIN as i32) {
            return self.after(token.slot, Step::Failed(errno_fault(Phase::Write, result)));
        }
        let sent = usize::try_from(result).unwrap_or(0);
        let rest = self.ring.unsent(token.slot, sent);
        self.record.now().sent = self.record.now().sent.saturating_sub(rest.len() as u64);
        self.slots[token.slot as usize].client.resume_sending();
        self.ring.send(token.slot, token.generation, rest)
    }

    /// Acts on what a call to a client did.
    #[inline]
    pub(super) fn after(&mut self, index: u32, step: Step) -> io::Result<()> {
        match step {
            Step::Going => self.touch(index),
            Step::Established => {
                self.established(index);
                self.touch(index);
            }
            Step::Finished => self.replace(index, None)?,
            Step::Failed(fault) => self.replace(index, Some(fault))?,
        }
        Ok(())
    }

    /// Something happened on a connection: once the completions at hand are all handled it may have
    /// requests to begin and bytes to send. What came in several receptions is answered by one send.
    #[inline]
    fn touch(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !std::mem::replace(&mut slot.touched, true) {
            self.touched.push(index);
        }
    }

    /// Begins as many requests on a connection as it has room for and the pace allows.
    #[inline]
    fn fill(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let mut begun = false;
        while slot.client.room() > 0 {
            if slot.client.has_replays() {
                slot.client.begin_again(&self.job);
                self.record.replayed();
            } else if self.assignment.keepalive && self.pace.take() {
                slot.client.begin(&self.job, self.now);
                self.record.started();
            } else {
                break;
            }
            begun = true;
        }
        if begun {
            self.begun.push(index);
        }
    }

    #[inline]
    fn transmit(&mut self, index: u32) -> io::Result<()> {
        if self.datagrams.is_some() {
            return self.transmit_datagrams(index);
        }
        let slot = &mut self.slots[index as usize];
        while let Some(transmit) = slot.client.transmit(&self.job) {
            match transmit {
                Transmit::Request(from) => {
                    let all = self.job.request.image().len();
                    self.ring.send_image(index, slot.generation, self.image, from..all, self.quiet)?;
                    if self.quiet {
                        // A request this short fits an idle connection's send buffer, so only a
                        // failure is worth a completion.
                        self.record.now().sent += (all - from) as u64;
                        slot.client.sent(all - from, None);
                        return Ok(());
                    }
                }
                Transmit::Bytes(bytes) if bytes.len() <= QUIET_SEND => {
                    let len = bytes.len();
                    self.record.now().sent += len as u64;
                    let spare = self.ring.send_now(index, slot.generation, bytes)?;
                    slot.client.sent(len, Some(spare));
                    // A client with more to send gives more at a time.
                    return Ok(());
                }
                Transmit::Bytes(bytes) => self.ring.send(index, slot.generation, bytes)?,
            }
        }
        Ok(())
    }

    pub(super) fn established(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.link = Link::Up;
        slot.tried = true;
        self.connecting -= 1;
        self.up += 1;
        self.outcome.opened += 1;
        if slot.was_up && !self.assignment.replaces {
            self.outcome.reopened += 1;
            self.record.reopened();
        }
        self.outcome.peak = self.outcome.peak.max(self.up);
        slot.was_up = true;
        // Of short connections those of the warm-up are others than the window's: they had no tickets.
        if !self.assignment.replaces || self.record.stage() == Stage::Window {
            self.record.connected(self.now.since(slot.begun));
        }
    }

    /// Ends the connection of a slot and begins the next one, at once or after a back-off.
    #[cold]
    pub(super) fn replace(&mut self, index: u32, failed: Option<Fault>) -> io::Result<()> {
        self.keep_head(index);
        let slot = &mut self.slots[index as usize];
        if self.record.negotiated.is_none() {
            self.record.negotiated = slot.client.negotiated();
        }
        if self.datagrams.is_some() {
            self.leave(index)?;
        } else if failed.is_some() && slot.link != Link::Down {
            self.say_why(index)?;
        }
        let slot = &mut self.slots[index as usize];
        let in_flight = u64::from(slot.client.in_flight());
        match slot.link {
            Link::Connecting => {
                self.connecting -= 1;
                self.outcome.failed += u64::from(failed.is_some());
            }
            Link::Up => self.up -= 1,
            Link::Down | Link::Waiting => (),
        }
        slot.tried = true;
        match &failed {
            Some(fault) => {
                slot.failures = if slot.client.served() { 1 } else { slot.failures + 1 };
                self.record.failed(fault, in_flight);
            }
            // A connection that ends without having served is no better than one that fails.
            None => slot.failures = if slot.client.served() { 0 } else { slot.failures + 1 },
        }
        let (generation, receiving) = (slot.generation, slot.receiving);
        slot.generation = (generation + 1) & 0xff_ffff;
        slot.receiving = false;
        slot.link = Link::Down;
        let birth = self.births.next(self.now, index, slot.generation);
        slot.client =
            slot.client.successor(&self.job, birth).map_err(|fault| io::Error::other(fault.text))?;
        slot.timer = None;
        if self.datagrams.is_none() {
            self.ring.release(index, generation, receiving)?;
        } else if receiving {
            self.ring.release_datagrams(index, generation)?;
        }
        self.begun.retain(|begun| *begun != index);
        self.reconnect(index)
    }

    /// The head of a sampled response is asked of its connection before that is gone.
    fn keep_head(&mut self, index: u32) {
        if let Some(sample) = &mut self.record.sample
            && sample.head.is_none()
            && self.record.answers > 0
        {
            sample.head = self.slots[index as usize].client.head(&self.job);
        }
    }

    /// Sends the alert or GOAWAY that a failed connection still has to say, if its socket takes it now.
    fn say_why(&mut self, index: u32) -> io::Result<()> {
        let slot = &mut self.slots[index as usize];
        if let Some(Transmit::Bytes(bytes)) = slot.client.transmit(&self.job) {
            self.record.now().sent += bytes.len() as u64;
            self.ring.send_now(index, slot.generation, bytes)?;
            // The slot's next connection must not get it.
            self.ring.enter(0, Span::ZERO, None)?;
        }
        Ok(())
    }

    fn reconnect(&mut self, index: u32) -> io::Result<()> {
        let slot = &mut self.slots[index as usize];
        // The first failure of a connection that served is not yet a pattern.
        let Some(doublings) = slot.failures.checked_sub(1 + u32::from(slot.was_up)) else {
            return self.connect_or_wait(index);
        };
        let backoff = Span::from_millis(BACKOFF_MS << doublings.min(BACKOFF_DOUBLINGS));
        slot.link = Link::Waiting;
        self.close(index)?;
        self.retries.push(Reverse((self.now + backoff, index)));
        Ok(())
    }

    fn connect_or_wait(&mut self, index: u32) -> io::Result<()> {
        // After the window nothing new is begun, nor is a connection that would have nothing to carry.
        let replays = self.slots[index as usize].client.has_replays();
        let needless = self.assignment.replaces && self.pace.exhausted();
        if (self.record.stage() == Stage::Drain || needless) && !replays {
            self.slots[index as usize].link = Link::Down;
            return self.close(index);
        }
        self.connect(index)
    }

    fn connect(&mut self, index: u32) -> io::Result<()> {
        let slot = &mut self.slots[index as usize];
        if !self.assignment.keepalive {
            // The request begins with its connection, and its latency with it.
            if slot.client.has_replays() {
                slot.client.begin_again(&self.job);
                self.record.replayed();
            } else if self.pace.take() {
                slot.client.begin(&self.job, self.now);
                self.record.started();
            } else {
                slot.link = Link::Down;
                return self.close(index);
            }
        }
        slot.begun = self.now;
        slot.unanswered = self.assignment.replaces;
        slot.link = Link::Connecting;
        self.connecting += 1;
        self.outcome.attempted += 1;
        if self.datagrams.is_some() {
            return self.connect_datagrams(index);
        }
        let sources = &self.assignment.sources;
        // Binding costs two system calls, so it is left out while ports cannot have run short.
        let source = match self.outcome.attempted {
            ..UNBOUND_CONNECTS => None,
            count => sources.get((count % sources.len().max(1) as u64) as usize).copied(),
        };
        match self.ring.connect(index, slot.generation, 0, source) {
            Ok(()) => Ok(()),
            Err(error) => {
                let fault = errno_fault(Phase::Connect, -error.raw_os_error().unwrap_or(0));
                // No socket could be made: the failure counts twice, so that the next try waits.
                self.slots[index as usize].failures += 1;
                self.replace(index, Some(fault))
            }
        }
    }

    /// Begins requests on every connection that has room: load begins, or the budget changed.
    fn kick(&mut self) -> io::Result<()> {
        for index in 0..self.slots.len() as u32 {
            match self.slots[index as usize].link {
                Link::Up => {
                    self.fill(index);
                    self.transmit(index)?;
                }
                Link::Down => self.connect_or_wait(index)?,
                Link::Waiting | Link::Connecting => (),
            }
        }
        Ok(())
    }

    /// Fails requests and connections that took too long, and notes those that stand still.
    fn expire(&mut self) -> io::Result<()> {
        let (timeout, connect_timeout) = (self.assignment.timeout, self.assignment.connect_timeout);
        for index in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[index as usize];
            if slot.link == Link::Up
                && let Some(stall) = slot.client.stall(self.now)
            {
                self.record.stalled(stall);
            }
            if slot.link == Link::Up
                && let Some(fault) = slot.client.barred(self.now)
            {
                self.replace(index, Some(fault))?;
                continue;
            }
            if slot.link == Link::Connecting && self.now.since(slot.begun) > connect_timeout {
                let phase = if self.datagrams.is_some() { Phase::Quic } else { Phase::Tls };
                let late = fault(phase, "timeout", "no connection within the connect timeout");
                self.replace(index, Some(late))?;
            } else if !timeout.is_zero()
                && slot.client.waiting_since().is_some_and(|since| self.now.since(since) > timeout)
            {
                let step = slot.client.expire(&self.job, &mut self.record, self.now, timeout);
                self.after(index, step)?;
            }
        }
        Ok(())
    }

    /// Closes the socket of a slot that has one of its own.
    fn close(&mut self, index: u32) -> io::Result<()> {
        if self.datagrams.as_ref().is_some_and(|datagrams| datagrams.shared.is_some()) {
            return Ok(());
        }
        self.ring.close(index)
    }

    fn oldest(&self) -> Option<Span> {
        self.oldest_at(self.now)
    }

    fn oldest_at(&self, at: Instant) -> Option<Span> {
        self.slots.iter().filter_map(|slot| slot.client.waiting_since()).min().map(|since| at.since(since))
    }

    fn stalled(&self, at: Instant) -> u64 {
        let old = |slot: &&Slot| {
            slot.client.waiting_since().is_some_and(|since| at.since(since) > Span::from_secs(1))
        };
        self.slots.iter().filter(old).count() as u64
    }

    fn usage(&self) -> Usage {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Usage::default() };
        let span = |t: nix::sys::time::TimeVal| {
            Span::from_micros(t.tv_sec() as u64 * 1_000_000 + t.tv_usec() as u64)
        };
        Usage { user: span(usage.user_time()), system: span(usage.system_time()), polling: self.polling }
    }
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Usage {
    /// User time that was work.
    pub fn work_user(self) -> Span {
        Span::from_nanos(self.user.as_nanos().saturating_sub(self.polling.as_nanos()))
    }

    fn since(self, earlier: Self) -> Self {
        let less = |a: Span, b: Span| Span::from_nanos(a.as_nanos().saturating_sub(b.as_nanos()));
        Self {
            user: less(self.user, earlier.user),
            system: less(self.system, earlier.system),
            polling: less(self.polling, earlier.polling),
        }
    }
}

pub(super) fn errno_fault(phase: Phase, negated: i32) -> Fault {
    let errno = Errno::from_raw(-negated);
    let text = match errno {
        Errno::EADDRNOTAVAIL => "no ephemeral port is free".into(),
        _ => errno.desc().to_lowercase(),
    };
    Fault { phase, kind: format!("{errno:?}"), text }
}

/// Connections that one worker establishes at the same time before load begins.
const RAMP: u32 = 64;
/// Connections that a worker makes before it spreads further ones over source addresses.
const UNBOUND_CONNECTS: u64 = 10_000;
/// A request of at most so many bytes is sent without a completion.
const QUIET_SEND: usize = 4096;
const SPINS_PER_CLOCK: u32 = 32;
const LOOK_MAX: Span = Span::from_micros(20);
/// The longest time between two looks for connections that stand still, sixteen times over.
const STALL_SCAN: Span = Span::from_secs(1);
const BACKOFF_MS: u64 = 10;
/// 10 ms, doubled up to seven times: 1.28 s.
const BACKOFF_DOUBLINGS: u32 = 7;
/// So many failures in a row of every connection, some two seconds, end a counted window.
const HOPELESS_FAILURES: u32 = 8;
