//! Owns the server side of one HTTP/3 connection of the tests: quinn carries it, and what is said on its
//! streams is written apart from the product's own code. It checks the client against RFC 9114 with every
//! frame it reads, and sends whatever a script wants, right or wrong.

pub(crate) mod endpoint;
mod read;
pub(crate) mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, SendStream, VarInt};
use tokio::sync::{mpsc, oneshot};

use self::endpoint::{Event, RESETTABLE, Silence, reset_token, runtime};
use self::read::Reading;
use super::answer::{Answer, Asked};
use super::{Counters, LINGER, lock, said};

/// How a client ended a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// CONNECTION_CLOSE of type 0x1d.
    Application(u64),
    /// CONNECTION_CLOSE of type 0x1c.
    Transport(u64),
    /// In another way, in words.
    Otherwise(String),
}

impl From<&ConnectionError> for Closed {
    fn from(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => Self::Application(close.error_code.into_inner()),
            ConnectionError::ConnectionClosed(close) => Self::Transport(close.error_code.into()),
            other => Self::Otherwise(other.to_string()),
        }
    }
}

/// What is kept of a frame of the client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) stream: u64,
    pub(crate) kind: u64,
    pub(crate) length: u64,
}

/// A stream of a request.
struct Stream {
    send: SendStream,
    stop: Option<oneshot::Sender<u64>>,
    reading: Reading,
    asked: Asked,
    /// The head was read.
    headed: bool,
    client_ended: bool,
    ended: bool,
    /// Its request is not processed.
    ignored: bool,
}

/// One connection.
pub(crate) struct H3 {
    pub(crate) quic: Connection,
    /// Number of this connection, from 0.
    pub(crate) index: u64,
    /// Frames that the client sent, in order of each stream.
    pub(crate) log: Vec<Seen>,
    /// RESET_STREAM and STOP_SENDING of the client: stream and code.
    pub(crate) resets: Vec<(u64, u64)>,
    pub(crate) stops: Vec<(u64, u64)>,
    /// The client's settings, once they are here.
    pub(crate) client: Option<Vec<(u64, u64)>>,
    pub(crate) closed: Option<Closed>,
    counters: Arc<Counters>,
    silence: Silence,
    events: mpsc::Receiver<Event>,
    streams: BTreeMap<u64, Stream>,
    /// The client's unidirectional streams: their type, once it is here, and what is not read yet.
    unis: BTreeMap<u64, (Option<u64>, Vec<u8>)>,
    /// This side's, of which the first is the control stream when there is one.
    control: Option<SendStream>,
    /// The client was gone before a control stream could be opened.
    no_control: bool,
    others: Vec<SendStream>,
    heads: VecDeque<Asked>,
    whole: BTreeMap<u64, Asked>,
    /// The stream of the next whole request, and the first one that was not opened yet.
    next_request: u64,
    next_stream: u64,
    /// The means to stop reading the client's unidirectional streams.
    uni_stops: BTreeMap<u64, oneshot::Sender<u64>>,
    /// Nothing more is to be heard of the client.
    silent: bool,
    /// Streams that were ended and whose bytes are not acknowledged yet.
    unacknowledged: BTreeSet<u64>,
    /// The first stream that is not processed.
    refused_from: Option<u64>,
    no_new_streams: bool,
    patience: Option<Duration>,
}

/// Runs a script on a connection.
fn serve(
    quic: Connection,
    index: u64,
    events: mpsc::Receiver<Event>,
    counters: Arc<Counters>,
    silence: Silence,
    script: &(dyn Fn(&mut H3) + Send + Sync),
) {
    let mut h3 = H3 {
        quic,
        index,
        log: Vec::new(),
        resets: Vec::new(),
        stops: Vec::new(),
        client: None,
        closed: None,
        counters,
        silence,
        events,
        streams: BTreeMap::new(),
        unis: BTreeMap::new(),
        control: None,
        no_control: false,
        others: Vec::new(),
        heads: VecDeque::new(),
        whole: BTreeMap::new(),
        next_request: 0,
        next_stream: 0,
        uni_stops: BTreeMap::new(),
        silent: false,
        unacknowledged: BTreeSet::new(),
        refused_from: None,
        no_new_streams: false,
        patience: None,
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| script(&mut h3))) {
        h3.complain(&said(&*panic));
    }
    h3.finish();
}

