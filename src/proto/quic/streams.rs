//! Owns the streams of a connection and their flow control (RFC 9000 §2 to §4).
//!
//! A generator sends one and the same image on every bidirectional stream it opens, so a stream keeps no
//! bytes to send but offsets into the image. Streams are kept in a ring in order of opening; those that
//! outlive many younger ones move to a map, so that the ring stays short.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::assembler::Assembler;
use super::frame;
use super::ranges::Ranges;
use super::violation::{Closed, Violation};
use super::{Application, Progress};

/// Something to be sent that is sent again when its packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tracked {
    /// Requests that each went out whole in this packet: so many from this stream number on.
    Requests {
        /// Number of the first stream.
        first: u64,
        /// How many.
        count: u32,
    },
    /// A part of a stream.
    Stream {
        /// Stream.
        id: u64,
        /// Place in it.
        offset: u64,
        /// Bytes.
        len: u32,
        /// They are the last.
        fin: bool,
    },
    /// A part of the handshake.
    Crypto {
        /// Place in it.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// An acknowledgement up to this packet number.
    Ack(u64),
    /// The connection's window.
    MaxData,
    /// A stream's window.
    MaxStreamData(u64),
    /// How many unidirectional streams the peer may open.
    MaxUniStreams,
    /// RESET_STREAM.
    Reset(u64),
    /// STOP_SENDING, with its code.
    Stop(u64, u64),
    /// RETIRE_CONNECTION_ID.
    Retire(u64),
    /// NEW_CONNECTION_ID of this sequence number.
    NewCid(u64),
    /// PING.
    Ping,
}

/// What the peer lets this side send, from its transport parameters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Limits {
    /// initial_max_data.
    pub data: u64,
    /// initial_max_stream_data_bidi_remote.
    pub bidi_data: u64,
    /// initial_max_stream_data_uni.
    pub uni_data: u64,
    /// initial_max_streams_bidi.
    pub bidi: u64,
    /// initial_max_streams_uni.
    pub uni: u64,
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams<S> {
    image: Arc<[u8]>,
    /// Number of the first stream in `ring`.
    base: u64,
    ring: VecDeque<Bidi<S>>,
    /// Streams older than the ring.
    old: BTreeMap<u64, Bidi<S>>,
    /// Number of the first stream of which nothing was sent.
    fresh: u64,
    /// Streams of which a part was sent.
    partial: VecDeque<u64>,
    /// Streams whose application waits for more.
    open: u32,
    outgoing: Vec<Outgoing>,
    incoming: BTreeMap<u64, Recv>,
    /// Unidirectional streams the peer has opened.
    incoming_opened: u64,
    incoming_allowed: u64,
    pub(super) limits: Limits,
    /// Bytes sent, each counted once.
    sent: u64,
    received: Received,
    /// What is to be sent apart from fresh data: control frames and what was lost.
    pub(super) pending: VecDeque<Tracked>,
}

/// Bytes received on all streams.
#[derive(Clone, Copy, Debug)]
struct Received {
    /// The sum of the highest offsets.
    highest: u64,
    /// Bytes that were handed on or dropped.
    read: u64,
    granted: u64,
}

/// A bidirectional stream that this side opened.
#[derive(Debug)]
struct Bidi<S> {
    /// `None` when the application wants no more of it.
    state: Option<S>,
    /// Bytes of the image that were sent.
    sent: u64,
    /// Bytes that may be sent.
    credit: u64,
    acked: Ranges,
    /// All of it was acknowledged, or its reset was.
    send_done: bool,
    reset: Option<u64>,
    recv: Recv,
}

/// A unidirectional stream of this side.
#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: u64,
    credit: u64,
}

/// The receiving part of a stream.
#[derive(Debug)]
struct Recv {
    /// Bytes handed on.
    read: u64,
    /// The highest offset seen.
    highest: u64,
    granted: u64,
    final_size: Option<u64>,
    ahead: Option<Box<Assembler>>,
    done: bool,
}

