//! Owns answers apart from the protocol they are given in, and the peer that gives them: the same
//! script serves HTTP/1.1 and HTTP/2.

use super::Conn;
use super::h2::H2;

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

/// A connection that speaks either protocol.
pub(crate) enum Peer<'a> {
    One(&'a mut Conn),
    Two(Box<H2<'a>>),
}

impl Peer<'_> {
    /// Number of the connection, from 0.
    pub(crate) fn index(&self) -> u64 {
        match self {
            Self::One(conn) => conn.index,
            Self::Two(h2) => h2.conn.index,
        }
    }

    /// The next whole request; `None` when the client closed.
    pub(crate) fn request(&mut self) -> Option<Asked> {
        match self {
            Self::One(conn) => conn.request().map(|bytes| parse_h1(&bytes)),
            Self::Two(h2) => h2.request(),
        }
    }

    /// The next request, as soon as its head is here.
    pub(crate) fn head(&mut self) -> Option<Asked> {
        match self {
            Self::One(conn) => conn.head().map(|bytes| parse_h1(&bytes)),
            Self::Two(h2) => h2.head(),
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
        }
    }

    /// Sends bytes as they are; false when the client is gone.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::One(conn) => conn.send(bytes),
            Self::Two(h2) => h2.conn.send(bytes),
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
        if let Self::Two(h2) = self {
            h2.finish();
        }
    }

    /// Ends the connection without a word.
    pub(crate) fn cut(&mut self) {
        match self {
            Self::One(conn) => conn.cut(),
            Self::Two(h2) => h2.conn.cut(),
        }
    }

    /// Reads on until the client closes, and answers nothing.
    pub(crate) fn ignore(&mut self) {
        match self {
            Self::One(conn) => conn.ignore(),
            Self::Two(h2) => while h2.next().is_some() {},
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