impl H3 {
    /// Opens the control stream and says these settings on it, and opens both streams of QPACK.
    pub(crate) fn settings(&mut self, settings: &[(u64, u64)]) -> bool {
        let mut bytes = wire::varints(&[wire::CONTROL]);
        bytes.extend(wire::settings(settings));
        self.open_control(&bytes)
            && self.uni(&wire::varints(&[wire::ENCODER]), false).is_some()
            && self.uni(&wire::varints(&[wire::DECODER]), false).is_some()
    }

    /// Opens a stream for [`H3::control`] with these bytes, whatever they are.
    pub(crate) fn open_control(&mut self, bytes: &[u8]) -> bool {
        let Some(mut control) = self.wait(self.quic.open_uni()).and_then(Result::ok) else {
            self.no_control = true;
            return false;
        };
        let sent = matches!(self.wait(control.write_all(bytes)), Some(Ok(())));
        self.control = Some(control);
        sent
    }

    /// Says something on the control stream; false when the client is gone.
    pub(crate) fn control(&mut self, bytes: &[u8]) -> bool {
        let Some(mut control) = self.take_control() else { return false };
        let sent = matches!(self.wait(control.write_all(bytes)), Some(Ok(())));
        self.control = Some(control);
        sent
    }

    /// Ends the control stream, or resets it with a code.
    pub(crate) fn end_control(&mut self, code: Option<u64>) {
        let Some(mut control) = self.take_control() else { return };
        let _ = match code {
            None => control.finish(),
            Some(code) => control.reset(varint(code)),
        };
        self.others.push(control);
    }

    /// The control stream, which a script opens first; `None` when the client was gone by then, though
    /// requests it had sent can still be read.
    fn take_control(&mut self) -> Option<SendStream> {
        assert!(self.control.is_some() || self.no_control, "a script opens the control stream first");
        self.control.take()
    }

    /// Opens a unidirectional stream with these bytes; `None` when the client is gone.
    pub(crate) fn uni(&mut self, bytes: &[u8], end: bool) -> Option<usize> {
        let mut stream = self.wait(self.quic.open_uni())?.ok()?;
        if !bytes.is_empty() {
            self.wait(stream.write_all(bytes))?.ok()?;
        }
        if end {
            stream.finish().ok()?;
        }
        self.others.push(stream);
        Some(self.others.len() - 1)
    }

    /// Sends more on a stream that [`H3::uni`] opened.
    pub(crate) fn uni_send(&mut self, which: usize, bytes: &[u8], end: bool) -> bool {
        let mut stream = self.others.swap_remove(which);
        let sent = matches!(self.wait(stream.write_all(bytes)), Some(Ok(())));
        let sent = sent && (!end || stream.finish().is_ok());
        self.others.push(stream);
        let last = self.others.len() - 1;
        self.others.swap(which, last);
        sent
    }

    /// Sends bytes on a request's stream as they are; false when the stream or the client is gone.
    pub(crate) fn send(&mut self, id: u32, bytes: &[u8], end: bool) -> bool {
        let id = u64::from(id);
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let sent = bytes.is_empty() || matches!(wait(stream.send.write_all(bytes)), Ok(Ok(())));
        if sent && end {
            self.end(id);
        }
        sent
    }

    fn end(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.send.finish().is_ok() {
            self.unacknowledged.insert(id);
        }
        stream.ended = true;
    }

    /// Resets a stream, of which nothing more is read.
    pub(crate) fn reset(&mut self, id: u32, code: u64) -> bool {
        if let Some(mut stream) = self.streams.remove(&u64::from(id)) {
            let _ = stream.send.reset(varint(code));
            if let Some(stop) = stream.stop.take() {
                let _ = stop.send(code);
            }
            self.others.push(stream.send);
        }
        self.open()
    }

    /// Wants no more of a request (STOP_SENDING).
    pub(crate) fn stop(&mut self, id: u32, code: u64) {
        let stream = self.streams.get_mut(&u64::from(id));
        if let Some(stop) = stream.and_then(|stream| stream.stop.take()) {
            let _ = stop.send(code);
        }
    }

    /// Says that no stream from `first` on was or will be processed; those are ignored from now on.
    pub(crate) fn goaway(&mut self, first: u64) -> bool {
        self.refused_from = Some(first);
        let mut ignored = 0;
        for (_, stream) in self.streams.range_mut(first..) {
            ignored += u64::from(!std::mem::replace(&mut stream.ignored, true));
        }
        self.counters.count_ignored(ignored);
        self.whole.retain(|id, _| *id < first);
        self.heads.retain(|asked| u64::from(asked.stream) < first);
        self.control(&wire::goaway(first))
    }

