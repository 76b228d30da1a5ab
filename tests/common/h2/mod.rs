//! Owns the server side of one HTTP/2 connection of the tests. It is written apart from the product's
//! own code, checks the client against RFC 9113 with every frame it reads, and sends whatever a script
//! wants, right or wrong.

mod read;

use std::collections::{BTreeMap, VecDeque};

use self::read::settings_in;
use super::Conn;
use super::answer::{Answer, Asked};
use super::frame::{self, Frame};
use super::hpack::{Encoder, Style};

/// What is kept of a frame of the client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) length: usize,
}

/// Who replenishes the windows of uploads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Credit {
    /// Every DATA frame is given back at once.
    AtOnce,
    /// The script, with [`H2::grant`].
    Manual,
}

/// Values of SETTINGS that bind the other side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) header_table_size: u32,
    pub(crate) max_concurrent_streams: u32,
    pub(crate) initial_window_size: u32,
    pub(crate) max_frame_size: u32,
}

impl Settings {
    /// Before anything was said (RFC 9113 §6.5.2).
    const INITIAL: Self = Self {
        header_table_size: 4096,
        max_concurrent_streams: u32::MAX,
        initial_window_size: 65_535,
        max_frame_size: 16_384,
    };

    fn apply(&mut self, id: u16, value: u32) {
        match id {
            frame::HEADER_TABLE_SIZE => self.header_table_size = value,
            frame::MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
            frame::INITIAL_WINDOW_SIZE => self.initial_window_size = value,
            frame::MAX_FRAME_SIZE => self.max_frame_size = value,
            _ => (),
        }
    }
}

/// A stream that is open, or half of it.
#[derive(Debug)]
struct Stream {
    asked: Asked,
    /// Bytes that may be sent.
    send: i64,
    /// Bytes that the client may send.
    receive: i64,
    client_ended: bool,
    ended: bool,
}

/// One connection.
pub(crate) struct H2<'a> {
    pub(crate) conn: &'a mut Conn,
    /// What the client sent, in order.
    pub(crate) log: Vec<Seen>,
    pub(crate) credit: Credit,
    pub(crate) encoder: Encoder,
    /// The client's settings.
    pub(crate) client: Settings,
    /// This side's settings that the client acknowledged.
    pub(crate) in_force: Settings,
    /// RST_STREAM frames of the client: stream and code.
    pub(crate) resets: Vec<(u32, u32)>,
    /// Code of the client's GOAWAY.
    pub(crate) client_goaway: Option<u32>,
    /// Streams above the last one that GOAWAY named: how many were opened all the same.
    pub(crate) ignored: u64,
    decoder: loona_hpack::Decoder<'static>,
    sent_settings: VecDeque<Vec<(u16, u32)>>,
    settings_said: bool,
    /// Acknowledgements that have to wait for this side's SETTINGS, which come first.
    acks_owed: usize,
    settings_acknowledged: bool,
    streams: BTreeMap<u32, Stream>,
    highest: u32,
    /// Heads that arrived, and requests that are whole.
    heads: VecDeque<Asked>,
    whole: VecDeque<Asked>,
    /// A header block that is not complete: its stream, whether it ends it, its bytes.
    block: Option<(u32, bool, Vec<u8>)>,
    send_window: i64,
    receive_window: i64,
    last_accepted: u32,
    no_new_streams: bool,
    /// A size that the next block of the client's has to come down to first (RFC 7541 §4.2).
    update_owed: Option<u32>,
    table_size: u32,
    pings: VecDeque<[u8; 8]>,
    next_ping: u64,
}

impl<'a> H2<'a> {
    /// Reads the client's preface and says nothing yet; `None` when the client sends something else.
    pub(crate) fn accept(conn: &'a mut Conn) -> Option<Self> {
        let preface = conn.take(frame::PREFACE.len())?;
        if preface != frame::PREFACE {
            conn.complain(format!("a preface of {:?}", String::from_utf8_lossy(&preface)));
            return None;
        }
        Some(Self {
            conn,
            log: Vec::new(),
            credit: Credit::AtOnce,
            encoder: Encoder::new(Style::Plain),
            client: Settings::INITIAL,
            in_force: Settings::INITIAL,
            resets: Vec::new(),
            client_goaway: None,
            ignored: 0,
            decoder: loona_hpack::Decoder::new(),
            sent_settings: VecDeque::new(),
            settings_said: false,
            acks_owed: 0,
            settings_acknowledged: false,
            streams: BTreeMap::new(),
            highest: 0,
            heads: VecDeque::new(),
            whole: VecDeque::new(),
            block: None,
            send_window: 65_535,
            receive_window: 65_535,
            last_accepted: u32::MAX,
            no_new_streams: false,
            update_owed: None,
            table_size: 4096,
            pings: VecDeque::new(),
            next_ping: 1,
        })
    }

    /// [`H2::accept`], and these settings said.
    pub(crate) fn open(conn: &'a mut Conn, settings: &[(u16, u32)]) -> Option<Self> {
        let mut h2 = Self::accept(conn)?;
        h2.settings(settings).then_some(h2)
    }

