//! Owns answers apart from the protocol they are given in, and the peer that gives them: the same
//! script serves HTTP/1.1, HTTP/2 and HTTP/3.

use super::Conn;
use super::h2::H2;
use super::h3::H3;

/// A request as a script sees it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Value of Host, or `:authority`.
    pub(crate) authority: String,
    /// All other fields, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Its stream; 0 in HTTP/1.1.
    pub(crate) stream: u32,
}

impl Asked {
    /// A request from its fields, checked by RFC 9113 §8.2 and §8.3, or RFC 9114 §4.2 and §4.3.
    pub(crate) fn checked(stream: u32, fields: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Self, String> {
        let mut asked = Self { stream, ..Self::default() };
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
                    return Err(format!("a field that has no place here: {name}"));
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
}

/// What its content-length says; more than any body when it is no number.
pub(super) fn declared_length(asked: &Asked) -> Option<usize> {
    let (_, value) = asked.headers.iter().find(|(name, _)| name == "content-length")?;
    Some(value.parse().unwrap_or(usize::MAX))
}

/// A response, right or wrong.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// 1xx responses in front of it.
    pub(crate) interim: Vec<(u16, Vec<(String, String)>)>,
    pub(crate) status: u16,
    /// Fields, content-length apart.
    pub(crate) headers: Vec<(String, String)>,
    /// Values of content-length; `None`: the true one, when there is a body.
    pub(crate) lengths: Option<Vec<String>>,
    /// The body: each piece is a chunk, or at least one DATA frame.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// How often the pieces follow each other, for bodies larger than memory should hold.
    pub(crate) times: usize,
    pub(crate) trailers: Vec<(String, String)>,
    /// It is the last one of its connection, and says so.
    pub(crate) last: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: &[u8]) -> Self {
        Self {
            interim: Vec::new(),
            status,
            headers: vec![("content-type".into(), "text/plain".into())],
            lengths: None,
            pieces: if body.is_empty() { Vec::new() } else { vec![body.to_vec()] },
            times: 1,
            trailers: Vec::new(),
            last: false,
        }
    }

    /// `Hello, World!`, as every server of a comparison says it.
    pub(crate) fn hello() -> Self {
        Self::new(200, b"Hello, World!\n")
    }