    /// From here on a new stream is a fault of the client's: it has seen GOAWAY.
    pub(crate) fn expect_no_new_streams(&mut self) {
        self.no_new_streams = true;
    }

    /// Ends the connection with an error of the application.
    pub(crate) fn close(&mut self, code: u64) {
        self.quic.close(varint(code), b"scripted");
    }

    /// Wants no more of the client's unidirectional stream of this type (STOP_SENDING).
    pub(crate) fn stop_uni(&mut self, kind: u64, code: u64) {
        while !self.unis.values().any(|(read, _)| *read == Some(kind)) {
            if self.next().is_none() {
                return;
            }
        }
        let id = self.unis.iter().find(|(_, (read, _))| *read == Some(kind)).map(|(id, _)| *id);
        if let Some(stop) = id.and_then(|id| self.uni_stops.remove(&id)) {
            let _ = stop.send(code);
        }
    }

    /// Nothing is sent to the client any more, and nothing of it is taken.
    pub(crate) fn vanish(&mut self) {
        self.silent = true;
        self.silence.fall(self.client_address());
    }

    /// Sends the client a datagram that is none of the connection's.
    pub(crate) fn stray(&mut self, datagram: &[u8]) {
        self.silence.send(self.client_address(), datagram);
    }

    /// Sends the client stateless resets for every connection id that this process gave out (RFC 9000
    /// §10.3), after it fell silent.
    pub(crate) fn stateless_reset(&mut self) {
        self.vanish();
        let ids = lock(&RESETTABLE).clone();
        for id in ids {
            let mut datagram = vec![0x5f; 30];
            datagram.extend(reset_token(&id));
            self.stray(&datagram);
        }
    }

    fn client_address(&self) -> SocketAddr {
        self.quic.remote_address()
    }

    /// The next whole request, in order of streams; `None` when the client closed.
    pub(crate) fn request(&mut self) -> Option<Asked> {
        loop {
            let id = self.next_request;
            if let Some(asked) = self.whole.remove(&id) {
                self.next_request += 4;
                return Some(asked);
            }
            // What was answered early, refused or reset does not become whole.
            let over = self.streams.get(&id).is_none_or(|stream| stream.ended || stream.ignored);
            if id < self.next_stream && over {
                self.next_request += 4;
            } else {
                self.next()?;
            }
        }
    }

    /// The next request as soon as its head is here, without its body.
    pub(crate) fn head(&mut self) -> Option<Asked> {
        while self.heads.is_empty() {
            self.next()?;
        }
        self.heads.pop_front()
    }

    /// The next `count` whole requests.
    pub(crate) fn requests(&mut self, count: usize) -> Option<Vec<Asked>> {
        (0..count).map(|_| self.request()).collect()
    }

    /// Gives every request the same answer until either side ends the connection.
    pub(crate) fn always(&mut self, answer: &Answer) {
        while let Some(asked) = self.request() {
            if !self.respond(&asked, answer) {
                return;
            }
        }
    }

    /// Waits until the client has seen everything sent so far, and what it did about it is here: twice, a
    /// stream of a reserved type is opened, ended and acknowledged.
    pub(crate) fn settle(&mut self) -> bool {
        (0..2).all(|turn| {
            let Some(which) = self.uni(&wire::varints(&[wire::reserved(turn)]), true) else { return false };
            let over = self.others[which].stopped();
            let mut seen = runtime().spawn(over);
            loop {
                match runtime().block_on(async {
                    tokio::select! {
                        // What came before the acknowledgement is handled before it.
                        biased;
                        event = self.events.recv() => Err(event),
                        over = &mut seen => Ok(over),
                    }
                }) {
                    // A client may also want no more of it (RFC 9114 §6.2).
                    Ok(over) => return matches!(over, Ok(Ok(_))),
                    Err(Some(event)) => self.handle(event),
                    Err(None) => return false,
                }
            }
        })
    }