    /// Sends frames, in one piece; false when the client is gone. Acknowledgements of them are expected
    /// from now on; nothing else is kept of them.
    pub(crate) fn send(&mut self, frames: &[Frame]) -> bool {
        for frame in frames.iter().filter(|frame| frame.stream == 0 && !frame.has(frame::ACK)) {
            match (frame.kind, <[u8; 8]>::try_from(&frame.payload[..])) {
                (frame::PING, Ok(payload)) => self.pings.push_back(payload),
                (frame::SETTINGS, _) => self.sent_settings.push_back(settings_in(frame).collect()),
                _ => (),
            }
        }
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.conn.send(&bytes)
    }

    /// Sends SETTINGS, which bind the client once it acknowledges them.
    pub(crate) fn settings(&mut self, settings: &[(u16, u32)]) -> bool {
        self.settings_said = true;
        if let Some((_, size)) = settings.iter().find(|(id, _)| *id == frame::HEADER_TABLE_SIZE) {
            self.decoder.set_max_allowed_table_size(*size as usize);
        }
        let mut frames = vec![Frame::settings(settings)];
        frames.extend((0..std::mem::take(&mut self.acks_owed)).map(|_| Frame::settings_ack()));
        self.send(&frames)
    }

    /// Lets the client send more: on a stream, or on the connection (0).
    pub(crate) fn grant(&mut self, stream: u32, increment: u32) -> bool {
        match self.streams.get_mut(&stream) {
            _ if stream == 0 => self.receive_window += i64::from(increment),
            Some(stream) => stream.receive += i64::from(increment),
            None => (),
        }
        self.send(&[Frame::window_update(stream, increment)])
    }

    /// Says that no stream above `last` was or will be processed; those are ignored from now on.
    pub(crate) fn goaway(&mut self, last: u32, code: u32) -> bool {
        let mut out = Vec::new();
        self.goaway_into(last, code, &mut out);
        self.conn.send(&out)
    }

    /// From here on a new stream is a fault of the client's: it has seen GOAWAY.
    pub(crate) fn expect_no_new_streams(&mut self) {
        self.no_new_streams = true;
    }

    /// Resets a stream.
    pub(crate) fn reset(&mut self, stream: u32, code: u32) -> bool {
        self.streams.remove(&stream);
        self.send(&[Frame::reset(stream, code)])
    }

    /// The next whole request; `None` when the client closed.
    pub(crate) fn request(&mut self) -> Option<Asked> {
        while self.whole.is_empty() {
            self.next()?;
        }
        self.whole.pop_front()
    }

    /// A whole request that is here already.
    pub(crate) fn waiting(&mut self) -> Option<Asked> {
        self.whole.pop_front()
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

    /// Waits until the client has seen everything sent so far, and what it did about it is here: two
    /// exchanges of PING, since it answers a PING before it begins new streams.
    pub(crate) fn settle(&mut self) -> bool {
        (0..2).all(|_| {
            let payload = self.next_ping.to_be_bytes();
            self.next_ping += 1;
            if !self.send(&[Frame::ping(payload)]) {
                return false;
            }
            while !self.pings.is_empty() {
                if self.next().is_none() {
                    return false;
                }
            }
            true
        })
    }

    /// Streams open now, by this side's count.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Body bytes of a stream that arrived so far.
    pub(crate) fn received(&self, stream: u32) -> usize {
        self.streams.get(&stream).map_or(0, |stream| stream.asked.body.len())
    }

    /// Frames of this kind that the client sent.
    pub(crate) fn count(&self, kind: u8) -> usize {
        self.log.iter().filter(|seen| seen.kind == kind).count()
    }

    /// Gives an answer; false when the client is gone. Waits for windows.
    pub(crate) fn respond(&mut self, asked: &Asked, answer: &Answer) -> bool {
        self.conn.count_answer();
        let id = asked.stream;
        let mut out = self.render_head(asked, answer);
        let pieces = if answer.has_body(asked) { answer.times * answer.pieces.len() } else { 0 };
        for at in 0..pieces {
            let end = at + 1 == pieces && answer.trailers.is_empty();
            if !self.queue_data(id, &answer.pieces[at % answer.pieces.len()], end, &mut out) {
                // The client may reset a stream; that is no end of the connection.
                return self.conn.open();
            }
        }
        if pieces > 0 && !answer.trailers.is_empty() {
            let mut block = Vec::new();
            self.encoder.encode(&answer.trailers, &mut block);
            out.extend(self.header_frames(id, &block, true));
        }
        self.ended(id);
        self.conn.send(&out)
    }

    /// The bytes of an answer that fits into windows and a frame.
    pub(crate) fn render(&mut self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let mut out = self.render_head(asked, answer);
        let pieces: &[Vec<u8>] = if answer.has_body(asked) { &answer.pieces } else { &[] };
        for (at, piece) in pieces.iter().enumerate() {
            let end = at + 1 == pieces.len() && answer.trailers.is_empty();
            self.charge(asked.stream, piece.len());
            out.extend(Frame::data(asked.stream, piece, end).bytes());
        }
        if !pieces.is_empty() && !answer.trailers.is_empty() {
            let mut block = Vec::new();
            self.encoder.encode(&answer.trailers, &mut block);
            out.extend(self.header_frames(asked.stream, &block, true));
        }
        self.ended(asked.stream);
        out
    }

    /// A block with this status and these fields.
    pub(crate) fn block(&mut self, status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut fields = vec![(":status".into(), status.to_string())];
        fields.extend(headers.iter().map(|&(name, value)| (name.into(), value.into())));
        let mut block = Vec::new();
        self.encoder.encode(&fields, &mut block);
        block
    }

    /// The script ended a stream with frames of its own.
    pub(crate) fn ended(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.ended = true;
            if stream.client_ended {
                self.streams.remove(&id);
            }
        }
    }

