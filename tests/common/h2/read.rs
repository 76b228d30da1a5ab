//! Owns what is read of a client: every frame is checked against RFC 9113 and acted on.

use super::{Credit, H2, Seen, Stream};
use crate::common::answer::{Asked, declared_length};
use crate::common::frame::{self, Frame};

impl H2<'_> {
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
        let asked = Asked::checked(id, fields)?;
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
pub(super) fn settings_in(frame: &Frame) -> impl Iterator<Item = (u16, u32)> + '_ {
    frame.payload.chunks_exact(6).map(|setting| {
        let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
        (u16::from_be_bytes([setting[0], setting[1]]), value)
    })
}

const FRAME_HEAD: usize = 9;
const ID_MASK: u32 = 0x7fff_ffff;
const MOST_WINDOW: u32 = 0x7fff_ffff;