    /// Streams open now, by this side's count.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.values().filter(|stream| !(stream.client_ended && stream.ended)).count()
    }

    /// Body bytes of a stream that arrived so far.
    pub(crate) fn received(&self, id: u32) -> usize {
        self.streams.get(&u64::from(id)).map_or(0, |stream| stream.asked.body.len())
    }

    /// Gives an answer; false when the client is gone. Waits for credit.
    pub(crate) fn respond(&mut self, asked: &Asked, answer: &Answer) -> bool {
        self.counters.count_answer();
        let id = asked.stream;
        if answer.last && !self.goaway(u64::from(id) + 4) {
            return false;
        }
        let mut out = self.render_head(asked, answer);
        let pieces = if answer.has_body(asked) { answer.times * answer.pieces.len() } else { 0 };
        for at in 0..pieces {
            let piece = &answer.pieces[at % answer.pieces.len()];
            out.extend(wire::data(piece));
            if out.len() > AT_ONCE {
                if !self.send(id, &out, false) {
                    // The client may stop a stream; that is no end of the connection.
                    return self.open();
                }
                out.clear();
            }
        }
        out.extend(trailers(answer, pieces > 0));
        self.send(id, &out, true);
        self.open()
    }

    /// The bytes of an answer.
    pub(crate) fn render(&mut self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let mut out = self.render_head(asked, answer);
        let has_body = answer.has_body(asked);
        if has_body {
            answer.pieces.iter().for_each(|piece| out.extend(wire::data(piece)));
        }
        out.extend(trailers(answer, has_body));
        out
    }

    fn render_head(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let mut out = Vec::new();
        for (status, headers) in &answer.interim {
            out.extend(head(*status, headers, &[]));
        }
        out.extend(head(answer.status, &answer.headers, &answer.declared(asked)));
        out
    }

    /// How long reading waits before it gives nothing; `None`: as long as it takes.
    pub(crate) fn patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Neither side has ended the connection.
    pub(crate) fn open(&self) -> bool {
        self.quic.close_reason().is_none()
    }

    /// Answers nothing, and reads until the client closes.
    pub(crate) fn ignore(&mut self) {
        while self.next().is_some() {}
    }

    /// Ends the connection in good order when its script is done: after GOAWAY the client does that.
    /// What was answered is to arrive first.
    pub(crate) fn end_connection(&mut self) {
        self.patience = Some(LINGER);
        if self.refused_from.is_none() {
            self.flush();
            self.close(wire::H3_NO_ERROR);
        }
    }

    /// Waits until all streams that were ended are acknowledged.
    pub(crate) fn flush(&mut self) {
        while !self.unacknowledged.is_empty() && self.next().is_some() {}
    }

    /// Sends nothing more; what the client still sends is read, checked and counted.
    fn finish(&mut self) {
        if self.silent {
            return;
        }
        self.patience = Some(LINGER);
        self.ignore();
        if self.closed.is_none() {
            self.quic.close(varint(wire::H3_NO_ERROR), b"");
        }
    }

    pub(crate) fn count_answer(&self) {
        self.counters.count_answer();
    }

    /// Fails the test when its server is dropped.
    pub(crate) fn complain(&self, complaint: &str) {
        self.counters.complain(format!("connection {}: {complaint}", self.index));
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let done = wait(future);
        if done.is_err() {
            self.complain("the client gives no credit");
        }
        done.ok()
    }
}

/// Waits for what the client is expected to let happen.
fn wait<T>(future: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    runtime().block_on(async { tokio::time::timeout(STUCK, future).await })
}

fn head(status: u16, headers: &[(String, String)], lengths: &[String]) -> Vec<u8> {
    let status = status.to_string();
    let mut fields: Vec<(&str, &[u8])> = vec![(":status", status.as_bytes())];
    fields.extend(headers.iter().map(|(name, value)| (&name[..], value.as_bytes())));
    fields.extend(lengths.iter().map(|length| ("content-length", length.as_bytes())));
    wire::headers(&fields)
}

fn trailers(answer: &Answer, has_body: bool) -> Vec<u8> {
    if !has_body || answer.trailers.is_empty() {
        return Vec::new();
    }
    let fields: Vec<(&str, &[u8])> =
        answer.trailers.iter().map(|(name, value)| (&name[..], value.as_bytes())).collect();
    wire::headers(&fields)
}

pub(crate) fn varint(value: u64) -> VarInt {
    VarInt::from_u64(value).expect("a value that a variable-length integer holds")
}

/// Bytes of an answer that are written together.
const AT_ONCE: usize = 256 * 1024;
/// After so long a client that lets nothing be sent is stuck.
const STUCK: Duration = Duration::from_secs(20);
