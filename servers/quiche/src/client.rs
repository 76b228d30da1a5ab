//! One connection: requests in, answers out.

use std::collections::HashMap;

use quiche::h3::{self, Event, NameValue};

static HELLO: &[u8] = b"Hello, World!\n";
static FILLED: [u8; 1 << 20] = [b'x'; 1 << 20];

pub struct Client {
    pub quic: quiche::Connection,
    http: Option<h3::Connection>,
    /// Requests whose body is not complete, by stream.
    uploads: HashMap<u64, Answer>,
    /// Answers that wait for credit, by stream.
    blocked: HashMap<u64, Answer>,
}

impl Client {
    pub fn new(quic: quiche::Connection) -> Self {
        Self { quic, http: None, uploads: HashMap::new(), blocked: HashMap::new() }
    }

    /// Handles what has arrived; what there is to say then waits in `quic`. `scratch` takes bodies.
    pub fn serve(&mut self, settings: &h3::Config, scratch: &mut [u8]) {
        if self.http.is_none() && (self.quic.is_in_early_data() || self.quic.is_established()) {
            self.http = h3::Connection::with_transport(&mut self.quic, settings).ok();
        }
        let Some(mut http) = self.http.take() else { return };
        // An error has closed the connection already.
        while let Ok((stream, event)) = http.poll(&mut self.quic) {
            match event {
                // Those of an upload that has begun are its trailers.
                Event::Headers { list, .. } if !self.uploads.contains_key(&stream) => {
                    if list.iter().any(|field| field.name() == b":method" && field.value() == b"POST") {
                        self.uploads.insert(stream, Answer::to(&list));
                    } else {
                        self.send(&mut http, stream, Answer::to(&list));
                    }
                }
                Event::Data => while http.recv_body(&mut self.quic, stream, scratch).is_ok() {},
                Event::Finished => {
                    if let Some(answer) = self.uploads.remove(&stream) {
                        self.send(&mut http, stream, answer);
                    }
                }
                Event::Reset(_) => {
                    self.uploads.remove(&stream);
                    self.blocked.remove(&stream);
                }
                Event::Headers { .. } | Event::GoAway | Event::PriorityUpdate => {}
            }
        }
        if !self.blocked.is_empty() {
            for stream in self.quic.writable() {
                if let Some(answer) = self.blocked.remove(&stream) {
                    self.send(&mut http, stream, answer);
                }
            }
        }
        self.http = Some(http);
    }

    /// Sends what there is credit for, and keeps the rest.
    fn send(&mut self, http: &mut h3::Connection, stream: u64, mut answer: Answer) {
        // Any other error says that whoever asked is no longer there.
        if let Err(h3::Error::Done | h3::Error::StreamBlocked) = answer.send(http, &mut self.quic, stream) {
            self.blocked.insert(stream, answer);
        }
    }
}

struct Answer {
    status: &'static [u8],
    length: &'static [u8],
    /// What is left to send; none after HEAD.
    body: &'static [u8],
    begun: bool,
}

impl Answer {
    fn to(request: &[h3::Header]) -> Self {
        let field = |name: &[u8]| request.iter().find(|field| field.name() == name).map(h3::Header::value);
        let (status, length, body): (&[u8], &[u8], &[u8]) = match field(b":path") {
            Some(b"/" | b"/upload") => (b"200", b"14", HELLO),
            Some(b"/empty") => (b"200", b"0", b""),
            Some(b"/1k") => (b"200", b"1024", &FILLED[..1 << 10]),
            Some(b"/16k") => (b"200", b"16384", &FILLED[..1 << 14]),
            Some(b"/1m") => (b"200", b"1048576", &FILLED),
            _ => (b"404", b"0", b""),
        };
        let body = if field(b":method") == Some(b"HEAD") { b"" } else { body };
        Self { status, length, body, begun: false }
    }

    fn send(
        &mut self,
        http: &mut h3::Connection,
        quic: &mut quiche::Connection,
        stream: u64,
    ) -> Result<(), h3::Error> {
        if !self.begun {
            let fields = [
                h3::HeaderRef::new(b":status", self.status),
                h3::HeaderRef::new(b"content-type", b"text/plain"),
                h3::HeaderRef::new(b"content-length", self.length),
            ];
            http.send_response(quic, stream, &fields, self.body.is_empty())?;
            self.begun = true;
        }
        while !self.body.is_empty() {
            let sent = http.send_body(quic, stream, self.body, true)?;
            self.body = &self.body[sent..];
        }
        Ok(())
    }
}
