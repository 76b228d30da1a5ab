//! Owns what is read of a client: every frame is checked against RFC 9114 and acted on.

use super::endpoint::Event;
use super::{Closed, H3, Seen, Stream, wire};
use crate::common::answer::{Asked, declared_length};

/// Where a stream of frames stands.
#[derive(Default, Debug)]
pub(super) struct Reading {
    buffered: Vec<u8>,
    /// Bytes that are left of a DATA frame.
    data: u64,
}

impl H3 {
    /// Takes in the next that comes of the client; `None` when nothing does: the connection has ended, or
    /// [`H3::patience`] ran out.
    pub(crate) fn next(&mut self) -> Option<()> {
        let patience = self.patience;
        let event = super::runtime().block_on(async {
            match patience {
                None => self.events.recv().await,
                Some(patience) => tokio::time::timeout(patience, self.events.recv()).await.ok().flatten(),
            }
        })?;
        let over = matches!(event, Event::Closed(_));
        self.handle(event);
        (!over).then_some(())
    }

    pub(super) fn handle(&mut self, event: Event) {
        let done = match event {
            Event::Opened { id, send, stop } => {
                self.opened(id, send, stop);
                Ok(())
            }
            Event::UniOpened { id, stop } => {
                self.uni_stops.insert(id, stop);
                Ok(())
            }
            Event::Data(id, bytes) if id.is_multiple_of(4) => self.request_data(id, &bytes),
            Event::Data(id, bytes) => self.uni_data(id, &bytes),
            Event::Fin(id) if id.is_multiple_of(4) => self.request_end(id),
            Event::Fin(id) => self.uni_end(id),
            Event::Reset(id, code) => {
                self.reset_by_client(id, code);
                Ok(())
            }
            Event::Stopped(id, None) => {
                self.unacknowledged.remove(&id);
                Ok(())
            }
            Event::Stopped(id, Some(code)) => {
                self.unacknowledged.remove(&id);
                self.stops.push((id, code));
                self.counters.count_stop(code);
                Ok(())
            }
            Event::Closed(error) => {
                let closed = Closed::from(&error);
                if !matches!(error, quinn::ConnectionError::LocallyClosed) {
                    self.counters.count_close(closed.clone());
                }
                self.closed = Some(closed);
                Ok(())
            }
        };
        if let Err(complaint) = done {
            self.complain(&complaint);
        }
    }

    fn opened(&mut self, id: u64, send: quinn::SendStream, stop: tokio::sync::oneshot::Sender<u64>) {
        if self.no_new_streams {
            self.complain(&format!("stream {id} after GOAWAY was seen"));
        }
        self.next_stream = id + 4;
        let ignored = self.refused_from.is_some_and(|first| id >= first);
        self.counters.count_ignored(u64::from(ignored));
        let asked = Asked { stream: u32::try_from(id).expect("few streams"), ..Asked::default() };
        let stream = Stream {
            send,
            stop: Some(stop),
            reading: Reading::default(),
            asked,
            headed: false,
            client_ended: false,
            ended: false,
            ignored,
        };
        // What both sides are done with is not needed any more.
        self.streams.retain(|_, stream| !(stream.client_ended && stream.ended));
        self.streams.insert(id, stream);
        self.counters.note_open_streams(self.open_streams() as u64);
    }

