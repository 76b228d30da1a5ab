//! Owns the client of a case: the product's connection, and the books of what it was told.

use std::sync::Arc;

use bench::proto::quic::{Application, ApplicationError, Closed, Config, Connection, Progress};
use bench::time::{Instant, Span};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::case::{Case, SERVER_SAYS, answer_byte, asked_byte};
use crate::common::random::Random;

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Answered,
    Reset(u64),
    /// The client gave it up.
    Abandoned,
    /// Its connection ended.
    Lost,
}

/// A connection and its books.
pub(crate) struct Client<'a> {
    pub(crate) connection: Connection<Exchange>,
    pub(crate) books: Books<'a>,
    pub(crate) closed: Option<Closed>,
    /// It said goodbye.
    pub(crate) closing: bool,
    image: Arc<[u8]>,
    random: Random,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Exchange {
    number: u64,
    received: usize,
}

pub(crate) struct Books<'a> {
    case: &'a Case,
    pub(crate) outcomes: Vec<Option<Outcome>>,
    /// Of them: how many are not over.
    pub(crate) open: u64,
    said: usize,
}

impl<'a> Client<'a> {
    pub(crate) fn new(case: &'a Case, tls: Arc<ClientConfig>, now: Instant) -> Self {
        let config = Config {
            payload: case.payload,
            pacing: case.pacing,
            key_update_after: case.key_update_after,
            idle_timeout: Span::from_secs(30),
            ..Config::default()
        };
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = Connection::new(&config, tls, name, case.seed << 16, case.seed, now);
        let mut connection = connection.expect("TLS can begin");
        connection.open_uni(crate::case::CLIENT_SAYS);
        Self {
            connection,
            books: Books { case, outcomes: Vec::new(), open: 0, said: 0 },
            closed: None,
            closing: false,
            image: (0..case.upload).map(asked_byte).collect(),
            random: Random::new(case.seed ^ 0xc11e),
        }
    }

    /// Opens what may be opened, and says goodbye when all is done.
    pub(crate) fn work(&mut self) {
        if self.closed.is_some() || self.closing {
            return;
        }
        let case = self.books.case;
        let may = self.connection.established() || self.connection.has_early_data();
        while may
            && (self.books.outcomes.len() as u64) < case.requests
            && self.books.open < case.concurrency
            && self.connection.room() > 0
        {
            let number = self.books.outcomes.len() as u64;
            self.books.outcomes.push(None);
            self.books.open += 1;
            let id = self.connection.open(Exchange { number, received: 0 }, &self.image);
            assert_eq!(id, number * 4, "streams are opened in order");
            if self.random.chance(case.abandoned) {
                let exchange = self.connection.abandon(id, ABANDONED).expect("it was just opened");
                self.books.over(exchange.number, Outcome::Abandoned);
            }
        }
        if self.books.outcomes.len() as u64 == case.requests && self.books.open == 0 {
            self.closing = true;
            let code = GOODBYE;
            self.connection.close(&ApplicationError { code, kind: "goodbye", text: String::new() });
        }
    }

    /// Takes in a datagram.
    pub(crate) fn receive(&mut self, now: Instant, datagram: &mut [u8]) {
        if self.closed.is_none()
            && let Err(closed) = self.connection.receive(now, datagram, &mut self.books)
        {
            self.ended(closed);
        }
    }

    pub(crate) fn elapse(&mut self, now: Instant) {
        if self.closed.is_none()
            && let Err(closed) = self.connection.elapse(now)
        {
            self.ended(closed);
        }
    }

    fn ended(&mut self, closed: Closed) {
        self.closed = Some(closed);
        let lost: Vec<u64> = self.connection.streams().map(|(_, exchange)| exchange.number).collect();
        for number in lost {
            self.books.over(number, Outcome::Lost);
        }
        assert_eq!(self.books.open, 0, "every request that was not over was still kept");
    }
}

impl Books<'_> {
    fn over(&mut self, number: u64, outcome: Outcome) {
        let was = self.outcomes[number as usize].replace(outcome);
        assert_eq!(was, None, "request {number} ends once");
        self.open -= 1;
    }
}

impl Application<Exchange> for Books<'_> {
    fn data(
        &mut self,
        stream: &mut Exchange,
        id: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Result<Progress, ApplicationError> {
        assert_eq!(id, stream.number * 4);
        let expected = self.case.answer(stream.number);
        for byte in bytes {
            assert_eq!(*byte, answer_byte(stream.number, stream.received), "at {} of {id}", stream.received);
            stream.received += 1;
        }
        assert!(stream.received <= expected, "stream {id} has no more than was sent");
        if !fin {
            return Ok(Progress::More);
        }
        assert_eq!(stream.received, expected, "stream {id} has all that was sent");
        self.over(stream.number, Outcome::Answered);
        Ok(Progress::Done)
    }

    fn reset(&mut self, stream: &mut Exchange, id: u64, code: u64) -> Result<Progress, ApplicationError> {
        assert_eq!(id, stream.number * 4);
        self.over(stream.number, Outcome::Reset(code));
        Ok(Progress::Done)
    }

    fn stopped(&mut self, stream: &mut Exchange, id: u64, code: u64) -> Result<Progress, ApplicationError> {
        assert_eq!((id, code), (stream.number * 4, STOPPED));
        Ok(Progress::More)
    }

    fn uni_data(&mut self, id: u64, bytes: &[u8], fin: bool) -> Result<(), ApplicationError> {
        assert_eq!(id, 3);
        assert!(SERVER_SAYS[self.said..].starts_with(bytes));
        self.said += bytes.len();
        assert_eq!(fin, self.said == SERVER_SAYS.len());
        Ok(())
    }

    fn uni_reset(&mut self, id: u64, code: u64) -> Result<(), ApplicationError> {
        panic!("nobody resets {id} with {code}");
    }

    fn uni_stopped(&mut self, id: u64, code: u64) -> Result<(), ApplicationError> {
        panic!("nobody stops {id} with {code}");
    }
}

/// Codes of the client's, and what the server stops streams with.
pub(crate) const ABANDONED: u64 = 0xab;
pub(crate) const GOODBYE: u64 = 0x60;
pub(crate) const STOPPED: u64 = 0x57;