    /// Bytes in front: 1xx.
    pub(crate) fn interim(mut self, status: u16, headers: &[(&str, &str)]) -> Self {
        self.interim.push((status, owned(headers)));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Exactly these content-length fields, whatever the body; none: no such field.
    pub(crate) fn lengths(mut self, lengths: &[&str]) -> Self {
        self.lengths = Some(lengths.iter().map(|&length| length.into()).collect());
        self
    }

    /// A body of these pieces.
    pub(crate) fn pieces(mut self, pieces: &[&[u8]]) -> Self {
        self.pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        self
    }

    /// The body, so many times over.
    pub(crate) fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    pub(crate) fn trailer(mut self, name: &str, value: &str) -> Self {
        self.trailers.push((name.into(), value.into()));
        self
    }

    /// The last answer of its connection: `Connection: close`, or GOAWAY in front of it.
    pub(crate) fn last(mut self) -> Self {
        self.last = true;
        self
    }

    /// Body bytes.
    pub(crate) fn length(&self) -> usize {
        self.times * self.pieces.iter().map(Vec::len).sum::<usize>()
    }

    /// Whether a body follows the head (RFC 9110 §6.4.1).
    pub(crate) fn has_body(&self, asked: &Asked) -> bool {
        asked.method != "HEAD" && !matches!(self.status, 204 | 304) && self.length() > 0
    }

    /// The content-length fields that its head has.
    pub(crate) fn declared(&self, asked: &Asked) -> Vec<String> {
        match &self.lengths {
            Some(lengths) => lengths.clone(),
            None if self.has_body(asked) || !matches!(self.status, 204 | 304) => {
                vec![self.length().to_string()]
            }
            None => Vec::new(),
        }
    }

    /// Everything in HTTP/1.1 but a body that is repeated.
    fn render_h1(&self, asked: &Asked) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        for (status, headers) in &self.interim {
            out.extend_from_slice(format!("HTTP/1.1 {status} Interim\r\n").as_bytes());
            fields_h1(headers, &mut out);
        }
        let chunked = self.has_body(asked)
            && (!self.trailers.is_empty() || self.lengths.as_ref().is_some_and(Vec::is_empty));
        let mut fields = self.headers.clone();
        if chunked {
            fields.push(("Transfer-Encoding".into(), "chunked".into()));
        } else {
            fields.extend(self.declared(asked).into_iter().map(|value| ("Content-Length".into(), value)));
        }
        if self.last {
            fields.push(("Connection".into(), "close".into()));
        }
        out.extend_from_slice(format!("HTTP/1.1 {} Status\r\n", self.status).as_bytes());
        fields_h1(&fields, &mut out);
        (out, chunked)
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

fn fields_h1(headers: &[(String, String)], out: &mut Vec<u8>) {
    for (name, value) in headers {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// A connection that speaks any of the protocols.
pub(crate) enum Peer<'a> {
    One(&'a mut Conn),
    Two(Box<H2<'a>>),
    Three(&'a mut H3),
}

impl Peer<'_> {
    /// Number of the connection, from 0.
    pub(crate) fn index(&self) -> u64 {
        match self {
            Self::One(conn) => conn.index,
            Self::Two(h2) => h2.conn.index,
            Self::Three(h3) => h3.index,
        }
    }

    /// The next whole request; `None` when the client closed.
    pub(crate) fn request(&mut self) -> Option<Asked> {
        match self {
            Self::One(conn) => conn.request().map(|bytes| parse_h1(&bytes)),
            Self::Two(h2) => h2.request(),
            Self::Three(h3) => h3.request(),
        }
    }

    /// The next request, as soon as its head is here.
    pub(crate) fn head(&mut self) -> Option<Asked> {
        match self {
            Self::One(conn) => conn.head().map(|bytes| parse_h1(&bytes)),
            Self::Two(h2) => h2.head(),
            Self::Three(h3) => h3.head(),
        }
    }

    /// Gives `answer`; false when the connection ends with it.
    pub(crate) fn answer(&mut self, asked: &Asked, answer: &Answer) -> bool {
        match self {
            Self::One(conn) => {
                conn.count_answer();
                let (mut out, chunked) = answer.render_h1(asked);
                let sent = if answer.length() > AT_ONCE {
                    conn.send(&out) && send_body_h1(conn, asked, answer, chunked)
                } else {
                    body_h1(asked, answer, chunked, &mut out);
                    conn.send(&out)
                };
                sent && !answer.last
            }
            Self::Two(h2) => h2.respond(asked, answer) && !answer.last,
            Self::Three(h3) => h3.respond(asked, answer) && !answer.last,
        }
    }

    /// The bytes of a small answer.
    pub(crate) fn render(&mut self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        match self {
            Self::One(_) => {
                let (mut out, chunked) = answer.render_h1(asked);
                body_h1(asked, answer, chunked, &mut out);
                out
            }
            Self::Two(h2) => h2.render(asked, answer),
            Self::Three(h3) => h3.render(asked, answer),
        }
    }

    /// Sends a part of what [`Peer::render`] gave, the last one or not; false when the client is gone.
    pub(crate) fn send(&mut self, asked: &Asked, bytes: &[u8], last: bool) -> bool {
        match self {
            Self::One(conn) => conn.send(bytes),
            Self::Two(h2) => h2.conn.send(bytes),
            Self::Three(h3) => h3.send(asked.stream, bytes, last),
        }
    }

    /// Gives every request the same answer until either side ends the connection.
    pub(crate) fn always(&mut self, answer: &Answer) {
        while let Some(asked) = self.request() {
            if !self.answer(&asked, answer) {
                return;
            }
        }
    }

    /// The script is done. What the client has sent meanwhile is still read, checked and counted
    /// after this direction ended.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::One(_) => (),
            Self::Two(h2) => h2.finish(),
            Self::Three(h3) => h3.end_connection(),
        }
    }

    /// Ends the connection without a word.
    pub(crate) fn cut(&mut self) {
        match self {
            Self::One(conn) => conn.cut(),
            Self::Two(h2) => h2.conn.cut(),
            Self::Three(h3) => h3.vanish(),
        }
    }

    /// Reads on until the client closes, and answers nothing.
    pub(crate) fn ignore(&mut self) {
        match self {
            Self::One(conn) => conn.ignore(),
            Self::Two(h2) => while h2.next().is_some() {},
            Self::Three(h3) => h3.ignore(),
        }
    }
}

fn body_h1(asked: &Asked, answer: &Answer, chunked: bool, out: &mut Vec<u8>) {
    if !answer.has_body(asked) {
        return;
    }
    for piece in (0..answer.times).flat_map(|_| &answer.pieces) {
        piece_h1(piece, chunked, out);
    }
    end_h1(answer, chunked, out);
}

fn send_body_h1(conn: &mut Conn, asked: &Asked, answer: &Answer, chunked: bool) -> bool {
    if !answer.has_body(asked) {
        return true;
    }
    let mut out = Vec::new();
    for piece in (0..answer.times).flat_map(|_| &answer.pieces) {
        out.clear();
        piece_h1(piece, chunked, &mut out);
        if !conn.send(&out) {
            return false;
        }
    }
    out.clear();
    end_h1(answer, chunked, &mut out);
    out.is_empty() || conn.send(&out)
}

fn piece_h1(piece: &[u8], chunked: bool, out: &mut Vec<u8>) {
    // An empty chunk would be the last one.
    if chunked && !piece.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    } else {
        out.extend_from_slice(piece);
    }
}

fn end_h1(answer: &Answer, chunked: bool, out: &mut Vec<u8>) {
    if chunked {
        out.extend_from_slice(b"0\r\n");
        fields_h1(&answer.trailers, out);
    }
}

fn parse_h1(bytes: &[u8]) -> Asked {
    let mut slots = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut slots);
    let status = request.parse(bytes).expect("the client sends HTTP/1.1");
    let httparse::Status::Complete(end) = status else { panic!("a whole head was read") };
    let mut asked = Asked {
        method: request.method.unwrap_or_default().into(),
        path: request.path.unwrap_or_default().into(),
        body: bytes[end..].to_vec(),
        ..Asked::default()
    };
    for header in request.headers.iter() {
        let (name, value) = (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value));
        if name == "host" {
            assert!(asked.authority.is_empty(), "two Host fields");
            asked.authority = value.into_owned();
        } else {
            asked.headers.push((name, value.into_owned()));
        }
    }
    asked
}

/// Bodies up to here are sent together with their head.
const AT_ONCE: usize = 64 * 1024;