    fn request_data(&mut self, id: u64, bytes: &[u8]) -> Result<(), String> {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.ignored) else { return Ok(()) };
        let reading = &mut stream.reading;
        let mut rest = bytes;
        loop {
            if reading.data > 0 {
                let length = rest.len().min(usize::try_from(reading.data).unwrap_or(usize::MAX));
                stream.asked.body.extend_from_slice(&rest[..length]);
                reading.data -= length as u64;
                rest = &rest[length..];
            }
            if rest.is_empty() {
                return Ok(());
            }
            reading.buffered.extend_from_slice(rest);
            rest = &[];
            let Some((kind, length, head)) = frame_head(&reading.buffered) else { return Ok(()) };
            let whole = reading.buffered.len() as u64 >= head as u64 + length;
            if kind != wire::DATA && !whole {
                return Ok(());
            }
            self.log.push(Seen { stream: id, kind, length });
            match kind {
                wire::DATA if stream.headed => {
                    reading.data = length;
                    let kept = reading.buffered.split_off(head);
                    reading.buffered.clear();
                    // The rest is body, and perhaps more frames.
                    let taken = kept.len().min(usize::try_from(length).unwrap_or(usize::MAX));
                    stream.asked.body.extend_from_slice(&kept[..taken]);
                    reading.data -= taken as u64;
                    if taken < kept.len() {
                        return self.request_data(id, &kept[taken..]);
                    }
                }
                wire::HEADERS if !stream.headed => {
                    let end = head + usize::try_from(length).expect("it is here");
                    let mut section = &reading.buffered[head..end];
                    let decoded = qpack::decode_stateless(&mut section, 1 << 20)
                        .map_err(|error| format!("the field section of stream {id}: {error}"))?;
                    let fields = decoded
                        .fields
                        .into_iter()
                        .map(|field| (field.name.into_owned(), field.value.into_owned()))
                        .collect();
                    stream.asked = Asked::checked(stream.asked.stream, fields)?;
                    stream.headed = true;
                    let kept = reading.buffered.split_off(end);
                    reading.buffered.clear();
                    self.heads.push_back(stream.asked.clone());
                    if !kept.is_empty() {
                        return self.request_data(id, &kept);
                    }
                    return Ok(());
                }
                _ => return Err(format!("a frame of type {kind:#x} on stream {id}")),
            }
        }
    }

    fn request_end(&mut self, id: u64) -> Result<(), String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        stream.client_ended = true;
        if stream.ignored {
            return Ok(());
        }
        if !stream.headed || stream.reading.data > 0 || !stream.reading.buffered.is_empty() {
            return Err(format!("stream {id} ends inside a frame, or without HEADERS"));
        }
        let asked = std::mem::take(&mut stream.asked);
        let (declared, length) = (declared_length(&asked), asked.body.len());
        if !stream.ended {
            self.whole.insert(id, asked);
        }
        self.counters.count_request();
        match declared {
            Some(declared) if declared != length => {
                Err(format!("stream {id} declared {declared} bytes and has {length}"))
            }
            _ => Ok(()),
        }
    }

    fn reset_by_client(&mut self, id: u64, code: u64) {
        if id.is_multiple_of(4) {
            self.resets.push((id, code));
            self.counters.count_reset_stream(code);
            if let Some(stream) = self.streams.get_mut(&id) {
                (stream.client_ended, stream.ignored) = (true, true);
            }
        } else {
            self.complain(&format!("unidirectional stream {id} was reset with {code:#x}"));
        }
    }

    fn uni_data(&mut self, id: u64, bytes: &[u8]) -> Result<(), String> {
        let (kind, buffered) = self.unis.entry(id).or_default();
        buffered.extend_from_slice(bytes);
        if kind.is_none()
            && let Some((read, length)) = wire::read_varint(buffered)
        {
            *kind = Some(read);
            buffered.drain(..length);
            let twice = self.unis.values().filter(|(kind, _)| *kind == Some(read)).count() > 1;
            if twice && read <= wire::DECODER || read == wire::PUSH {
                return Err(format!("a second stream of type {read:#x}, or one of a push"));
            }
        }
        let Some((Some(kind), buffered)) = self.unis.get_mut(&id) else { return Ok(()) };
        match *kind {
            wire::CONTROL => self.control_data(id),
            // Nothing is in the tables of either side, unless a script says so.
            wire::ENCODER if !buffered.is_empty() => Err(format!("on the encoder stream: {buffered:x?}")),
            _ => Ok(()),
        }
    }

    fn control_data(&mut self, id: u64) -> Result<(), String> {
        loop {
            let Some((_, buffered)) = self.unis.get_mut(&id) else { return Ok(()) };
            let Some((kind, length, head)) = frame_head(buffered) else { return Ok(()) };
            let end = head + usize::try_from(length).map_err(|_| "a frame without bounds")?;
            if buffered.len() < end {
                return Ok(());
            }
            let payload: Vec<u8> = buffered.drain(..end).skip(head).collect();
            self.log.push(Seen { stream: id, kind, length });
            match kind {
                wire::SETTINGS if self.client.is_none() => self.client = Some(settings_in(&payload)?),
                _ if self.client.is_none() => {
                    return Err(format!("a frame of type {kind:#x} before SETTINGS"));
                }
                wire::SETTINGS | wire::DATA | wire::HEADERS | wire::PUSH_PROMISE | 0x2 | 0x6 | 0x8 | 0x9 => {
                    return Err(format!("a frame of type {kind:#x} on the control stream"));
                }
                _ => (),
            }
        }
    }

    fn uni_end(&mut self, id: u64) -> Result<(), String> {
        match self.unis.get(&id) {
            Some((Some(kind @ (wire::CONTROL | wire::ENCODER | wire::DECODER)), _)) => {
                Err(format!("the critical stream of type {kind:#x} was closed"))
            }
            _ => Ok(()),
        }
    }
}

/// Type and length of the frame that `bytes` begin with, and how many bytes say so.
fn frame_head(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, first) = wire::read_varint(bytes)?;
    let (length, second) = wire::read_varint(&bytes[first..])?;
    Some((kind, length, first + second))
}

fn settings_in(mut payload: &[u8]) -> Result<Vec<(u64, u64)>, String> {
    let mut settings: Vec<(u64, u64)> = Vec::new();
    while !payload.is_empty() {
        let (id, first) = wire::read_varint(payload).ok_or("a setting that is cut off")?;
        let (value, second) = wire::read_varint(&payload[first..]).ok_or("a setting that is cut off")?;
        payload = &payload[first + second..];
        if matches!(id, 0x0 | 0x2..=0x5) || settings.iter().any(|(other, _)| *other == id) {
            return Err(format!("setting {id:#x}, which is reserved or there twice"));
        }
        settings.push((id, value));
    }
    Ok(settings)
}