    /// PINGs that are not acknowledged yet.
    pub(crate) fn pings_due(&self) -> usize {
        self.pings.len()
    }

    /// Sends nothing more; what the client still sends is read, checked and counted.
    pub(crate) fn finish(&mut self) {
        self.conn.end();
        self.conn.patience(Some(super::LINGER));
        while self.next().is_some() {}
    }

    fn render_head(&mut self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let id = asked.stream;
        let mut out = Vec::new();
        if answer.last {
            // What came in after this request is not processed.
            self.goaway_into(id, frame::NO_ERROR, &mut out);
        }
        for (status, headers) in &answer.interim {
            let mut fields = vec![(":status".to_owned(), status.to_string())];
            fields.extend(headers.iter().cloned());
            let mut block = Vec::new();
            self.encoder.encode(&fields, &mut block);
            out.extend(self.header_frames(id, &block, false));
        }
        let mut fields = vec![(":status".to_owned(), answer.status.to_string())];
        fields.extend(answer.headers.iter().cloned());
        fields.extend(answer.declared(asked).into_iter().map(|length| ("content-length".to_owned(), length)));
        let mut block = Vec::new();
        self.encoder.encode(&fields, &mut block);
        out.extend(self.header_frames(id, &block, !answer.has_body(asked)));
        out
    }

    fn goaway_into(&mut self, last: u32, code: u32, out: &mut Vec<u8>) {
        self.last_accepted = last;
        let ignored = self.streams.keys().filter(|id| **id > last).count() as u64;
        self.streams.retain(|id, _| *id <= last);
        self.ignored += ignored;
        self.conn.count_ignored(ignored);
        self.whole.retain(|asked| asked.stream <= last);
        self.heads.retain(|asked| asked.stream <= last);
        out.extend(Frame::goaway(last, code).bytes());
    }

    /// A block as HEADERS and as many CONTINUATIONs as it needs.
    fn header_frames(&self, id: u32, block: &[u8], end_stream: bool) -> Vec<u8> {
        let most = self.client.max_frame_size as usize;
        let mut parts: Vec<&[u8]> = block.chunks(most).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let last = parts.len() - 1;
        let mut out = Vec::new();
        for (at, part) in parts.into_iter().enumerate() {
            let end_headers = if at == last { frame::END_HEADERS } else { 0 };
            let end_stream = if end_stream && at == 0 { frame::END_STREAM } else { 0 };
            let kind = if at == 0 { frame::HEADERS } else { frame::CONTINUATION };
            out.extend(Frame::new(kind, end_headers | end_stream, id, part).bytes());
        }
        out
    }

    /// Adds a piece as DATA; sends what is there, and reads, when a window is shut. False when the
    /// stream or the client is gone.
    fn queue_data(&mut self, id: u32, piece: &[u8], end: bool, out: &mut Vec<u8>) -> bool {
        let mut rest = piece;
        loop {
            let Some(stream) = self.streams.get(&id) else { return false };
            let room = self.send_window.min(stream.send).min(self.client.max_frame_size.into());
            if room <= 0 && !rest.is_empty() {
                if !self.conn.send(out) {
                    return false;
                }
                out.clear();
                if self.next().is_none() {
                    return false;
                }
                continue;
            }
            let (now, later) = rest.split_at(rest.len().min(usize::try_from(room).unwrap_or(0)));
            rest = later;
            self.charge(id, now.len());
            out.extend(Frame::data(id, now, end && rest.is_empty()).bytes());
            if rest.is_empty() {
                return true;
            }
        }
    }

    /// Takes bytes off the windows for sending.
    pub(crate) fn charge(&mut self, id: u32, length: usize) {
        let length = i64::try_from(length).expect("pieces are small");
        self.send_window -= length;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send -= length;
        }
    }

    /// Bytes that may be sent on the connection, and on a stream.
    pub(crate) fn send_windows(&self, id: u32) -> (i64, i64) {
        (self.send_window, self.streams.get(&id).map_or(0, |stream| stream.send))
    }
}
