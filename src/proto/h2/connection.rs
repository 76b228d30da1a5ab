//! Owns the state of one connection: frames in, frames out, responses told to a [`Responses`].

use std::collections::VecDeque;

use super::frame::{self, Header, STREAM_MASK, flag, kind, setting};
use super::request::{DEFAULT_TABLE, Request};
use super::streams::{Phase, Stream, Streams};
use super::violation::{ErrorCode, StreamViolation, Violation};
use crate::proto::exchange::{Failure, Responses, Transcript};
use crate::proto::hpack::{self, Decoder, Kind};

/// What this side tells the server, and how far it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// M: the most streams open at one time, at least 1.
    pub most: u32,
    /// Receive window of a stream in bytes, at most 2^31 − 1.
    pub stream_window: u32,
    /// Receive window of the connection in bytes, 65 535 to 2^31 − 1.
    pub connection_window: u32,
    /// SETTINGS_HEADER_TABLE_SIZE in bytes, at most 4096.
    pub header_table: u32,
    /// Identifier of the first stream, odd.
    pub first_stream: u32,
}

impl Config {
    /// The settings of a load: windows so large that a server never waits for them.
    pub fn new(most: u32) -> Self {
        Self {
            most,
            stream_window: 16 << 20,
            connection_window: 1 << 30,
            header_table: DEFAULT_TABLE,
            first_stream: 1,
        }
    }
}

/// One connection.
///
/// Feed what arrived to [`Connection::receive`]; call [`Connection::open`] while
/// [`Connection::room`] is positive; [`Connection::pump`] and then send what stands in
/// [`Connection::output`].
#[derive(Debug)]
pub struct Connection<T> {
    config: Config,
    out: Vec<u8>,
    reading: Reading,
    /// The start of a frame whose end has not arrived; never DATA.
    partial: Vec<u8>,
    decoder: Decoder,
    /// A field block that is to be continued.
    continued: Option<Continued>,
    block: Vec<u8>,
    streams: Streams<T>,
    cancelled: Cancelled,
    next_stream: u32,
    server: Server,
    table: Table,
    /// What may be sent on the whole connection.
    window: i32,
    /// Received on the whole connection since the last WINDOW_UPDATE.
    received: u32,
    uploads: VecDeque<u32>,
    goaway: Option<(u32, ErrorCode)>,
    idle_frames: u32,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    Frames,
    Data(Data),
    /// So many bytes of a payload that nobody wants.
    Skip(u32),
}

#[derive(Clone, Copy, Debug)]
struct Data {
    stream: u32,
    /// Payload left, padding included.
    left: u32,
    padding: u32,
    /// The length of the padding is still to be read.
    padded: bool,
    end: bool,
}

#[derive(Clone, Copy, Debug)]
struct Continued {
    stream: u32,
    end_stream: bool,
    frames: u32,
}

/// The server's settings, as they stand.
#[derive(Clone, Copy, Debug)]
struct Server {
    /// The first SETTINGS have come.
    known: bool,
    /// It has acknowledged this side's.
    acknowledged: bool,
    max_streams: u32,
    initial_window: i32,
    frame_size: usize,
}

/// The server's dynamic table, as far as requests fill it.
#[derive(Clone, Copy, Debug)]
struct Table {
    form: Form,
    /// Its maximum size, as last told to the server's decoder.
    size: u32,
    /// A size that the next field block has to announce first (RFC 7541 §4.2).
    owed: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    First,
    Next,
    Plain,
}

/// Streams this side has reset, on which frames may still be under way.
#[derive(Debug, Default)]
struct Cancelled {
    recent: VecDeque<u32>,
    /// There were more than are remembered: any ended stream may be one of them.
    forgot: bool,
}

