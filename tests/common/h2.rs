//! Owns the server side of one HTTP/2 connection of the tests. It is written apart from the product's
//! own code, checks the client against RFC 9113 with every frame it reads, and sends whatever a script
//! wants, right or wrong.

use std::collections::{BTreeMap, VecDeque};

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

    /// Reads a frame of the client's, checks it and acts on it; `None` when there is none: the client
    /// closed, or [`Conn::patience`] ran out.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let head = self.conn.take(FRAME_HEAD)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame::new(head[3], head[4], stream & ID_MASK, &self.conn.take_all(length)?);
        if stream != frame.stream {
            self.conn.complain("the reserved bit of a stream identifier is set".into());
        }
        if self.log.is_empty() && (frame.kind, frame.flags) != (frame::SETTINGS, 0) {
            self.conn.complain(format!("the first frame is not SETTINGS: {frame:?}"));
        }
        if length > self.in_force.max_frame_size as usize {
            self.conn.complain(format!(
                "a frame of {length} bytes, and {} are allowed",
                self.in_force.max_frame_size
            ));
        }
        self.log.push(Seen { kind: frame.kind, flags: frame.flags, stream: frame.stream, length });
        if let Err(complaint) = self.handle(&frame) {
            self.conn.complain(complaint);
        }
        Some(frame)
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

    fn handle(&mut self, frame: &Frame) -> Result<(), String> {
        if let Some((id, ..)) = self.block
            && (frame.kind != frame::CONTINUATION || frame.stream != id)
        {
            return Err(format!("{frame:?} inside a header block"));
        }
        match frame.kind {
            frame::DATA => self.data(frame),
            frame::HEADERS => self.headers(frame),
            frame::CONTINUATION => self.continuation(frame),
            frame::RST_STREAM => self.reset_by_client(frame),
            frame::SETTINGS => self.client_settings(frame),
            frame::PING => self.ping(frame),
            frame::GOAWAY => {
                let code = frame.payload.get(4..8).ok_or("a GOAWAY that is too short")?;
                let code = u32::from_be_bytes(code.try_into().map_err(|_| "four bytes")?);
                self.client_goaway = Some(code);
                self.conn.count_goaway(code);
                Ok(())
            }
            frame::WINDOW_UPDATE => self.window_update(frame),
            frame::PUSH_PROMISE => Err("a client cannot push".into()),
            _ => Ok(()),
        }
    }

    fn data(&mut self, frame: &Frame) -> Result<(), String> {
        let length = i64::try_from(frame.payload.len()).map_err(|_| "a long frame")?;
        self.receive_window -= length;
        if self.receive_window < 0 {
            return Err(format!("DATA exceeds the connection's window by {}", -self.receive_window));
        }
        if self.credit == Credit::AtOnce && length > 0 {
            self.grant(0, frame.payload.len() as u32);
        }
        let Some(stream) = self.streams.get_mut(&frame.stream) else {
            // What was reset or not accepted may still be on its way.
            return if frame.stream > self.highest {
                Err(format!("DATA on idle stream {}", frame.stream))
            } else {
                Ok(())
            };
        };
        if stream.client_ended {
            return Err(format!("DATA after END_STREAM on stream {}", frame.stream));
        }
        stream.receive -= length;
        if stream.receive < 0 {
            return Err(format!("DATA exceeds the window of stream {} by {}", frame.stream, -stream.receive));
        }
        if frame.has(frame::PADDED) {
            return Err("this client has no reason to pad".into());
        }
        stream.asked.body.extend_from_slice(&frame.payload);
        if frame.has(frame::END_STREAM) {
            self.client_ended(frame.stream)
        } else {
            if self.credit == Credit::AtOnce && length > 0 {
                self.grant(frame.stream, frame.payload.len() as u32);
            }
            Ok(())
        }
    }

    fn client_ended(&mut self, id: u32) -> Result<(), String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        stream.client_ended = true;
        let asked = std::mem::take(&mut stream.asked);
        let (ended, declared) = (stream.ended, declared_length(&asked));
        let length = asked.body.len();
        if ended {
            self.streams.remove(&id);
        } else {
            self.whole.push_back(asked);
        }
        self.conn.count_request();
        match declared {
            Some(declared) if declared != length => {
                Err(format!("stream {id} declared {declared} bytes and has {length}"))
            }
            _ => Ok(()),
        }
    }

    fn headers(&mut self, frame: &Frame) -> Result<(), String> {
        let mut payload = &frame.payload[..];
        if frame.has(frame::PADDED) {
            return Err("this client has no reason to pad".into());
        }
        if frame.has(frame::PRIORITISED) {
            payload = payload.get(5..).ok_or("HEADERS too short for priority")?;
        }
        self.block = Some((frame.stream, frame.has(frame::END_STREAM), payload.to_vec()));
        if frame.has(frame::END_HEADERS) { self.block_complete() } else { Ok(()) }
    }

    fn continuation(&mut self, frame: &Frame) -> Result<(), String> {
        let (_, _, block) = self.block.as_mut().ok_or("CONTINUATION without HEADERS")?;
        block.extend_from_slice(&frame.payload);
        if frame.has(frame::END_HEADERS) { self.block_complete() } else { Ok(()) }
    }

    fn block_complete(&mut self) -> Result<(), String> {
        let Some((id, end, block)) = self.block.take() else { return Ok(()) };
        if let Some(size) = self.update_owed.take()
            && block.first().is_none_or(|first| first & 0xe0 != 0x20)
        {
            self.conn.complain(format!("a header table of {size} bytes was acknowledged and not kept to"));
        }
        let fields = self.decoder.decode(&block).map_err(|error| format!("a header block: {error:?}"))?;
        if id % 2 == 0 || id <= self.highest {
            return Err(format!("stream {id} after stream {}", self.highest));
        }
        let second = self.highest != 0;
        self.highest = id;
        if self.no_new_streams {
            self.conn.complain(format!("stream {id} after GOAWAY was seen"));
        }
        if second && !self.settings_acknowledged {
            self.conn.complain(format!("stream {id} before the server's settings were acknowledged"));
        }
        if id > self.last_accepted {
            self.ignored += 1;
            self.conn.count_ignored(1);
            return Ok(());
        }
        let asked = asked(id, fields)?;
        self.streams.insert(
            id,
            Stream {
                asked: asked.clone(),
                send: self.client.initial_window_size.into(),
                receive: self.in_force.initial_window_size.into(),
                client_ended: false,
                ended: false,
            },
        );
        self.heads.push_back(asked);
        let (open, most) = (self.streams.len(), self.in_force.max_concurrent_streams);
        self.conn.note_open_streams(open as u64);
        if end {
            self.client_ended(id)?;
        }
        if open > most as usize {
            return Err(format!("{open} streams are open, and {most} are allowed"));
        }
        Ok(())
    }

    fn reset_by_client(&mut self, frame: &Frame) -> Result<(), String> {
        if frame.payload.len() != 4 || frame.stream == 0 || frame.stream > self.highest {
            return Err(format!("a malformed or misplaced RST_STREAM: {frame:?}"));
        }
        self.resets.push((frame.stream, frame.word().unwrap_or(0)));
        self.conn.count_reset(frame.word().unwrap_or(0));
        self.streams.remove(&frame.stream);
        Ok(())
    }

    fn client_settings(&mut self, frame: &Frame) -> Result<(), String> {
        if frame.stream != 0 || !frame.payload.len().is_multiple_of(6) {
            return Err(format!("a malformed SETTINGS: {frame:?}"));
        }
        if frame.has(frame::ACK) {
            if !frame.payload.is_empty() {
                return Err("an acknowledgement with settings in it".into());
            }
            return self.acknowledged();
        }
        for (id, value) in settings_in(frame) {
            let valid = match id {
                frame::ENABLE_PUSH => value <= 1,
                frame::INITIAL_WINDOW_SIZE => value <= MOST_WINDOW,
                frame::MAX_FRAME_SIZE => (16_384..1 << 24).contains(&value),
                _ => true,
            };
            if !valid {
                return Err(format!("setting {id} of {value}"));
            }
            if id == frame::INITIAL_WINDOW_SIZE {
                let change = i64::from(value) - i64::from(self.client.initial_window_size);
                self.streams.values_mut().for_each(|stream| stream.send += change);
            }
            self.client.apply(id, value);
        }
        self.encoder.bound(self.client.header_table_size as usize);
        if self.settings_said {
            self.send(&[Frame::settings_ack()]);
        } else {
            self.acks_owed += 1;
        }
        Ok(())
    }

    fn acknowledged(&mut self) -> Result<(), String> {
        let settings = self.sent_settings.pop_front().ok_or("an acknowledgement of nothing")?;
        self.settings_acknowledged = true;
        for (id, value) in settings {
            if id == frame::INITIAL_WINDOW_SIZE {
                let change = i64::from(value) - i64::from(self.in_force.initial_window_size);
                self.streams.values_mut().for_each(|stream| stream.receive += change);
            }
            if id == frame::HEADER_TABLE_SIZE && value < self.table_size {
                self.table_size = value;
                self.update_owed = Some(value);
            }
            self.in_force.apply(id, value);
        }
        Ok(())
    }

    fn ping(&mut self, frame: &Frame) -> Result<(), String> {
        let payload: [u8; 8] =
            frame.payload[..].try_into().map_err(|_| format!("a malformed PING: {frame:?}"))?;
        if !frame.has(frame::ACK) {
            self.send(&[Frame::ping(payload).flags(frame::ACK)]);
            return Ok(());
        }
        match self.pings.pop_front() {
            Some(expected) if expected == payload => Ok(()),
            other => Err(format!("PING acknowledged with {payload:?}, {other:?} was due")),
        }
    }

    /// PINGs that are not acknowledged yet.
    pub(crate) fn pings_due(&self) -> usize {
        self.pings.len()
    }

    fn window_update(&mut self, frame: &Frame) -> Result<(), String> {
        let increment = frame.word().filter(|_| frame.payload.len() == 4).ok_or("a short WINDOW_UPDATE")?;
        if increment == 0 || increment > MOST_WINDOW {
            return Err(format!("a WINDOW_UPDATE by {increment}"));
        }
        if frame.stream > self.highest {
            return Err(format!("a WINDOW_UPDATE on idle stream {}", frame.stream));
        }
        let window = match self.streams.get_mut(&frame.stream) {
            _ if frame.stream == 0 => &mut self.send_window,
            Some(stream) => &mut stream.send,
            None => return Ok(()),
        };
        *window += i64::from(increment);
        if *window > i64::from(MOST_WINDOW) {
            return Err(format!("a window of {window} on stream {}", frame.stream));
        }
        Ok(())
    }
}

