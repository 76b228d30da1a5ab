//! Owns what must hold of a [`Connection`](super::Connection) whatever a server sends on its streams: the
//! body of the fuzz target.

use super::wire::{Event, Wire};
use super::{MAX_HELD, Request, Violation};
use crate::proto::exchange::{Failure, Responses};
use crate::proto::qpack;

/// Reads `data` as what a server sends on the streams of a connection, and panics when the outcome depends on
/// how the bytes were cut, when a request is lost or told of twice, or when a bound is passed.
///
/// The lowest 3 bits of the first byte say how many requests the client sent; bit 3 says that they are
/// HEAD, and bit 4 that a dynamic table of 256 bytes and two blocked streams are offered. Then records
/// follow, each with a byte and a length, also a byte. The lowest 3 bits of the former are a stream's number:
/// of a request, or with bit 3 of a unidirectional stream of the server. Bit 4: the bytes that follow are
/// the stream's last. Bit 5: it is reset instead, with error code 0x100 and the length. Bit 6: STOP_SENDING
/// instead, with the same.
pub fn fuzz_streams(data: &[u8]) {
    let Some((&setup, records)) = data.split_first() else { return };
    let expected = transcript(setup, records, usize::MAX);
    for step in [1, 2, 3, 7] {
        let cut = transcript(setup, records, step);
        // A dynamic table holds a stream back until the table has grown. Where both it and the encoder's
        // stream break a rule, which is met first is a matter of how much of the latter came at once.
        let either = setup & 1 << 4 != 0 && cut.outcome.is_err() && expected.outcome.is_err();
        assert!(either || cut.outcome == expected.outcome, "in pieces of {step}: {cut:?} or {expected:?}");
        // After a violation it is a matter of how much came before what else was seen to.
        assert!(cut.outcome.is_err() || cut == expected, "in pieces of {step}: {cut:?} or {expected:?}");
    }
}

/// Everything a connection said.
#[derive(PartialEq, Eq, Debug)]
struct Transcript {
    exchanges: Vec<Exchange>,
    goaways: u32,
    outcome: Result<(), Violation>,
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

/// What is said when a server sends these records, in pieces of `step` bytes, and then closes.
fn transcript(setup: u8, mut records: &[u8], step: usize) -> Transcript {
    let bit = |byte: u8, bit: u8| byte & 1 << bit != 0;
    let method = if bit(setup, 3) { "HEAD" } else { "GET" };
    let request = Request::new(method, "https", "/", "localhost", &[], b"").expect("a valid request");
    let offered = qpack::Config { table_capacity: 256, blocked_streams: 2 };
    let config = if bit(setup, 4) { offered } else { qpack::Config::default() };
    let mut wire = Wire::new(config, request);
    let mut said = Said::default();
    for number in 0..usize::from(setup & 7) {
        wire.open(number);
        said.exchanges.push(Exchange::default());
    }
    let mut ended = Vec::new();
    let mut received = 0;
    let mut outcome = Ok(());
    while let &[what, length, ref rest @ ..] = records
        && outcome.is_ok()
    {
        let id = if bit(what, 3) { 3 } else { 0 } + u64::from(what & 7) * 4;
        let code = 0x100 + u64::from(length);
        records = rest;
        let event = if bit(what, 5) {
            Event::Reset(id, code)
        } else if bit(what, 6) {
            Event::Stopped(id, code)
        } else {
            let (bytes, behind) = rest.split_at(rest.len().min(length.into()));
            records = behind;
            Event::Data(id, bytes, bit(what, 4))
        };
        // QUIC hands on nothing behind the end of a stream.
        if ended.contains(&id) && !matches!(event, Event::Stopped(..)) {
            continue;
        }
        if matches!(event, Event::Data(_, _, true) | Event::Reset(..)) {
            ended.push(id);
        }
        received += 2 + usize::from(length);
        outcome = deliver(&mut wire, event, step, &mut said);
        if outcome.is_ok() {
            check(&wire, received, &said);
        }
    }
    wire.closed(&mut said);
    assert_eq!((wire.session.open, said.open()), (0, 0), "a request is answered or has failed");
    Transcript { exchanges: said.exchanges, goaways: said.goaways, outcome }
}

fn deliver(wire: &mut Wire<usize>, event: Event<'_>, step: usize, said: &mut Said) -> Result<(), Violation> {
    let Event::Data(id, mut bytes, fin) = event else { return wire.deliver(event, said) };
    while bytes.len() > step {
        let (piece, rest) = bytes.split_at(step);
        wire.deliver(Event::Data(id, piece, false), said)?;
        bytes = rest;
    }
    wire.deliver(Event::Data(id, bytes, fin), said)
}

/// What holds of a connection that goes on.
fn check(wire: &Wire<usize>, received: usize, said: &Said) {
    assert_eq!(wire.session.open as usize, said.open(), "streams are open or have ended");
    assert_eq!(wire.streams.open.len(), said.open(), "a stream is kept as long as it is open");
    let held: usize = wire.streams.open.values().map(super::Stream::held).sum();
    assert!(held <= received.min(8 * (2 * MAX_HELD)), "{held} bytes held of {received}");
    // An answer is at most a few times as long as the shortest frame that calls for it.
    let answers = wire.streams.instructions.len();
    assert!(answers <= 4 * received + 64, "{answers} bytes in answer to {received}");
}

/// Takes what is said, each exchange being the number of its request.
#[derive(Default)]
struct Said {
    exchanges: Vec<Exchange>,
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

    fn limit(&mut self, _: u32) {
        unreachable!("the limit is of QUIC");
    }

    fn goaway(&mut self) {
        self.goaways += 1;
    }
}