impl<T: Default + Clone> Connection<T> {
    /// A connection whose output is the preface, SETTINGS and the connection's window.
    pub fn new(config: Config) -> Self {
        let mut out = frame::PREFACE.to_vec();
        let mut settings = vec![
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, config.stream_window),
            (setting::MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST),
        ];
        if config.header_table != DEFAULT_TABLE {
            settings.push((setting::HEADER_TABLE_SIZE, config.header_table));
        }
        frame::settings(&mut out, &settings);
        if config.connection_window > DEFAULT_WINDOW as u32 {
            frame::window_update(&mut out, 0, config.connection_window - DEFAULT_WINDOW as u32);
        }
        Self {
            config,
            out,
            reading: Reading::Frames,
            partial: Vec::new(),
            decoder: Decoder::new(config.header_table, MAX_HEADER_LIST),
            continued: None,
            block: Vec::new(),
            streams: Streams::new(),
            cancelled: Cancelled::default(),
            next_stream: config.first_stream,
            server: Server {
                known: false,
                acknowledged: false,
                max_streams: u32::MAX,
                initial_window: DEFAULT_WINDOW,
                frame_size: frame::LEAST_SIZE,
            },
            table: Table { form: Form::First, size: DEFAULT_TABLE, owed: None },
            window: DEFAULT_WINDOW,
            received: 0,
            uploads: VecDeque::new(),
            goaway: None,
            idle_frames: 0,
        }
    }

    /// Heads are kept in words from now on: to be called before anything is received.
    pub fn transcribe(&mut self) {
        self.decoder.transcribe();
    }

    /// The last head of a final response in words, where that is wanted.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.decoder.transcript()
    }

    /// Bytes to be sent; the caller takes them out.
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Streams that are open.
    #[inline]
    pub fn streams(&self) -> u32 {
        self.streams.len()
    }

    /// Effective M: how many streams may be open at one time, by this side's and the server's limit.
    pub fn limit(&self) -> u32 {
        self.config.most.min(self.server.max_streams)
    }

    /// True once the server's settings are known.
    pub fn settled(&self) -> bool {
        self.server.known
    }

    /// How many streams may be opened now.
    #[inline]
    pub fn room(&self) -> u32 {
        if self.ending() {
            return 0;
        }
        if !self.server.known {
            // The server's limits are not known: a second stream might be one too many.
            return u32::from(self.next_stream == self.config.first_stream);
        }
        self.limit().saturating_sub(self.streams.len())
    }

    /// True when no stream is open and none can be opened any more.
    #[inline]
    pub fn finished(&self) -> bool {
        self.ending() && self.streams.len() == 0
    }

    #[inline]
    fn ending(&self) -> bool {
        self.goaway.is_some() || self.next_stream > STREAM_MASK
    }

    /// Opens a stream with the request; [`Connection::room`] was positive. Returns its identifier.
    #[inline]
    pub fn open(&mut self, request: &Request, exchange: T) -> u32 {
        let id = self.next_stream;
        self.next_stream += 2;
        self.write_headers(request, id);
        let stream = Stream::new(id, self.server.initial_window, request.body.len() as u64, exchange);
        if stream.queued {
            self.uploads.push_back(id);
        }
        self.streams.insert(stream);
        id
    }

    #[inline]
    fn write_headers(&mut self, request: &Request, id: u32) {
        let image = match self.table.form {
            Form::Next => &request.next,
            Form::Plain => &request.plain,
            Form::First => return self.write_any_headers(request, id),
        };
        if self.table.owed.is_some() || image.is_empty() {
            return self.write_any_headers(request, id);
        }
        frame::image(&mut self.out, image, id);
    }

    /// Writes HEADERS of whatever form and length.
    #[cold]
    fn write_any_headers(&mut self, request: &Request, id: u32) {
        let block = match self.table.form {
            Form::First => &request.block.first,
            Form::Next => &request.block.next,
            Form::Plain => &request.block.plain,
        };
        let mut updated = Vec::new();
        if let Some(size) = self.table.owed.take() {
            hpack::table_size_update(size, &mut updated);
        }
        updated.extend_from_slice(block);
        frame::headers(&mut self.out, &updated, self.server.frame_size, request.body.is_empty(), id);
        if self.table.form == Form::First {
            self.table.form = if request.block.table_size > 0 { Form::Next } else { Form::Plain };
        }
    }

    /// Appends DATA of the requests' bodies to the output, as far as the windows allow, until the
    /// output is about `most` bytes long. The streams take turns.
    #[inline]
    pub fn pump(&mut self, request: &Request, most: usize) {
        while !self.uploads.is_empty() && self.window > 0 && self.out.len() < most {
            self.pump_one(request);
        }
    }

    fn pump_one(&mut self, request: &Request) {
        let Some(id) = self.uploads.pop_front() else { return };
        let Some(stream) = self.streams.get(id) else { return };
        let left = usize::try_from(stream.unsent).unwrap_or(usize::MAX).min(request.body.len());
        let from = request.body.len() - left;
        let window = usize::try_from(stream.window.min(self.window)).unwrap_or(0);
        let length = left.min(self.server.frame_size).min(window);
        if length == 0 {
            // It waits for its window, and is queued again when that grows.
            stream.queued = false;
            return;
        }
        let last = length == left;
        frame::header(&mut self.out, length, kind::DATA, if last { flag::END_STREAM } else { 0 }, id);
        self.out.extend_from_slice(&request.body[from..from + length]);
        stream.unsent -= length as u64;
        stream.window -= length as i32;
        self.window -= length as i32;
        stream.queued = !last;
        if !last {
            self.uploads.push_back(id);
        }
        self.idle_frames = 0;
    }

    /// Takes bytes in, whatever way they are split.
    ///
    /// # Errors
    /// A connection error; the connection is to be dropped, and the output ends in the GOAWAY that
    /// says so.
    #[inline]
    pub fn receive(
        &mut self,
        request: &Request,
        input: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        let done = self.read(request, input, responses);
        if let Err(violation) = done {
            frame::goaway(&mut self.out, violation.code().0);
        }
        done
    }

    #[inline]
    fn read(
        &mut self,
        request: &Request,
        mut input: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        loop {
            match self.reading {
                Reading::Frames if self.partial.is_empty() => {
                    let Some(head) = input.first_chunk() else {
                        self.partial.extend_from_slice(input);
                        return Ok(());
                    };
                    let header = Header::read(head);
                    if self.usual(request, header, input, responses)? {
                        input = &input[frame::HEADER + header.length as usize..];
                        continue;
                    }
                    self.admit(header, head)?;
                    if self.begins_stream_of_bytes(header, responses)? {
                        input = &input[frame::HEADER..];
                        continue;
                    }
                    let end = frame::HEADER + header.length as usize;
                    let Some(payload) = input.get(frame::HEADER..end) else {
                        self.partial.extend_from_slice(input);
                        return Ok(());
                    };
                    input = &input[end..];
                    self.frame(request, header, payload, responses)?;
                }
                Reading::Frames => {
                    if !self.complete_partial(request, &mut input, responses)? {
                        return Ok(());
                    }
                }
                Reading::Data(data) => {
                    if !self.data(data, &mut input, responses)? {
                        return Ok(());
                    }
                }
                Reading::Skip(left) => {
                    let skipped = input.len().min(left as usize);
                    input = &input[skipped..];
                    let left = left - skipped as u32;
                    if left > 0 {
                        self.reading = Reading::Skip(left);
                        return Ok(());
                    }
                    self.reading = Reading::Frames;
                }
            }
        }
    }

    /// Acts on what nearly every frame is: a whole HEADERS with all of its block, or a whole DATA within
    /// all limits, on an open stream; false for all else, which then goes the way that checks everything.
    #[inline]
    fn usual(
        &mut self,
        request: &Request,
        header: Header,
        input: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<bool, Violation> {
        let length = header.length as usize;
        let Some(payload) = input.get(frame::HEADER..frame::HEADER + length) else { return Ok(false) };
        if !self.server.known || self.continued.is_some() || length > frame::LEAST_SIZE {
            return Ok(false);
        }
        let end = header.has(flag::END_STREAM);
        match (header.kind, header.flags & (flag::PADDED | flag::PRIORITY | flag::END_HEADERS)) {
            (kind::HEADERS, flag::END_HEADERS) if header.stream != 0 => {
                self.field_block(request, header.stream, end, payload, responses).map(|()| true)
            }
            (kind::DATA, flags) if flags & flag::PADDED == 0 => {
                Ok(self.usual_data(header, end, payload, responses))
            }
            _ => Ok(false),
        }
    }

    #[inline]
    fn usual_data(
        &mut self,
        header: Header,
        end: bool,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> bool {
        let Some(place) = self.streams.find(header.stream) else { return false };
        let length = header.length;
        let (window, received) = (self.config.stream_window, self.received + length);
        let stream = self.streams.at(place);
        let usual = stream.phase == Phase::Body
            && length > 0
            && received < self.config.connection_window / 2
            && stream.received + length < window / 2
            && stream.remaining.is_none_or(|remaining| remaining >= u64::from(length));
        if !usual {
            return false;
        }
        self.received = received;
        self.idle_frames = 0;
        stream.received += length;
        if let Some(remaining) = &mut stream.remaining {
            *remaining -= u64::from(length);
        }
        responses.data(&mut stream.exchange, payload);
        if end {
            if stream.unsent == 0 && stream.remaining.is_none_or(|remaining| remaining == 0) {
                responses.complete(self.streams.remove_at(place));
            } else {
                self.finish(header.stream, responses);
            }
        }
        true
    }

    /// Adds to the frame that has begun, and acts on it when it is whole; false when more is needed.
    #[cold]
    fn complete_partial(
        &mut self,
        request: &Request,
        input: &mut &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<bool, Violation> {
        let fill = |partial: &mut Vec<u8>, input: &mut &[u8], size: usize| {
            let (part, rest) = input.split_at(input.len().min(size.saturating_sub(partial.len())));
            partial.extend_from_slice(part);
            *input = rest;
        };
        if self.partial.len() < frame::HEADER {
            fill(&mut self.partial, input, frame::HEADER);
            let Some(head) = self.partial.first_chunk().copied() else { return Ok(false) };
            let header = Header::read(&head);
            self.admit(header, &head)?;
            if self.begins_stream_of_bytes(header, responses)? {
                self.partial.clear();
                return Ok(true);
            }
        }
        let Some(head) = self.partial.first_chunk() else { return Ok(false) };
        let header = Header::read(head);
        let size = frame::HEADER + header.length as usize;
        fill(&mut self.partial, input, size);
        if self.partial.len() < size {
            return Ok(false);
        }
        let mut whole = std::mem::take(&mut self.partial);
        let done = self.frame(request, header, &whole[frame::HEADER..], responses);
        whole.clear();
        self.partial = whole;
        done.map(|()| true)
    }

    /// Whether a frame may come here at all.
    #[inline]
    fn admit(&self, header: Header, bytes: &[u8; frame::HEADER]) -> Result<(), Violation> {
        if !self.server.known {
            if bytes.starts_with(b"HTTP/1.") {
                return Err(Violation::Http1Answer);
            }
            if header.kind != kind::SETTINGS || header.has(flag::ACK) {
                return Err(Violation::SettingsNotFirst);
            }
        }
        if header.length as usize > frame::LEAST_SIZE {
            // This side never asks for larger ones.
            return Err(Violation::FrameSize);
        }
        match self.continued {
            Some(continued) if header.kind != kind::CONTINUATION || header.stream != continued.stream => {
                Err(Violation::Continuation)
            }
            _ => Ok(()),
        }
    }

    /// Frames whose payload is passed on, or over, as it comes: DATA and unknown types.
    #[inline]
    fn begins_stream_of_bytes(
        &mut self,
        header: Header,
        responses: &mut impl Responses<T>,
    ) -> Result<bool, Violation> {
        match header.kind {
            kind::DATA => self.begin_data(header, responses).map(|()| true),
            kind::HEADERS..=kind::CONTINUATION => Ok(false),
            _ => {
                self.idle()?;
                self.reading = Reading::Skip(header.length);
                Ok(true)
            }
        }
    }

    /// One more frame that moved no request on.
    fn idle(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > MAX_IDLE_FRAMES { Err(Violation::Flood) } else { Ok(()) }
    }

    #[inline]
    fn begin_data(&mut self, header: Header, responses: &mut impl Responses<T>) -> Result<(), Violation> {
        let Header { length, stream: id, .. } = header;
        if id == 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        // Padding counts as well (RFC 9113 §6.1), and so does data that nobody wants.
        if length > self.config.connection_window - self.received {
            return Err(Violation::FlowControl);
        }
        self.received += length;
        if self.received >= self.config.connection_window / 2 {
            frame::window_update(&mut self.out, 0, self.received);
            self.received = 0;
        }
        let end = header.has(flag::END_STREAM);
        if length == 0 && !end {
            self.idle()?;
        }
        self.reading = Reading::Skip(length);
        let window = self.config.stream_window;
        let Some(stream) = self.streams.get(id) else { return self.ended(id, end) };
        if stream.phase == Phase::AwaitingHeaders {
            self.fail(id, StreamViolation::DataBeforeHeaders, responses);
            return Ok(());
        }
        if length > window - stream.received {
            self.fail(id, StreamViolation::FlowControl, responses);
            return Ok(());
        }
        stream.received += length;
        if stream.received >= window / 2 && !end {
            frame::window_update(&mut self.out, id, stream.received);
            stream.received = 0;
        }
        let padded = header.has(flag::PADDED);
        if padded && length == 0 {
            return Err(Violation::FrameSize);
        }
        self.reading = Reading::Data(Data { stream: id, left: length, padding: 0, padded, end });
        Ok(())
    }

    /// Whether this side has ever opened the stream; any other is idle (RFC 9113 §5.1).
    fn was_opened(&self, id: u32) -> bool {
        id & 1 == 1 && (self.config.first_stream..self.next_stream).contains(&id)
    }

    /// HEADERS or DATA on a stream that is not open.
    fn ended(&mut self, id: u32, end: bool) -> Result<(), Violation> {
        if !self.was_opened(id) {
            return Err(Violation::IdleStream);
        }
        if !self.cancelled.holds(id) {
            return Err(Violation::ClosedStream);
        }
        if end {
            self.cancelled.remove(id);
        }
        self.idle()
    }

    /// Passes on what is here of a DATA frame; false when more is to come.
    #[inline]
    fn data(
        &mut self,
        mut data: Data,
        input: &mut &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<bool, Violation> {
        if data.padded {
            let Some((&padding, rest)) = input.split_first() else { return Ok(false) };
            *input = rest;
            data.left -= 1;
            data.padding = u32::from(padding);
            data.padded = false;
            if data.padding > data.left {
                return Err(Violation::Padding);
            }
            // Padding alone is as empty as no payload at all.
            if data.padding == data.left && !data.end {
                self.idle()?;
            }
        }
        let here = input.len().min((data.left - data.padding) as usize);
        if here > 0 {
            let (bytes, rest) = input.split_at(here);
            *input = rest;
            data.left -= here as u32;
            self.idle_frames = 0;
            self.body(data.stream, bytes, responses);
        }
        if data.left == data.padding {
            let padding = input.len().min(data.left as usize);
            *input = &input[padding..];
            data.left -= padding as u32;
            data.padding = data.left;
        }
        if data.left > 0 {
            self.reading = Reading::Data(data);
            return Ok(false);
        }
        self.reading = Reading::Frames;
        if data.end {
            self.finish(data.stream, responses);
        }
        Ok(true)
    }

    #[inline]
    fn body(&mut self, id: u32, bytes: &[u8], responses: &mut impl Responses<T>) {
        // The stream may have been given up in the middle of the frame.
        let Some(stream) = self.streams.get(id) else { return };
        if stream.phase == Phase::NoBody {
            return self.fail(id, StreamViolation::BodyNotAllowed, responses);
        }
        if let Some(remaining) = &mut stream.remaining {
            match remaining.checked_sub(bytes.len() as u64) {
                Some(less) => *remaining = less,
                None => return self.fail(id, StreamViolation::ContentLengthMismatch, responses),
            }
        }
        responses.data(&mut stream.exchange, bytes);
    }

    /// The response is at its end.
    #[inline]
    fn finish(&mut self, id: u32, responses: &mut impl Responses<T>) {
        let Some(stream) = self.streams.get(id) else { return self.cancelled.remove(id) };
        if stream.remaining.is_some_and(|remaining| remaining > 0) {
            return self.fail(id, StreamViolation::ContentLengthMismatch, responses);
        }
        if stream.unsent > 0 {
            self.stop_upload(id);
        }
        if let Some(exchange) = self.streams.remove(id) {
            responses.complete(exchange);
        }
    }

    /// The response came before the whole request was sent: nobody wants the rest.
    #[cold]
    fn stop_upload(&mut self, id: u32) {
        frame::rst_stream(&mut self.out, id, ErrorCode::CANCEL.0);
        self.uploads.retain(|upload| *upload != id);
    }

    #[cold]
    fn fail(&mut self, id: u32, violation: StreamViolation, responses: &mut impl Responses<T>) {
        if let Some(exchange) = self.reset(id, violation.code()) {
            responses.failed(exchange, violation.into());
        }
    }

    /// Ends a stream from this side.
    fn reset(&mut self, id: u32, code: ErrorCode) -> Option<T> {
        let exchange = self.streams.remove(id)?;
        frame::rst_stream(&mut self.out, id, code.0);
        self.cancelled.add(id);
        Some(exchange)
    }

    #[inline]
    fn frame(
        &mut self,
        request: &Request,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        match header.kind {
            kind::HEADERS => self.headers(request, header, payload, responses),
            kind::CONTINUATION => self.continuation(request, header, payload, responses),
            kind::RST_STREAM => self.rst_stream(header, payload, responses),
            kind::SETTINGS => self.settings(request, header, payload, responses),
            kind::PING => self.ping(header, payload),
            kind::GOAWAY => self.goaway(header, payload, responses),
            kind::WINDOW_UPDATE => self.window_update(header, payload, responses),
            kind::PRIORITY => self.priority(header, payload, responses),
            kind::PUSH_PROMISE => Err(Violation::PushPromise),
            // Passed over in `begins_stream_of_bytes`.
            _ => Ok(()),
        }
    }

    #[inline]
    fn headers(
        &mut self,
        request: &Request,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        if header.stream == 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        let block = match header.flags & (flag::PADDED | flag::PRIORITY) {
            0 => payload,
            _ => unwrap_headers(header, payload)?,
        };
        let end_stream = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.field_block(request, header.stream, end_stream, block, responses);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.continued = Some(Continued { stream: header.stream, end_stream, frames: 0 });
        Ok(())
    }

    fn continuation(
        &mut self,
        request: &Request,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        let Some(mut continued) = self.continued else { return Err(Violation::Continuation) };
        continued.frames += 1;
        if continued.frames > MAX_CONTINUATIONS || self.block.len() + payload.len() > MAX_BLOCK {
            return Err(Violation::FieldBlockTooLong);
        }
        self.block.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            self.continued = Some(continued);
            return Ok(());
        }
        self.continued = None;
        let block = std::mem::take(&mut self.block);
        self.field_block(request, continued.stream, continued.end_stream, &block, responses)
    }

    #[inline]
    fn field_block(
        &mut self,
        request: &Request,
        id: u32,
        end: bool,
        block: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.get(id) else {
            // The table must follow, whoever the fields are for.
            self.decoder.decode(block, Kind::Response).map_err(Violation::Hpack)?;
            return self.ended(id, end);
        };
        if stream.phase != Phase::AwaitingHeaders {
            let section = self.decoder.decode(block, Kind::Trailers).map_err(Violation::Hpack)?;
            match section.malformed {
                Some(malformed) => self.fail(id, StreamViolation::Fields(malformed), responses),
                None if end => self.finish(id, responses),
                None => self.fail(id, StreamViolation::TrailersWithoutEnd, responses),
            }
            return Ok(());
        }
        let section = self.decoder.decode(block, Kind::Response).map_err(Violation::Hpack)?;
        if let Some(malformed) = section.malformed {
            self.fail(id, StreamViolation::Fields(malformed), responses);
            return Ok(());
        }
        if section.status < 200 {
            self.interim(id, section.status, end, responses);
            return Ok(());
        }
        self.idle_frames = 0;
        let bodiless = request.head || matches!(section.status, 204 | 304);
        stream.phase = if bodiless { Phase::NoBody } else { Phase::Body };
        stream.remaining = if bodiless { None } else { section.content_length };
        responses.headers(&mut stream.exchange, section.status);
        if end {
            self.finish(id, responses);
        }
        Ok(())
    }

    #[cold]
    fn interim(&mut self, id: u32, status: u16, end: bool, responses: &mut impl Responses<T>) {
        let Some(stream) = self.streams.get(id) else { return };
        stream.interim = stream.interim.saturating_add(1);
        let fault = match (status, end) {
            (101, _) => StreamViolation::SwitchingProtocols,
            (_, true) => StreamViolation::InterimEndsStream,
            _ if stream.interim > MAX_INTERIM => StreamViolation::TooManyInterim,
            _ => {
                return responses.interim(&mut stream.exchange);
            }
        };
        self.fail(id, fault, responses);
    }

    #[cold]
    fn rst_stream(
        &mut self,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        let code = ErrorCode(self.number_of(header, payload)?);
        self.cancelled.remove(header.stream);
        match self.streams.remove(header.stream) {
            None => self.idle(),
            Some(exchange) if code == ErrorCode::REFUSED_STREAM => {
                responses.failed(exchange, Failure::Refused);
                Ok(())
            }
            Some(exchange) => {
                responses.failed(exchange, code.into());
                Ok(())
            }
        }
    }

    /// The payload of a frame that is one number, on a stream that was opened once.
    fn number_of(&self, header: Header, payload: &[u8]) -> Result<u32, Violation> {
        let number = u32::from_be_bytes(payload.try_into().map_err(|_| Violation::FrameSize)?);
        if header.stream == 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        if !self.was_opened(header.stream) {
            return Err(Violation::IdleStream);
        }
        Ok(number)
    }

    #[cold]
    fn settings(
        &mut self,
        request: &Request,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        if header.stream != 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        self.idle()?;
        if header.has(flag::ACK) {
            if !std::mem::replace(&mut self.server.acknowledged, true) {
                self.decoder.settings_acknowledged();
            }
            return if payload.is_empty() { Ok(()) } else { Err(Violation::FrameSize) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Violation::FrameSize);
        }
        for &[a, b, value @ ..] in settings {
            self.setting(request, u16::from_be_bytes([a, b]), u32::from_be_bytes(value))?;
        }
        self.server.known = true;
        frame::settings_ack(&mut self.out);
        responses.limit(self.limit());
        Ok(())
    }

    fn setting(&mut self, request: &Request, id: u16, value: u32) -> Result<(), Violation> {
        match id {
            setting::HEADER_TABLE_SIZE => self.table.resize(value, request.block.table_size),
            // A server may only say that it will not be pushed to (RFC 9113 §6.5.2).
            setting::ENABLE_PUSH if value != 0 => return Err(Violation::InvalidSetting),
            setting::MAX_CONCURRENT_STREAMS => self.server.max_streams = value,
            setting::INITIAL_WINDOW_SIZE => self.initial_window(value)?,
            setting::MAX_FRAME_SIZE => {
                let size = usize::try_from(value).unwrap_or(usize::MAX);
                if !(frame::LEAST_SIZE..=MOST_FRAME_SIZE).contains(&size) {
                    return Err(Violation::InvalidSetting);
                }
                self.server.frame_size = size;
            }
            _ => (),
        }
        Ok(())
    }

    /// The windows of all open streams change with the initial one (RFC 9113 §6.9.2).
    fn initial_window(&mut self, value: u32) -> Result<(), Violation> {
        let value = i32::try_from(value).map_err(|_| Violation::WindowOverflow)?;
        let change = value - self.server.initial_window;
        self.server.initial_window = value;
        for stream in self.streams.iter_mut() {
            stream.window = stream.window.checked_add(change).ok_or(Violation::WindowOverflow)?;
            if stream.window > 0 && stream.unsent > 0 && !stream.queued {
                stream.queued = true;
                self.uploads.push_back(stream.id);
            }
        }
        Ok(())
    }

    #[cold]
    fn ping(&mut self, header: Header, payload: &[u8]) -> Result<(), Violation> {
        let data = payload.try_into().map_err(|_| Violation::FrameSize)?;
        if header.stream != 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        self.idle()?;
        if !header.has(flag::ACK) {
            frame::ping_ack(&mut self.out, data);
        }
        Ok(())
    }

    #[cold]
    fn goaway(
        &mut self,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        if header.stream != 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        let (Some(&last), Some(&code)) =
            (payload.first_chunk(), payload.get(4..).and_then(<[u8]>::first_chunk))
        else {
            return Err(Violation::FrameSize);
        };
        self.idle()?;
        let last = u32::from_be_bytes(last) & STREAM_MASK;
        if self.goaway.is_some_and(|(before, _)| last > before) {
            return Err(Violation::GoawayIncreases);
        }
        self.goaway = Some((last, ErrorCode(u32::from_be_bytes(code))));
        responses.goaway();
        let mut refused: Vec<u32> =
            self.streams.iter().map(|stream| stream.id).filter(|id| *id > last).collect();
        refused.sort_unstable();
        for id in refused {
            if let Some(exchange) = self.streams.remove(id) {
                responses.failed(exchange, Failure::Refused);
            }
        }
        Ok(())
    }

    fn window_update(
        &mut self,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        self.idle()?;
        let increment = if header.stream == 0 {
            u32::from_be_bytes(payload.try_into().map_err(|_| Violation::FrameSize)?)
        } else {
            self.number_of(header, payload)?
        } & STREAM_MASK;
        let grown = |window: i32| window.checked_add(increment as i32);
        if header.stream == 0 {
            if increment == 0 {
                return Err(Violation::ZeroIncrement);
            }
            self.window = grown(self.window).ok_or(Violation::WindowOverflow)?;
            return Ok(());
        }
        let Some(stream) = self.streams.get(header.stream) else { return Ok(()) };
        if increment == 0 {
            self.fail(header.stream, StreamViolation::ZeroIncrement, responses);
            return Ok(());
        }
        let Some(window) = grown(stream.window) else {
            self.fail(header.stream, StreamViolation::WindowOverflow, responses);
            return Ok(());
        };
        stream.window = window;
        if window > 0 && !stream.queued && stream.unsent > 0 {
            stream.queued = true;
            self.uploads.push_back(header.stream);
        }
        Ok(())
    }

    #[cold]
    fn priority(
        &mut self,
        header: Header,
        payload: &[u8],
        responses: &mut impl Responses<T>,
    ) -> Result<(), Violation> {
        if header.stream == 0 {
            return Err(Violation::FrameOnWrongStream);
        }
        if payload.len() != 5 {
            self.fail(header.stream, StreamViolation::PrioritySize, responses);
        }
        self.idle()
    }

    /// The connection ended: what is open fails.
    pub fn closed(&mut self, responses: &mut impl Responses<T>) {
        for id in self.open_streams() {
            if let Some(exchange) = self.streams.remove(id) {
                responses.failed(exchange, Failure::Closed);
            }
        }
    }

    /// Gives up the streams that `which` picks.
    pub fn cancel(&mut self, which: impl Fn(&T) -> bool, responses: &mut impl Responses<T>) {
        let picked: Vec<u32> =
            self.streams.iter().filter(|stream| which(&stream.exchange)).map(|stream| stream.id).collect();
        for id in picked {
            if let Some(exchange) = self.reset(id, ErrorCode::CANCEL) {
                responses.failed(exchange, Failure::Cancelled);
            }
        }
    }

    /// What the caller keeps with each open stream, in no order.
    pub fn exchanges(&self) -> impl Iterator<Item = &T> {
        self.streams.iter().map(|stream| &stream.exchange)
    }

    /// The same for the stream of this identifier.
    #[inline]
    pub fn exchange(&mut self, id: u32) -> Option<&mut T> {
        self.streams.get(id).map(|stream| &mut stream.exchange)
    }

    /// The code of the last GOAWAY.
    pub fn goaway_code(&self) -> Option<ErrorCode> {
        self.goaway.map(|(_, code)| code)
    }

    /// Windows and states of the streams in words, for whoever asks why nothing moves.
    pub fn describe(&self) -> String {
        use std::fmt::Write;
        let mut text = format!(
            "{}; connection window {} to send, {} to receive; streams open {} of {}",
            if self.server.known { "settings received" } else { "no settings received" },
            self.window,
            self.config.connection_window - self.received,
            self.streams.len(),
            self.limit(),
        );
        for id in self.open_streams().into_iter().take(DESCRIBED) {
            let Some(stream) = self.streams.iter().find(|stream| stream.id == id) else { continue };
            let phase = match stream.phase {
                Phase::AwaitingHeaders => "awaiting headers",
                Phase::Body | Phase::NoBody => "awaiting the end of the body",
            };
            // A String takes whatever is written.
            let _ = write!(
                text,
                "; stream {id}: {phase}, {} body bytes unsent, window {} to send, {} to receive",
                stream.unsent,
                stream.window,
                self.config.stream_window - stream.received,
            );
        }
        text
    }

    fn open_streams(&self) -> Vec<u32> {
        let mut open: Vec<u32> = self.streams.iter().map(|stream| stream.id).collect();
        open.sort_unstable();
        open
    }
}

impl Table {
    /// The server's SETTINGS_HEADER_TABLE_SIZE changed. A smaller table has to be acknowledged in the
    /// next field block (RFC 9113 §4.3.1); a larger one is of no use to one request.
    fn resize(&mut self, size: u32, needed: u32) {
        if size >= self.size {
            return;
        }
        self.size = size;
        self.owed = Some(size);
        if size < needed {
            self.form = Form::Plain;
        }
    }
}

impl Cancelled {
    fn add(&mut self, id: u32) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
            self.forgot = true;
        }
        self.recent.push_back(id);
    }

    fn holds(&self, id: u32) -> bool {
        self.forgot || self.recent.contains(&id)
    }

    fn remove(&mut self, id: u32) {
        self.recent.retain(|cancelled| *cancelled != id);
    }
}