impl<S> Streams<S> {
    /// No streams; the peer may open `uni` unidirectional ones.
    pub(super) fn new(uni: u64) -> Self {
        Self {
            image: Arc::from([]),
            base: 0,
            ring: VecDeque::new(),
            old: BTreeMap::new(),
            fresh: 0,
            partial: VecDeque::new(),
            open: 0,
            outgoing: Vec::new(),
            incoming: BTreeMap::new(),
            incoming_opened: 0,
            incoming_allowed: uni,
            limits: Limits::default(),
            sent: 0,
            received: Received { highest: 0, read: 0, granted: CONNECTION_WINDOW },
            pending: VecDeque::new(),
        }
    }

    /// The peer's limits are these; what they were in an earlier connection holds no longer.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        let (base, fresh) = (self.base, self.fresh);
        for (at, stream) in self.ring.iter_mut().enumerate() {
            if base + at as u64 >= fresh || stream.credit < limits.bidi_data {
                stream.credit = limits.bidi_data;
            }
        }
        for stream in &mut self.outgoing {
            stream.credit = stream.credit.max(limits.uni_data);
        }
    }

    /// Everything that was sent is to be sent anew: the peer has dropped its early data.
    pub(super) fn rewind(&mut self, limits: Limits) {
        for stream in &mut self.ring {
            stream.sent = 0;
            stream.credit = limits.bidi_data;
        }
        for stream in &mut self.outgoing {
            stream.sent = 0;
            stream.credit = limits.uni_data;
        }
        self.fresh = self.base;
        self.partial.clear();
        self.sent = 0;
        self.limits = limits;
        self.pending.retain(|pending| !matches!(pending, Tracked::Stream { .. } | Tracked::Requests { .. }));
    }

    /// Bidirectional streams that may be opened now.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.limits.bidi.saturating_sub(self.next())
    }

    /// Streams whose application waits for more.
    #[inline]
    pub(super) fn open_count(&self) -> u32 {
        self.open
    }

    #[inline]
    fn next(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// Opens a bidirectional stream.
    #[inline]
    pub(super) fn open(&mut self, state: S, image: &Arc<[u8]>) -> u64 {
        if self.image.len() != image.len() || !Arc::ptr_eq(&self.image, image) {
            debug_assert!(self.next() == 0, "one image for all streams");
            self.image = Arc::clone(image);
        }
        let number = self.next();
        self.ring.push_back(Bidi {
            state: Some(state),
            sent: 0,
            credit: self.limits.bidi_data,
            acked: Ranges::default(),
            send_done: false,
            reset: None,
            recv: Recv::new(),
        });
        self.open += 1;
        if self.ring.len() > RING_SLACK + 2 * self.open as usize {
            self.shorten();
        }
        number << 2
    }

    /// Moves the oldest streams out of the ring.
    #[cold]
    fn shorten(&mut self) {
        while self.ring.len() > RING_SLACK / 2 + 2 * self.open as usize && self.base < self.fresh {
            if let Some(stream) = self.ring.pop_front() {
                if !stream.over() {
                    self.old.insert(self.base, stream);
                }
                self.base += 1;
            }
        }
    }

    /// Opens a unidirectional stream with these bytes.
    pub(super) fn open_uni(&mut self, bytes: &[u8]) -> u64 {
        self.outgoing.push(Outgoing { bytes: bytes.to_vec(), sent: 0, credit: self.limits.uni_data });
        ((self.outgoing.len() as u64 - 1) << 2) | 2
    }

    /// Sends more on a unidirectional stream.
    pub(super) fn append(&mut self, id: u64, bytes: &[u8]) {
        if let Some(stream) = self.outgoing.get_mut((id >> 2) as usize) {
            stream.bytes.extend_from_slice(bytes);
        }
    }

    /// What is kept with a stream.
    #[inline]
    pub(super) fn state(&mut self, id: u64) -> Option<&mut S> {
        self.bidi(id >> 2)?.state.as_mut()
    }

    /// What is kept with every stream that has something, in order.
    pub(super) fn states(&mut self) -> impl Iterator<Item = (u64, &mut S)> {
        let base = self.base;
        let old = self.old.iter_mut().map(|(number, stream)| (*number, stream));
        let ring = self.ring.iter_mut().enumerate().map(move |(at, stream)| (base + at as u64, stream));
        old.chain(ring).filter_map(|(number, stream)| Some((number << 2, stream.state.as_mut()?)))
    }

    /// The same to look at.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &S)> {
        let base = self.base;
        let old = self.old.iter().map(|(number, stream)| (*number, stream));
        let ring = self.ring.iter().enumerate().map(move |(at, stream)| (base + at as u64, stream));
        old.chain(ring).filter_map(|(number, stream)| Some((number << 2, stream.state.as_ref()?)))
    }

    #[inline]
    fn bidi(&mut self, number: u64) -> Option<&mut Bidi<S>> {
        match number.checked_sub(self.base) {
            Some(at) => self.ring.get_mut(usize::try_from(at).ok()?),
            None => self.old.get_mut(&number),
        }
    }

    /// Gives a stream up in both directions.
    pub(super) fn abandon(&mut self, id: u64, code: u64) -> Option<S> {
        let stream = self.bidi(id >> 2)?;
        let state = stream.state.take()?;
        let (recv_done, send_done) = (stream.recv.done, stream.send_done);
        self.open -= 1;
        if !recv_done {
            self.pending.push_back(Tracked::Stop(id, code));
        }
        if !send_done {
            self.reset(id, code);
        }
        self.tidy(id >> 2);
        Some(state)
    }

    fn reset(&mut self, id: u64, code: u64) {
        if let Some(stream) = self.bidi(id >> 2)
            && stream.reset.is_none()
        {
            stream.reset = Some(code);
            self.pending.push_back(Tracked::Reset(id));
        }
    }

    /// Drops a stream that is over, and the ring's front as far as it is.
    #[inline]
    fn tidy(&mut self, number: u64) {
        if number < self.base {
            if self.old.get(&number).is_some_and(Bidi::over) {
                self.old.remove(&number);
            }
            return;
        }
        while self.base < self.fresh && self.ring.front().is_some_and(Bidi::over) {
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// Takes a STREAM frame.
    ///
    /// # Errors
    /// What it does against the rules, or what the application says.
    #[inline]
    pub(super) fn receive<A: Application<S>>(
        &mut self,
        id: u64,
        offset: u64,
        data: &[u8],
        fin: bool,
        application: &mut A,
    ) -> Result<(), Closed> {
        if id & 3 != 0 {
            return self.receive_uni(id, offset, data, fin, application);
        }
        let number = id >> 2;
        let next = self.next();
        let mut received = self.received;
        let Some(stream) = self.bidi(number) else {
            return if number < next { Ok(()) } else { Err(unopened()) };
        };
        stream.recv.account(&mut received, offset, data.len() as u64, fin)?;
        let (mut progress, mut asked) = (Progress::More, false);
        let state = &mut stream.state;
        let recv = &mut stream.recv;
        recv.deliver(&mut received, offset, data, |bytes, fin| {
            if let Some(state) = state.as_mut().filter(|_| progress == Progress::More) {
                progress = application.data(state, id, bytes, fin)?;
                asked = true;
            }
            Ok(())
        })?;
        let credit = stream.recv.credit_due();
        self.received = received;
        if credit {
            self.pending.push_back(Tracked::MaxStreamData(id));
        }
        self.grant();
        if asked || fin {
            self.settle(id, progress);
        }
        Ok(())
    }

    /// Does what the application has said of a stream.
    #[inline]
    fn settle(&mut self, id: u64, progress: Progress) {
        match progress {
            Progress::More => (),
            Progress::Done => {
                if let Some(stream) = self.bidi(id >> 2)
                    && stream.state.take().is_some()
                {
                    self.open -= 1;
                }
            }
            Progress::Abandon(code) => {
                self.abandon(id, code);
            }
        }
        self.tidy(id >> 2);
    }

    fn receive_uni<A: Application<S>>(
        &mut self,
        id: u64,
        offset: u64,
        data: &[u8],
        fin: bool,
        application: &mut A,
    ) -> Result<(), Closed> {
        let mut received = self.received;
        let Some(recv) = self.incoming(id)? else { return Ok(()) };
        recv.account(&mut received, offset, data.len() as u64, fin)?;
        recv.deliver(&mut received, offset, data, |bytes, fin| application.uni_data(id, bytes, fin))?;
        let (done, credit) = (recv.done, recv.credit_due());
        self.received = received;
        if credit {
            self.pending.push_back(Tracked::MaxStreamData(id));
        }
        if done {
            self.close_incoming(id);
        }
        self.grant();
        Ok(())
    }

    /// The receiving part of a unidirectional stream of the peer, opened with those before it when it is
    /// new; `None` when it is over.
    fn incoming(&mut self, id: u64) -> Result<Option<&mut Recv>, Violation> {
        match id & 3 {
            3 => (),
            // This side lets the peer open no bidirectional stream.
            1 => return Err(Violation::StreamLimit),
            _ => return Err(Violation::StreamState("data on a stream that only this side may send on")),
        }
        let number = id >> 2;
        if number >= self.incoming_allowed {
            return Err(Violation::StreamLimit);
        }
        while self.incoming_opened <= number {
            self.incoming.insert(self.incoming_opened, Recv::new());
            self.incoming_opened += 1;
        }
        Ok(self.incoming.get_mut(&number))
    }

    fn close_incoming(&mut self, id: u64) {
        if self.incoming.remove(&(id >> 2)).is_some() {
            self.incoming_allowed += 1;
            if !self.pending.contains(&Tracked::MaxUniStreams) {
                self.pending.push_back(Tracked::MaxUniStreams);
            }
        }
    }

    #[inline]
    fn grant(&mut self) {
        if self.received.granted - self.received.read < CONNECTION_WINDOW / 2 {
            self.received.granted = self.received.read + CONNECTION_WINDOW;
            self.pending.push_back(Tracked::MaxData);
        }
    }

    /// Takes RESET_STREAM.
    ///
    /// # Errors
    /// What it does against the rules, or what the application says.
    pub(super) fn receive_reset<A: Application<S>>(
        &mut self,
        id: u64,
        code: u64,
        final_size: u64,
        application: &mut A,
    ) -> Result<(), Closed> {
        let mut received = self.received;
        if id & 3 != 0 {
            let Some(recv) = self.incoming(id)? else { return Ok(()) };
            recv.reset(&mut received, final_size)?;
            self.received = received;
            self.close_incoming(id);
            self.grant();
            return application.uni_reset(id, code).map_err(Closed::Application);
        }
        let next = self.next();
        let Some(stream) = self.bidi(id >> 2) else {
            return if id >> 2 < next { Ok(()) } else { Err(unopened()) };
        };
        let news = stream.recv.reset(&mut received, final_size)?;
        let progress = match stream.state.as_mut().filter(|_| news) {
            Some(state) => application.reset(state, id, code).map_err(Closed::Application)?,
            None => Progress::More,
        };
        self.received = received;
        self.grant();
        self.settle(id, progress);
        Ok(())
    }

    /// Takes STOP_SENDING.
    ///
    /// # Errors
    /// What it does against the rules, or what the application says.
    pub(super) fn receive_stop<A: Application<S>>(
        &mut self,
        id: u64,
        code: u64,
        application: &mut A,
    ) -> Result<(), Closed> {
        self.check_sendable(id)?;
        if id & 3 == 2 {
            return application.uni_stopped(id, code).map_err(Closed::Application);
        }
        let len = self.image.len() as u64;
        let Some(stream) = self.bidi(id >> 2) else { return Ok(()) };
        let unsent = stream.sent < len && stream.reset.is_none();
        let progress = match &mut stream.state {
            Some(state) => application.stopped(state, id, code).map_err(Closed::Application)?,
            None => Progress::More,
        };
        if unsent {
            self.reset(id, code);
        }
        self.settle(id, progress);
        Ok(())
    }

    /// Takes MAX_STREAM_DATA.
    ///
    /// # Errors
    /// When the stream is none that this side sends on.
    pub(super) fn receive_max_stream_data(&mut self, id: u64, max: u64) -> Result<(), Violation> {
        self.check_sendable(id)?;
        if id & 3 == 2 {
            let stream = &mut self.outgoing[(id >> 2) as usize];
            stream.credit = stream.credit.max(max);
        } else if let Some(stream) = self.bidi(id >> 2) {
            stream.credit = stream.credit.max(max);
        }
        Ok(())
    }

    /// Takes MAX_DATA.
    pub(super) fn receive_max_data(&mut self, max: u64) {
        self.limits.data = self.limits.data.max(max);
    }

    /// Takes MAX_STREAMS.
    pub(super) fn receive_max_streams(&mut self, bidi: bool, max: u64) {
        let limit = if bidi { &mut self.limits.bidi } else { &mut self.limits.uni };
        *limit = (*limit).max(max);
    }

    fn check_sendable(&self, id: u64) -> Result<(), Violation> {
        let opened = match id & 3 {
            0 => id >> 2 < self.next(),
            2 => id >> 2 < self.outgoing.len() as u64,
            _ => return Err(Violation::StreamState("a frame for a stream that this side does not send on")),
        };
        if opened { Ok(()) } else { Err(Violation::StreamState("a frame for a stream that is not open")) }
    }

    /// What was carried is acknowledged.
    #[inline]
    pub(super) fn acknowledged(&mut self, tracked: Tracked) {
        match tracked {
            Tracked::Requests { first, count } => {
                for number in first..first + u64::from(count) {
                    if let Some(stream) = self.bidi(number) {
                        stream.send_done = true;
                    }
                    if number < self.base {
                        self.tidy(number);
                    }
                }
                self.tidy(self.base);
            }
            Tracked::Stream { id, offset, len, .. } if id & 3 == 0 => {
                let whole = self.image.len() as u64;
                if let Some(stream) = self.bidi(id >> 2) {
                    if len > 0 {
                        stream.acked.insert(offset, offset + u64::from(len) - 1);
                    }
                    stream.send_done |= stream.acked.first_gap(whole) == whole;
                }
                self.tidy(id >> 2);
            }
            Tracked::Reset(id) => {
                if let Some(stream) = self.bidi(id >> 2) {
                    stream.send_done = true;
                }
                self.tidy(id >> 2);
            }
            _ => (),
        }
    }

    /// What was carried is lost, and is sent again if it still means something.
    pub(super) fn lost(&mut self, tracked: Tracked) {
        match tracked {
            Tracked::Requests { first, count } => {
                let len = self.image.len() as u32;
                for number in first..first + u64::from(count) {
                    if self.wants_again(number) {
                        let id = number << 2;
                        self.pending.push_back(Tracked::Stream { id, offset: 0, len, fin: true });
                    }
                }
            }
            Tracked::Stream { id, .. } if id & 3 == 0 && !self.wants_again(id >> 2) => (),
            Tracked::Ack(_) | Tracked::Ping | Tracked::Crypto { .. } => (),
            other => self.pending.push_back(other),
        }
    }

    fn wants_again(&mut self, number: u64) -> bool {
        self.bidi(number).is_some_and(|stream| !stream.send_done && stream.reset.is_none())
    }

    /// There is something that could be sent now.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        !self.pending.is_empty() || self.has_data()
    }

    #[inline]
    fn has_data(&self) -> bool {
        let fresh = self.fresh < self.next().min(self.limits.bidi) || !self.partial.is_empty();
        (fresh && self.sent < self.limits.data)
            || self.outgoing.iter().any(|stream| stream.sendable(self.limits) > 0)
    }

    /// Writes frames until `out` has `end` bytes or nothing more is to be sent; each is told to `carry`.
    #[inline]
    pub(super) fn write(&mut self, out: &mut Vec<u8>, end: usize, carry: &mut impl FnMut(Tracked)) {
        if !self.pending.is_empty() {
            self.write_pending(out, end, carry);
        }
        for number in 0..self.outgoing.len() {
            self.write_outgoing(number, out, end, carry);
        }
        if !self.partial.is_empty() {
            self.write_partial(out, end, carry);
        }
        self.write_fresh(out, end, carry);
    }

    /// Requests of which nothing was sent yet: whole where they fit.
    #[inline]
    fn write_fresh(&mut self, out: &mut Vec<u8>, end: usize, carry: &mut impl FnMut(Tracked)) {
        let len = self.image.len();
        let (mut first, mut count) = (self.fresh, 0u32);
        // Opened ahead of the handshake there may be more than the limit allows.
        let end_of_streams = self.next().min(self.limits.bidi);
        let mut long = None;
        while self.fresh < end_of_streams {
            let number = self.fresh;
            let allowed = self.limits.data.saturating_sub(self.sent);
            let stream = &mut self.ring[(number - self.base) as usize];
            if stream.reset.is_some() {
                if count > 0 {
                    carry(Tracked::Requests { first, count });
                }
                self.fresh += 1;
                (first, count) = (self.fresh, 0);
                continue;
            }
            let credit = stream.credit.min(allowed);
            let need = frame::stream_head(number << 2, 0) + len;
            let within_credit = len as u64 <= credit;
            if !within_credit || out.len() + need > end {
                // What is short goes whole into the next packet.
                if credit > 0 && (need > SPLIT_ABOVE || !within_credit) {
                    long = Some(number);
                }
                break;
            }
            frame::write_stream(out, number << 2, 0, len, true);
            out.extend_from_slice(&self.image);
            stream.sent = len as u64;
            self.sent += len as u64;
            self.fresh += 1;
            count += 1;
        }
        if count > 0 {
            carry(Tracked::Requests { first, count });
        }
        if let Some(number) = long {
            self.fresh += 1;
            self.partial.push_back(number);
            self.write_partial(out, end, carry);
        }
    }

    /// Streams that are longer than a packet or than their credit.
    fn write_partial(&mut self, out: &mut Vec<u8>, end: usize, carry: &mut impl FnMut(Tracked)) {
        let whole = self.image.len() as u64;
        for _ in 0..self.partial.len() {
            let Some(number) = self.partial.pop_front() else { return };
            let allowed = self.limits.data.saturating_sub(self.sent);
            let Some(stream) = self.bidi(number).filter(|stream| stream.reset.is_none()) else { continue };
            let (id, offset) = (number << 2, stream.sent);
            let most = (whole - offset).min(stream.credit.saturating_sub(offset)).min(allowed);
            let len = fitting(out, end, id, offset, most);
            if len == 0 {
                self.partial.push_back(number);
                continue;
            }
            stream.sent += len as u64;
            let rest = whole - stream.sent;
            self.sent += len as u64;
            let from = offset as usize;
            frame::write_stream(out, id, offset, len, rest == 0);
            out.extend_from_slice(&self.image[from..from + len]);
            carry(Tracked::Stream { id, offset, len: len as u32, fin: rest == 0 });
            if rest > 0 {
                self.partial.push_front(number);
                return;
            }
        }
    }

    fn write_outgoing(
        &mut self,
        number: usize,
        out: &mut Vec<u8>,
        end: usize,
        carry: &mut impl FnMut(Tracked),
    ) {
        let stream = &mut self.outgoing[number];
        if number as u64 >= self.limits.uni {
            return;
        }
        let allowed = stream.sendable(self.limits).min(self.limits.data.saturating_sub(self.sent));
        let (id, offset) = ((number as u64) << 2 | 2, stream.sent);
        let len = fitting(out, end, id, offset, allowed);
        if len == 0 {
            return;
        }
        stream.sent += len as u64;
        self.sent += len as u64;
        frame::write_stream(out, id, offset, len, false);
        out.extend_from_slice(&stream.bytes[offset as usize..offset as usize + len]);
        carry(Tracked::Stream { id, offset, len: len as u32, fin: false });
    }

    fn write_pending(&mut self, out: &mut Vec<u8>, end: usize, carry: &mut impl FnMut(Tracked)) {
        for _ in 0..self.pending.len() {
            let Some(tracked) = self.pending.pop_front() else { return };
            if end.saturating_sub(out.len()) < CONTROL_FRAME {
                self.pending.push_front(tracked);
                return;
            }
            match tracked {
                Tracked::Stream { id, offset, len, fin } => {
                    if let Some(rest) = self.write_again(id, offset, len, fin, out, end, carry) {
                        self.pending.push_front(rest);
                        return;
                    }
                    continue;
                }
                Tracked::MaxData => frame::write_ints(out, 0x10, &[self.received.granted]),
                Tracked::MaxStreamData(id) => {
                    let recv = if id & 3 == 3 {
                        self.incoming.get_mut(&(id >> 2))
                    } else {
                        self.bidi(id >> 2).map(|stream| &mut stream.recv)
                    };
                    let Some(recv) = recv.filter(|recv| recv.final_size.is_none()) else { continue };
                    recv.granted = recv.granted.max(recv.read + STREAM_WINDOW);
                    frame::write_ints(out, 0x11, &[id, recv.granted]);
                }
                Tracked::MaxUniStreams => frame::write_ints(out, 0x13, &[self.incoming_allowed]),
                Tracked::Reset(id) => {
                    let Some(stream) = self.bidi(id >> 2) else { continue };
                    let (Some(code), sent) = (stream.reset, stream.sent) else { continue };
                    frame::write_ints(out, 0x04, &[id, code, sent]);
                }
                Tracked::Stop(id, code) => frame::write_ints(out, 0x05, &[id, code]),
                Tracked::Retire(sequence) => frame::write_ints(out, 0x19, &[sequence]),
                Tracked::Ping => out.push(frame::PING),
                // The connection writes it itself, when there is room.
                Tracked::NewCid(_) => {
                    self.pending.push_back(tracked);
                    continue;
                }
                // These are not sent again as they were.
                Tracked::Ack(_) | Tracked::Crypto { .. } | Tracked::Requests { .. } => {
                    continue;
                }
            }
            carry(tracked);
        }
    }

    /// Sends a lost part of a stream again; returns what did not fit.
    #[expect(clippy::too_many_arguments, reason = "the fields of one frame, and where it goes")]
    fn write_again(
        &mut self,
        id: u64,
        offset: u64,
        len: u32,
        fin: bool,
        out: &mut Vec<u8>,
        end: usize,
        carry: &mut impl FnMut(Tracked),
    ) -> Option<Tracked> {
        if id & 3 == 0 && !self.wants_again(id >> 2) {
            return None;
        }
        let bytes: &[u8] =
            if id & 3 == 0 { &self.image } else { &self.outgoing.get((id >> 2) as usize)?.bytes };
        let all = bytes.get(offset as usize..(offset + u64::from(len)) as usize)?;
        let now = fitting(out, end, id, offset, u64::from(len));
        if now == 0 && len > 0 {
            return Some(Tracked::Stream { id, offset, len, fin });
        }
        let whole = now == len as usize;
        frame::write_stream(out, id, offset, now, fin && whole);
        out.extend_from_slice(&all[..now]);
        carry(Tracked::Stream { id, offset, len: now as u32, fin: fin && whole });
        let rest = len - now as u32;
        (!whole).then_some(Tracked::Stream { id, offset: offset + now as u64, len: rest, fin })
    }

    /// Windows and states of the streams that are open, in words: at most `most` of them.
    pub(super) fn describe(&self, most: usize) -> String {
        use std::fmt::Write;
        let mut text = format!(
            "connection credit {} of {} bytes used, {} of {} streams opened",
            self.sent,
            self.limits.data,
            self.next(),
            self.limits.bidi
        );
        let len = self.image.len() as u64;
        let open: Vec<u64> = self.iter().map(|(id, _)| id >> 2).collect();
        for number in open.iter().take(most) {
            let id = number << 2;
            let in_ring = number.checked_sub(self.base).and_then(|at| self.ring.get(at as usize));
            let Some(stream) = in_ring.or_else(|| self.old.get(number)) else { continue };
            let sent = stream.sent;
            let _ = write!(text, "; stream {id}: ");
            let _ = match (sent < len, stream.recv.read) {
                (true, _) => write!(text, "{sent} of {len} bytes sent, credit {}", stream.credit),
                (false, 0) => write!(text, "request sent, nothing received"),
                (false, read) => write!(text, "request sent, {read} bytes received"),
            };
            if stream.recv.highest > stream.recv.read {
                let _ = write!(text, ", a gap behind them");
            }
        }
        if open.len() > most {
            let _ = write!(text, "; and {} more", open.len() - most);
        }
        text
    }
}

