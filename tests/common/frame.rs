//! Owns HTTP/2 frames as the scripted server writes them, right or wrong (RFC 9113 §4 and §6).

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn new(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        Self { kind, flags, stream, payload: payload.to_vec() }
    }

    pub(crate) fn data(stream: u32, payload: &[u8], end: bool) -> Self {
        Self::new(DATA, if end { END_STREAM } else { 0 }, stream, payload)
    }

    /// A whole header block in one frame.
    pub(crate) fn headers(stream: u32, block: &[u8], end: bool) -> Self {
        Self::new(HEADERS, END_HEADERS | if end { END_STREAM } else { 0 }, stream, block)
    }

    pub(crate) fn continuation(stream: u32, fragment: &[u8], end: bool) -> Self {
        Self::new(CONTINUATION, if end { END_HEADERS } else { 0 }, stream, fragment)
    }

    pub(crate) fn priority(stream: u32) -> Self {
        Self::new(PRIORITY, 0, stream, &[0x80, 0, 0, 0, 15])
    }

    pub(crate) fn reset(stream: u32, code: u32) -> Self {
        Self::new(RST_STREAM, 0, stream, &code.to_be_bytes())
    }

    pub(crate) fn settings(settings: &[(u16, u32)]) -> Self {
        let mut payload = Vec::new();
        for (id, value) in settings {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        Self::new(SETTINGS, 0, 0, &payload)
    }

    pub(crate) fn settings_ack() -> Self {
        Self::new(SETTINGS, ACK, 0, &[])
    }

    /// A promise of `GET /pushed` on `promised`.
    pub(crate) fn push_promise(stream: u32, promised: u32) -> Self {
        let mut payload = promised.to_be_bytes().to_vec();
        // :method GET, :scheme http, :path /
        payload.extend_from_slice(&[0x82, 0x86, 0x84]);
        Self::new(PUSH_PROMISE, END_HEADERS, stream, &payload)
    }

    pub(crate) fn ping(payload: [u8; 8]) -> Self {
        Self::new(PING, 0, 0, &payload)
    }

    pub(crate) fn goaway(last: u32, code: u32) -> Self {
        let mut payload = last.to_be_bytes().to_vec();
        payload.extend_from_slice(&code.to_be_bytes());
        payload.extend_from_slice(b"scripted");
        Self::new(GOAWAY, 0, 0, &payload)
    }

    pub(crate) fn window_update(stream: u32, increment: u32) -> Self {
        Self::new(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
    }

    /// The same with other flags.
    pub(crate) fn flags(mut self, flags: u8) -> Self {
        self.flags = flags;
        self
    }

    /// The same with `length` bytes of padding (RFC 9113 §6.1).
    pub(crate) fn padded(mut self, length: u8) -> Self {
        self.payload.insert(0, length);
        self.payload.extend(std::iter::repeat_n(0, length.into()));
        self.flags |= PADDED;
        self
    }

    /// The same with priority fields, to be added before padding (RFC 9113 §6.2).
    pub(crate) fn prioritised(mut self) -> Self {
        self.payload.splice(0..0, [0, 0, 0, 0, 200]);
        self.flags |= PRIORITISED;
        self
    }

    /// The bytes on the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).expect("frames are small").to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], self.kind, self.flags];
        bytes.extend_from_slice(&self.stream.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The first four bytes of the payload as a number.
    pub(crate) fn word(&self) -> Option<u32> {
        self.payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const PRIORITISED: u8 = 0x20;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
pub(crate) const STREAM_CLOSED: u32 = 5;
pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const COMPRESSION_ERROR: u32 = 9;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// What a client says first (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
