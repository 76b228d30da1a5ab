//! HTTP/1.1 against hyper, in memory: it must understand every request that is encoded, and what it
//! answers must be read as it was meant.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bench::proto::h1::{Event, Framing, Head, HeadMemo, Reader, encode_request};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Request, Response,
    body::{Body, Frame, Incoming, SizeHint},
    header::{HOST, HeaderMap},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

#[tokio::test]
async fn hyper_reads_what_was_meant() {
    let mut peer = Peer::connect();
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    // (method, path, headers, body, what hyper saw)
    let table = [
        ("GET", "/", vec![], "", "GET / [localhost] none none"),
        (
            "GET",
            "/a?b=%20&c",
            vec![header("Host", "example.org:81")],
            "",
            "GET /a?b=%20&c [example.org:81] none none",
        ),
        ("POST", "/", vec![], "", "POST / [localhost] 0 none"),
        ("POST", "/", vec![header("content-length", "5")], "Hello", "POST / [localhost] 5 none Hello"),
        ("DELETE", "/", vec![header("X", " a  b\t")], "x", "DELETE / [localhost] 1 none x"),
        ("OPTIONS", "*", vec![], "", "OPTIONS * [localhost] none none"),
        ("GET", "/", vec![header("Connection", "Keep-Alive")], "", "GET / [localhost] none Keep-Alive"),
        ("PURGE", "/", vec![], "", "PURGE / [localhost] none none"),
    ];
    for (method, path, headers, body, saw) in table {
        let request =
            encode_request(method, path, "localhost", &headers, body.as_bytes(), true).expect("valid parts");
        let answer = peer.ask(&request, false).await;
        assert_eq!(String::from_utf8_lossy(&answer.body), saw);
        assert_eq!(answer.head.framing, Framing::Length(saw.len() as u64));
        assert!(answer.head.keep_alive);
    }
}

#[tokio::test]
async fn hyper_closes_when_told_to() {
    let mut peer = Peer::connect();
    let request = encode_request("GET", "/", "localhost", &[], b"", false).expect("valid parts");
    let answer = peer.ask(&request, false).await;
    assert_eq!(answer.body, b"GET / [localhost] none close");
    assert!(!answer.head.keep_alive);
    assert_eq!(
        peer.stream.read(&mut [0; 1]).await.expect("a readable stream"),
        0,
        "the connection is closed"
    );
    assert_eq!(peer.reader.close(), Ok(false));
}

#[tokio::test]
async fn chunks_and_trailers_of_hyper_are_read() {
    let mut peer = Peer::connect();
    let headers = [("TE".to_owned(), "trailers".to_owned())];
    let body = vec![b'x'; 100_000];
    let request = encode_request("PUT", "/chunks", "localhost", &headers, &body, true).expect("valid parts");
    for _ in 0..3 {
        let answer = peer.ask(&request, false).await;
        assert_eq!(answer.head.framing, Framing::Chunked);
        assert_eq!(answer.body, [b"PUT /chunks [localhost] 100000 none ", &body[..]].concat());
    }
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let mut peer = Peer::connect();
    for path in ["/", "/chunks", "/"] {
        let request = encode_request("HEAD", path, "localhost", &[], b"", true).expect("valid parts");
        let answer = peer.ask(&request, true).await;
        assert_eq!((answer.head.framing, answer.body.len()), (Framing::Length(0), 0), "{path}");
        assert!(answer.head.keep_alive);
    }
}

/// A connection to a hyper that echoes.
struct Peer {
    stream: DuplexStream,
    reader: Reader,
    memo: HeadMemo,
}

struct Answer {
    head: Head,
    body: Vec<u8>,
}

impl Peer {
    fn connect() -> Self {
        // Small enough that heads and bodies are cut.
        let (stream, served) = tokio::io::duplex(100);
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(served), service_fn(echo)));
        Self { stream, reader: Reader::new(), memo: HeadMemo::default() }
    }

    async fn ask(&mut self, request: &[u8], head_request: bool) -> Answer {
        self.reader.begin(head_request);
        self.stream.write_all(request).await.expect("a server that reads the request");
        let (mut head, mut body) = (None, Vec::new());
        loop {
            let mut buffer = [0; 64];
            let received = self.stream.read(&mut buffer).await.expect("a readable stream");
            assert_ne!(received, 0, "closed in the middle of a response");
            let mut input = &buffer[..received];
            loop {
                match self.reader.next(&mut self.memo, &mut input).expect("a response in order") {
                    Event::NeedMore => break,
                    Event::Interim(status) => panic!("nobody asked for a {status}"),
                    Event::Head(found) => head = Some(found),
                    Event::Body(bytes) => body.extend_from_slice(bytes),
                    Event::End => {
                        assert!(input.is_empty(), "one response to one request");
                        return Answer { head: head.expect("a head comes first"), body };
                    }
                }
            }
        }
    }
}

/// Answers with what it saw: method, target, every Host, length and connection option; then the body.
async fn echo(request: Request<Incoming>) -> Result<Response<Pieces>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a body that arrives").to_bytes();
    let hosts: Vec<&str> = parts.headers.get_all(HOST).iter().filter_map(|host| host.to_str().ok()).collect();
    let field = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("none");
    let (length, connection) = (field("content-length"), field("connection"));
    let mut saw = format!("{} {} [{}] {length} {connection}", parts.method, parts.uri, hosts.join("|"));
    if !body.is_empty() {
        saw.push(' ');
    }
    let mut pieces = Pieces { frames: VecDeque::new(), chunked: parts.uri.path() == "/chunks" };
    let mut response = Response::builder();
    if pieces.chunked {
        pieces.frames.extend([saw.into(), body].map(Frame::data));
        let mut trailers = HeaderMap::new();
        trailers.insert("x-check", "1".parse().expect("a field value"));
        pieces.frames.push_back(Frame::trailers(trailers));
        response = response.header("trailer", "x-check");
    } else {
        pieces.frames.push_back(Frame::data([saw.as_bytes(), &body].concat().into()));
    }
    Ok(response.body(pieces).expect("a response of valid parts"))
}

/// A body of these frames; its length is told unless it is to be sent in chunks.
struct Pieces {
    frames: VecDeque<Frame<Bytes>>,
    chunked: bool,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.frames.pop_front().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        if self.chunked {
            return SizeHint::default();
        }
        SizeHint::with_exact(
            self.frames.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum(),
        )
    }
}