impl<S> Bidi<S> {
    #[inline]
    fn over(&self) -> bool {
        self.state.is_none() && self.send_done && self.recv.done
    }
}

impl Outgoing {
    #[inline]
    fn sendable(&self, limits: Limits) -> u64 {
        if limits.uni == 0 {
            return 0;
        }
        (self.bytes.len() as u64).min(self.credit).saturating_sub(self.sent)
    }
}

impl Recv {
    fn new() -> Self {
        Self { read: 0, highest: 0, granted: STREAM_WINDOW, final_size: None, ahead: None, done: false }
    }

    /// Checks bytes against windows and final size, and counts those that are new.
    #[inline]
    fn account(
        &mut self,
        received: &mut Received,
        offset: u64,
        len: u64,
        fin: bool,
    ) -> Result<(), Violation> {
        let end = offset + len;
        let beyond_end = self.final_size.is_some_and(|size| end > size || (fin && end != size));
        if beyond_end || (fin && end < self.highest) {
            return Err(Violation::FinalSize);
        }
        if end > self.highest {
            received.highest += end - self.highest;
            self.highest = end;
            if end > self.granted || received.highest > received.granted {
                return Err(Violation::FlowControl);
            }
        }
        if fin {
            self.final_size = Some(end);
        }
        Ok(())
    }