/// Takes padding and priority off the payload of HEADERS (RFC 9113 §6.2).
#[cold]
fn unwrap_headers(header: Header, payload: &[u8]) -> Result<&[u8], Violation> {
    let (padding, rest) = match payload.split_first() {
        Some((&padding, rest)) if header.has(flag::PADDED) => (usize::from(padding), rest),
        None if header.has(flag::PADDED) => return Err(Violation::FrameSize),
        _ => (0, payload),
    };
    let priority = if header.has(flag::PRIORITY) { 5 } else { 0 };
    let rest = rest.get(priority..).ok_or(Violation::FrameSize)?;
    let length = rest.len().checked_sub(padding).ok_or(Violation::Padding)?;
    Ok(&rest[..length])
}

/// The longest header list taken, by the measure of RFC 9113 §6.5.2, and told to the server.
pub const MAX_HEADER_LIST: u32 = 64 * 1024;
/// The most CONTINUATION frames of one field block.
pub const MAX_CONTINUATIONS: u32 = 1024;
/// The most frames in a row that move no request on: SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA,
/// unknown types.
pub const MAX_IDLE_FRAMES: u32 = 10_000;
/// The most interim responses to one request.
pub const MAX_INTERIM: u16 = 10_000;
/// A field block longer than the header list it may decode to, Huffman coding at its worst included.
const MAX_BLOCK: usize = 4 * MAX_HEADER_LIST as usize;
const DEFAULT_WINDOW: i32 = 65_535;
const MOST_FRAME_SIZE: usize = (1 << 24) - 1;
/// Streams this side reset that are remembered.
const REMEMBERED: usize = 64;
/// Streams named by [`Connection::describe`].
const DESCRIBED: usize = 8;
