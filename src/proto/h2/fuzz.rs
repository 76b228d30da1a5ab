//! Owns what must hold of a [`Connection`] whatever a server sends: the body of the fuzz target.

use super::{Config, Connection, Request, Violation};
use crate::proto::exchange::{Failure, Responses};

/// Reads `data` as what a server sends on a connection and panics when the outcome depends on how
/// the bytes were cut, when a request is lost or told of twice, or when the output is out of all
/// proportion.
///
/// The first byte says what the client did before: its lowest 3 bits how many streams it opened, and
/// then bit 3 that it sends a body, bit 4 that it asks with HEAD, bit 5 that it gave up its first
/// stream, bit 6 that its windows are small, and bit 7 that the server's SETTINGS have not come, in
/// which case one stream is open at most.
pub fn fuzz_frames(data: &[u8]) {
    let Some((&setup, stream)) = data.split_first() else { return };
    let expected = transcript(setup, [stream]);
    assert_eq!(transcript(setup, stream.chunks(1)), expected, "byte by byte");
    let step = stream.len() / 64 + 1;
    for at in (0..=stream.len()).step_by(step) {
        let (front, back) = stream.split_at(at);
        assert_eq!(transcript(setup, [front, back]), expected, "cut at {at}");
    }
}

/// Everything a connection said and sent.
#[derive(PartialEq, Eq, Debug)]
struct Transcript {
    exchanges: Vec<Exchange>,
    limits: Vec<u32>,
    goaways: u32,
    outcome: Result<(), Violation>,
    /// Sent in answer to the server.
    answers: Vec<u8>,
    /// Of the bodies, sent in the end.
    uploads: Vec<u8>,
}

/// What was said of one request.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Exchange {
    interims: u32,
    status: Option<u16>,
    /// Kept of a complete response only: how much of one that fails was passed on before is a matter
    /// of how it came.
    body: Vec<u8>,
    end: Option<Result<(), Failure>>,
}

/// What is said when a server sends these pieces, one after the other, and then closes.
fn transcript<'a>(setup: u8, pieces: impl IntoIterator<Item = &'a [u8]>) -> Transcript {
    let bit = |bit: u8| setup & 1 << bit != 0;
    let body: &[u8] = if bit(3) { &[b'x'; BODY] } else { &[] };
    let method = if bit(4) { "HEAD" } else { "PUT" };
    let request = Request::new(method, "http", "/", "localhost", &[], body).expect("a valid request");
    let mut config = Config::new(7);
    if bit(6) {
        config.stream_window = 20;
        config.header_table = 64;
    }
    let mut connection = Connection::new(config);
    let mut said = Said::default();
    if !bit(7) {
        // An empty SETTINGS frame.
        connection.receive(&request, &[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut said).expect("valid settings");
    }
    let opened = connection.room().min(u32::from(setup & 7)) as usize;
    for number in 0..opened {
        connection.open(&request, number);
        said.exchanges.push(Exchange::default());
    }
    if bit(5) {
        connection.cancel(|number| *number == 0, &mut said);
    }
    connection.output().clear();

    let mut received = 0;
    let mut outcome = Ok(());
    for piece in pieces {
        received += piece.len();
        outcome = connection.receive(&request, piece, &mut said);
        if outcome.is_err() {
            break;
        }
        assert_eq!(connection.streams() as usize, said.open(), "streams are open or have ended");
        assert!(connection.streams() == 0 || connection.room() == 0 || connection.limit() > 1);
    }
    let answers = std::mem::take(connection.output());
    // An answer is at most a few times as long as the shortest frame that calls for it.
    assert!(answers.len() <= 4 * received + 64, "{} bytes in answer to {received}", answers.len());
    connection.pump(&request, usize::MAX);
    let uploads = std::mem::take(connection.output());
    connection.closed(&mut said);
    assert_eq!((connection.streams(), said.open()), (0, 0), "a request is answered or has failed");
    Transcript {
        exchanges: said.exchanges,
        limits: said.limits,
        goaways: said.goaways,
        outcome,
        answers,
        uploads,
    }
}

/// Takes what is said, each exchange being the number of its request.
#[derive(Default)]
struct Said {
    exchanges: Vec<Exchange>,
    limits: Vec<u32>,
    goaways: u32,
}

impl Said {
    /// Requests that have not ended.
    fn open(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.end.is_none()).count()
    }

    /// An exchange of which something may still be said.
    fn at(&mut self, number: usize) -> &mut Exchange {
        let exchange = &mut self.exchanges[number];
        assert_eq!(exchange.end, None, "the end is the last that is said");
        exchange
    }
}

impl Responses<usize> for Said {
    fn interim(&mut self, exchange: &mut usize) {
        let exchange = self.at(*exchange);
        assert_eq!(exchange.status, None, "an interim response precedes the final one");
        exchange.interims += 1;
    }

    fn headers(&mut self, exchange: &mut usize, status: u16) {
        assert!((200..1000).contains(&status));
        let before = self.at(*exchange).status.replace(status);
        assert_eq!(before, None, "one final response");
    }

    fn data(&mut self, exchange: &mut usize, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "a piece of body is never empty");
        let exchange = self.at(*exchange);
        assert_ne!(exchange.status, None, "a body follows a header");
        exchange.body.extend_from_slice(bytes);
    }

    fn complete(&mut self, exchange: usize) {
        let exchange = self.at(exchange);
        assert_ne!(exchange.status, None, "a response has a header");
        exchange.end = Some(Ok(()));
    }

    fn failed(&mut self, exchange: usize, failure: Failure) {
        let exchange = self.at(exchange);
        exchange.body.clear();
        exchange.end = Some(Err(failure));
    }

    fn limit(&mut self, streams: u32) {
        self.limits.push(streams);
    }

    fn goaway(&mut self) {
        self.goaways += 1;
    }
}

/// Bytes of the body of a request, more than a stream's first window.
const BODY: usize = 70_000;