    /// Hands on what is there without a gap.
    #[inline]
    fn deliver(
        &mut self,
        received: &mut Received,
        offset: u64,
        data: &[u8],
        mut to: impl FnMut(&[u8], bool) -> Result<(), super::ApplicationError>,
    ) -> Result<(), Closed> {
        if self.done {
            return Ok(());
        }
        let end = offset + data.len() as u64;
        if offset > self.read {
            let ahead = self.ahead.get_or_insert_default();
            return ahead
                .insert(self.read, offset, data)
                .map_err(|_| Violation::Protocol("a stream sent in too many pieces").into());
        }
        let last = self.final_size == Some(end.max(self.read));
        if end > self.read || last {
            let fresh = &data[((self.read - offset) as usize).min(data.len())..];
            self.hand_on(received, fresh, &mut to)?;
        }
        while !self.done
            && let Some(bytes) = self.ahead.as_mut().and_then(|ahead| ahead.take(self.read))
        {
            self.hand_on(received, &bytes, &mut to)?;
        }
        Ok(())
    }

    #[inline]
    fn hand_on(
        &mut self,
        received: &mut Received,
        bytes: &[u8],
        to: &mut impl FnMut(&[u8], bool) -> Result<(), super::ApplicationError>,
    ) -> Result<(), Closed> {
        self.read += bytes.len() as u64;
        received.read += bytes.len() as u64;
        self.done = self.final_size == Some(self.read);
        to(bytes, self.done).map_err(Closed::Application)
    }