/// Settings of a SETTINGS frame, a rest that is too short left out.
fn settings_in(frame: &Frame) -> impl Iterator<Item = (u16, u32)> + '_ {
    frame.payload.chunks_exact(6).map(|setting| {
        let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
        (u16::from_be_bytes([setting[0], setting[1]]), value)
    })
}

fn declared_length(asked: &Asked) -> Option<usize> {
    let (_, value) = asked.headers.iter().find(|(name, _)| name == "content-length")?;
    Some(value.parse().unwrap_or(usize::MAX))
}

/// A request from its fields, checked by RFC 9113 §8.2 and §8.3.
fn asked(stream: u32, fields: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Asked, String> {
    let mut asked = Asked { stream, ..Asked::default() };
    let (mut scheme, mut pseudo) = (String::new(), 0);
    for (name, value) in fields {
        let name = String::from_utf8(name).map_err(|_| "a name that is not text")?;
        let value = String::from_utf8_lossy(&value).into_owned();
        if name.starts_with(':') {
            if !asked.headers.is_empty() {
                return Err(format!("{name} after a regular field"));
            }
            pseudo += 1;
        }
        match &name[..] {
            ":method" => asked.method = value,
            ":path" => asked.path = value,
            ":authority" => asked.authority = value,
            ":scheme" => scheme = value,
            "host" | "connection" | "transfer-encoding" | "keep-alive" | "upgrade" => {
                return Err(format!("a field that has no place in HTTP/2 here: {name}"));
            }
            _ if name.bytes().any(|byte| byte.is_ascii_uppercase()) || name.starts_with(':') => {
                return Err(format!("the field name {name}"));
            }
            _ => asked.headers.push((name, value)),
        }
    }
    if pseudo != 4 || asked.method.is_empty() || asked.path.is_empty() || asked.authority.is_empty() {
        return Err(format!("the pseudo-header fields of stream {stream}: {asked:?}"));
    }
    if !matches!(&scheme[..], "http" | "https") {
        return Err(format!("the scheme `{scheme}`"));
    }
    Ok(asked)
}

const FRAME_HEAD: usize = 9;
const ID_MASK: u32 = 0x7fff_ffff;
const MOST_WINDOW: u32 = 0x7fff_ffff;