    /// The peer ends the stream at `final_size` without sending the rest; true when that is news.
    fn reset(&mut self, received: &mut Received, final_size: u64) -> Result<bool, Violation> {
        self.account(received, final_size, 0, true)?;
        if self.done {
            return Ok(false);
        }
        received.read += final_size - self.read;
        (self.read, self.done, self.ahead) = (final_size, true, None);
        Ok(true)
    }

    /// The peer is to be given more credit.
    #[inline]
    fn credit_due(&mut self) -> bool {
        let due = self.final_size.is_none() && self.granted - self.read < STREAM_WINDOW / 2;
        if due {
            self.granted = self.read + STREAM_WINDOW;
        }
        due
    }
}

/// How many of `most` bytes a STREAM frame can carry within `end`.
#[inline]
fn fitting(out: &[u8], end: usize, id: u64, offset: u64, most: u64) -> usize {
    let room = end.saturating_sub(out.len() + frame::stream_head(id, offset)).min(LONGEST_FRAME);
    usize::try_from(most).unwrap_or(usize::MAX).min(room)
}

fn unopened() -> Closed {
    Violation::StreamState("data on a stream that was not opened").into()
}

/// Bytes a peer may send on a stream ahead of what was handed on.
pub(super) const STREAM_WINDOW: u64 = 16 << 20;
/// The same of all streams together. It bounds what has to be kept when packets are lost.
pub(super) const CONNECTION_WINDOW: u64 = 64 << 20;
/// Streams that the ring may have beyond twice those in use.
const RING_SLACK: usize = 8192;
/// A request that fits a packet of this size is not split over two.
const SPLIT_ABOVE: usize = 1000;
/// The length field of a STREAM frame is of 2 bytes.
const LONGEST_FRAME: usize = 16383;
/// No control frame is longer, PATH_RESPONSE and NEW_CONNECTION_ID aside.
const CONTROL_FRAME: usize = 25;
