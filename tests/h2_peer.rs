//! HTTP/2 against the `h2` crate, in memory: whatever a server sets, sends, resets and shuts down, each
//! request has the outcome the server gave it, and the server finds no fault with what it was sent.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use bench::proto::exchange::{Failure, Responses};
use bench::proto::h2::{Config, Connection, Request};
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Response};
use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinSet,
};

/// One connection: what both sides set, and what becomes of each request.
#[derive(Clone, Debug)]
struct Case {
    client: Config,
    server: Settings,
    head: bool,
    /// Bytes of the request's body, and of a field of it.
    body: usize,
    field: usize,
    /// Requests, and what is done with the first, the second, ..., and then with the first once more.
    requests: usize,
    plans: Vec<Plan>,
    shutdown: Option<(usize, Shutdown)>,
    /// Bytes that are under way at most, and that the client reads and pumps at a time.
    pipe: usize,
    read: usize,
    pump: usize,
}

/// What the server tells, and what it changes while requests run.
#[derive(Clone, Debug)]
struct Settings {
    stream_window: u32,
    connection_window: u32,
    frame_size: u32,
    streams: u32,
    header_table: u32,
    /// Initial windows, one set with each request that is accepted.
    later_windows: Vec<u32>,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
struct Plan {
    /// It is answered without being read to its end.
    early: bool,
    interims: u32,
    status: u16,
    /// Bytes of the body, and of each piece of it.
    body: usize,
    piece: usize,
    with_length: bool,
    /// Bytes of a field of the response.
    field: usize,
    trailers: bool,
    reset: Option<(Moment, Reason)>,
    /// When the client gives it up.
    cancelled: Option<Moment>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    AtOnce,
    AfterHeaders,
}

/// How the server ends the connection, once it has accepted so many requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shutdown {
    Graceful,
    Abrupt,
}

/// What the client was told of a request.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Told {
    interims: u32,
    status: Option<u16>,
    body: Vec<u8>,
    end: Option<Result<(), Failure>>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_request_has_the_outcome_the_server_gave_it(case in any_case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(&case));
    }
}

/// Runs a case and panics where it does not come out as planned.
async fn run(case: &Case) {
    let (io, served) = tokio::io::duplex(case.pipe);
    let accepted = Arc::default();
    let server = tokio::spawn(serve(case.clone(), served, Arc::clone(&accepted)));
    let told = Client::new(case).run(io).await;
    server.await.expect("a server without complaints");

    let accepted = accepted.lock().expect("the server's tasks have ended");
    if case.shutdown.is_none() {
        assert_eq!(told.len(), case.requests, "all requests were sent");
    }
    for (number, told) in told.iter().enumerate() {
        let end = told.end.as_ref().expect("a request is answered or has failed");
        let plan = case.plan(number);
        let why =
            format!("request {number}, {plan:?}: {end:?}, {:?}, {} bytes", told.status, told.body.len());
        match end {
            Ok(()) => {
                assert!(plan.reset.is_none() && plan.cancelled != Some(Moment::AtOnce), "{why}");
                assert_eq!((told.status, told.interims), (Some(plan.status), plan.interims), "{why}");
                assert!(told.body == case.answer(number), "{why}");
            }
            Err(Failure::Refused) => {
                let by_plan = matches!(plan.reset, Some((_, Reason::REFUSED_STREAM)));
                let by_itself = case.shutdown.is_some() || case.ends_streams_early();
                assert!(by_plan || (by_itself && !accepted.contains(&number)), "{why}");
            }
            // What the server had queued goes with its connection, but for the word that it has read enough.
            Err(Failure::Reset { code: 0, .. }) => assert!(plan.early && case.is_cut_off(), "{why}"),
            Err(Failure::Reset { code, .. }) => {
                assert!(plan.reset.is_some_and(|(_, reason)| u64::from(u32::from(reason)) == *code), "{why}");
            }
            Err(Failure::Cancelled) => assert!(plan.cancelled.is_some(), "{why}"),
            Err(Failure::Closed) => assert!(case.is_cut_off(), "{why}"),
            Err(Failure::Malformed { .. }) => panic!("{why}"),
        }
    }
}

impl Case {
    fn plan(&self, number: usize) -> &Plan {
        &self.plans[number % self.plans.len()]
    }

    /// Whether the server ends the connection under the requests it is answering.
    fn is_cut_off(&self) -> bool {
        matches!(self.shutdown, Some((_, Shutdown::Abrupt)))
    }

    /// Whether one side may be done with a stream before the other. This server then counts it a
    /// little longer than its own limit would have it, and may refuse the one that takes its place.
    fn ends_streams_early(&self) -> bool {
        self.plans.iter().any(|plan| plan.early || plan.reset.is_some() || plan.cancelled.is_some())
    }

    /// The body of the answer to a request; others differ in every byte.
    fn answer(&self, number: usize) -> Vec<u8> {
        let plan = self.plan(number);
        let length = if self.head || matches!(plan.status, 204 | 304) { 0 } else { plan.body };
        (0..length).map(|at| (at / 7 + number) as u8).collect()
    }

    fn request_body(&self) -> Vec<u8> {
        (0..self.body).map(|at| (at / 11) as u8).collect()
    }
}

/// The client: a connection, what it was told, what it has not sent yet.
struct Client<'a> {
    case: &'a Case,
    connection: Connection<usize>,
    request: Request,
    log: Log,
    opened: usize,
    unsent: Vec<u8>,
}

impl<'a> Client<'a> {
    fn new(case: &'a Case) -> Self {
        let method = if case.head { "HEAD" } else { "POST" };
        let fields = [
            ("X-Field".to_owned(), "f".repeat(case.field)),
            ("Authorization".to_owned(), "Basic x".to_owned()),
        ];
        let request = Request::new(method, "http", "/path?q", "localhost:80", &fields, &case.request_body())
            .expect("a valid request");
        let log = Log { plans: case.plans.clone(), ..Log::default() };
        Self { case, connection: Connection::new(case.client), request, log, opened: 0, unsent: Vec::new() }
    }

    /// Sends all requests, until they have ended and the connection with them.
    async fn run(mut self, mut io: DuplexStream) -> Vec<Told> {
        loop {
            self.open();
            if self.unsent.is_empty() {
                self.connection.pump(&self.request, self.case.pump);
                self.unsent.append(self.connection.output());
            }
            let done = self.opened == self.case.requests || self.connection.finished();
            if done && self.connection.streams() == 0 && self.unsent.is_empty() {
                break;
            }
            if !self.turn(&mut io).await {
                self.connection.closed(&mut self.log);
                return self.log.told;
            }
        }
        // What the server still says has to be in order as well; it may be in the middle of it.
        let (mut reader, mut writer) = tokio::io::split(io);
        writer.shutdown().await.expect("a pipe that can be closed");
        let mut buffer = [0; 4096];
        while let Ok(received @ 1..) = reader.read(&mut buffer).await {
            self.connection
                .receive(&self.request, &buffer[..received], &mut self.log)
                .expect("frames in order");
        }
        assert_eq!(self.connection.streams(), 0);
        self.log.told
    }

    fn open(&mut self) {
        if self.case.server.stream_window < 65_535 && !self.connection.settled() {
            // The first request, sent with the window of RFC 9113 §6.9.2, would see it become smaller.
            return;
        }
        while self.opened < self.case.requests && self.connection.room() > 0 {
            let number = self.opened;
            self.opened += 1;
            self.log.told.push(Told::default());
            self.connection.open(&self.request, number);
            if self.case.plan(number).cancelled == Some(Moment::AtOnce) {
                self.connection.cancel(|exchange| *exchange == number, &mut self.log);
            }
            assert!(self.connection.streams() <= self.connection.limit());
        }
    }

    /// Sends or receives something; false when the server has closed.
    async fn turn(&mut self, io: &mut DuplexStream) -> bool {
        let mut buffer = vec![0; self.case.read];
        let (mut reader, mut writer) = tokio::io::split(io);
        let received = tokio::select! {
            biased;
            sent = writer.write(&self.unsent), if !self.unsent.is_empty() => {
                match sent {
                    Ok(sent) => {
                        self.unsent.drain(..sent);
                        return true;
                    }
                    // The server closed; what it said before is still to be read.
                    Err(_) => {
                        self.unsent.clear();
                        self.connection.output().clear();
                        return self.case.shutdown.is_some();
                    }
                }
            },
            received = reader.read(&mut buffer) => received.expect("a readable pipe"),
            () = tokio::time::sleep(STUCK) => panic!("stuck: {}", self.connection.describe()),
        };
        if received == 0 {
            return false;
        }
        self.connection.receive(&self.request, &buffer[..received], &mut self.log).expect("frames in order");
        let give_up = std::mem::take(&mut self.log.give_up);
        self.connection.cancel(|exchange| give_up.contains(exchange), &mut self.log);
        true
    }
}

/// Writes down what is told; an exchange is the number of its request.
#[derive(Default)]
struct Log {
    plans: Vec<Plan>,
    told: Vec<Told>,
    /// To be given up now that its header is there.
    give_up: Vec<usize>,
}

impl Log {
    fn at(&mut self, number: usize) -> &mut Told {
        let told = &mut self.told[number];
        assert_eq!(told.end, None, "request {number} has ended");
        told
    }
}

impl Responses<usize> for Log {
    fn interim(&mut self, exchange: &mut usize) {
        self.at(*exchange).interims += 1;
    }

    fn headers(&mut self, exchange: &mut usize, status: u16) {
        assert_eq!(self.at(*exchange).status.replace(status), None);
        if self.plans[*exchange % self.plans.len()].cancelled == Some(Moment::AfterHeaders) {
            self.give_up.push(*exchange);
        }
    }

    fn data(&mut self, exchange: &mut usize, bytes: &[u8]) {
        self.at(*exchange).body.extend_from_slice(bytes);
    }

    fn complete(&mut self, exchange: usize) {
        self.at(exchange).end = Some(Ok(()));
    }

    fn failed(&mut self, exchange: usize, failure: Failure) {
        self.at(exchange).end = Some(Err(failure));
    }

    fn limit(&mut self, _: u32) {}

    fn goaway(&mut self) {}
}

/// Serves one connection as planned, until the client closes it or the plan does.
async fn serve(case: Case, io: DuplexStream, accepted: Arc<Mutex<BTreeSet<usize>>>) {
    let (settings, shutdown) = (&case.server, case.shutdown);
    let mut server = h2::server::Builder::new()
        .initial_window_size(settings.stream_window)
        .initial_connection_window_size(settings.connection_window)
        .max_frame_size(settings.frame_size)
        .max_concurrent_streams(settings.streams)
        .header_table_size(settings.header_table)
        // Its defences against floods of resets and of small frames are not the subject.
        .max_pending_accept_reset_streams(1000)
        .max_local_error_reset_streams(None)
        .data_frame_budget(usize::MAX)
        .handshake::<_, Bytes>(io)
        .await
        .expect("a client's first flight");
    let mut tasks = JoinSet::new();
    let mut later_windows = settings.later_windows.iter();
    loop {
        let (request, respond) = match server.accept().await {
            None => break,
            Some(Ok(request)) => request,
            // The client, or the plan, may close the pipe in the middle; nothing else may go wrong.
            Some(Err(error)) if error.is_io() => break,
            Some(Err(error)) => {
                assert!(
                    case.is_cut_off() && error.is_go_away() && !error.is_remote(),
                    "a fault of the client: {error}"
                );
                break;
            }
        };
        let number = (respond.stream_id().as_u32() - case.client.first_stream) as usize / 2;
        let count = {
            let mut accepted = accepted.lock().expect("nobody panics with it");
            assert!(accepted.insert(number));
            accepted.len()
        };
        let case = case.clone();
        tasks.spawn(async move {
            let result = answer(&case, number, request, respond).await;
            // Only what the client gave up, or the plan cut off, can fail.
            let cut_off = case.plan(number).cancelled.is_some() || case.is_cut_off();
            assert!(result.is_ok() || cut_off, "request {number}: {result:?}");
        });
        if let Some(&window) = later_windows.next() {
            // Refused while the one before is not acknowledged, which leaves that in force.
            let _ = server.set_initial_window_size(window);
        }
        if let Some((after, kind)) = shutdown
            && count == after
        {
            match kind {
                Shutdown::Graceful => server.graceful_shutdown(),
                Shutdown::Abrupt => server.abrupt_shutdown(Reason::INTERNAL_ERROR),
            }
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("an answer as planned");
    }
}

/// Answers one request as planned, after a look at what came.
async fn answer(
    case: &Case,
    number: usize,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let plan = case.plan(number);
    let (parts, body) = request.into_parts();
    check_head(case, &parts);
    if let Some((Moment::AtOnce, reason)) = plan.reset {
        respond.send_reset(reason);
        return Ok(());
    }
    if !plan.early {
        assert!(read(body).await? == case.request_body(), "request {number} came with another body");
    }
    for _ in 0..plan.interims {
        respond.send_informational(Response::builder().status(103).body(()).expect("a valid response"))?;
    }
    let body = case.answer(number);
    let mut response = Response::builder().status(plan.status);
    if plan.field > 0 {
        response = response.header("x-field", "f".repeat(plan.field)).header("x-number", number);
    }
    if plan.with_length {
        // Of an answer to HEAD, and of a 304, it is the length that another would have.
        let length = if case.head || plan.status == 304 { plan.body } else { body.len() };
        response = response.header("content-length", length);
    }
    let bodiless = body.is_empty() && !plan.trailers && plan.reset.is_none();
    let mut stream = respond.send_response(response.body(()).expect("a valid response"), bodiless)?;
    if let Some((Moment::AfterHeaders, reason)) = plan.reset {
        // What is queued goes with the stream; half of it may be under way by then.
        send(&mut stream, &body[..body.len() / 2], plan.piece, false)?;
        tokio::task::yield_now().await;
        stream.send_reset(reason);
        return Ok(());
    }
    if !bodiless {
        send(&mut stream, &body, plan.piece, !plan.trailers)?;
    }
    if plan.trailers {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-check", HeaderValue::from(number));
        stream.send_trailers(trailers)?;
    }
    Ok(())
}

fn check_head(case: &Case, parts: &http::request::Parts) {
    assert_eq!(parts.method, if case.head { "HEAD" } else { "POST" });
    assert_eq!(parts.uri, "http://localhost:80/path?q");
    assert_eq!(parts.headers.len(), if case.head && case.body == 0 { 2 } else { 3 });
    assert_eq!(parts.headers["x-field"].len(), case.field);
    assert_eq!(parts.headers["authorization"], "Basic x");
}

/// The whole body, its windows given back as it comes.
async fn read(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut whole = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        whole.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(whole)
}

/// Queues the body in pieces; the library keeps to the windows.
fn send(stream: &mut SendStream<Bytes>, body: &[u8], piece: usize, end: bool) -> Result<(), h2::Error> {
    let mut pieces = body.chunks(piece).peekable();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        stream.send_data(Bytes::copy_from_slice(piece), end && last)?;
    }
    if body.is_empty() && end {
        stream.send_data(Bytes::new(), true)?;
    }
    Ok(())
}

fn any_case() -> impl Strategy<Value = Case> {
    let window = || prop_oneof![500..5000_u32, Just(65_535), Just(1 << 20)];
    let connection_window = || prop_oneof![Just(65_535), 65_535..200_000_u32, Just(1 << 24)];
    let table = || prop::sample::select(vec![0, 60, 300, 4096, 8192]);
    let client = (1..20_u32, window(), connection_window(), table(), any::<bool>()).prop_map(
        |(most, stream_window, connection_window, header_table, late)| Config {
            most,
            stream_window,
            connection_window,
            header_table: header_table.min(4096),
            // Near the end of the identifiers there is room for all requests of a case.
            first_stream: if late { (1 << 31) - 101 } else { 1 },
        },
    );
    let later_windows = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(window(), 1..10)];
    let server = (window(), connection_window(), 16_384..40_000_u32, 1..12_u32, table(), later_windows)
        .prop_map(
            |(stream_window, connection_window, frame_size, streams, header_table, mut later_windows)| {
                // Only larger ones: this server does not give back what it has already read when the window
                // becomes smaller, and then waits for data that it allows nobody to send.
                later_windows.retain(|window| *window > stream_window);
                later_windows.sort_unstable();
                Settings {
                    stream_window,
                    connection_window,
                    frame_size,
                    streams,
                    header_table,
                    later_windows,
                }
            },
        );
    let kind = prop_oneof![Just(Shutdown::Graceful), Just(Shutdown::Abrupt)];
    let shutdown = prop_oneof![2 => Just(None), 1 => (1..20_usize, kind).prop_map(Some)];
    let body = prop_oneof![2 => Just(0), 1 => 1..2000_usize, 1 => 2000..100_000_usize];
    let field = prop_oneof![4 => 0..100_usize, 1 => 10_000..30_000_usize];
    let flow = (prop_oneof![1..100_usize, 1000..70_000_usize], 1..20_000_usize, 1..100_000_usize);
    let plans = prop::collection::vec(any_plan(), 1..6);
    (client, server, prop::bool::weighted(0.1), body, field, 1..40_usize, plans, shutdown, flow).prop_map(
        |(client, server, head, body, field, requests, plans, shutdown, (pipe, read, pump))| Case {
            client,
            server,
            head,
            body,
            field,
            requests,
            plans,
            shutdown,
            pipe,
            read,
            pump,
        },
    )
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let body = prop_oneof![2 => 0..50_usize, 1 => 50..30_000_usize];
    let field = prop_oneof![4 => 0..50_usize, 1 => 15_000..40_000_usize];
    let moment = || prop_oneof![Just(Moment::AtOnce), Just(Moment::AfterHeaders)];
    let reason = prop::sample::select(vec![
        Reason::REFUSED_STREAM,
        Reason::CANCEL,
        Reason::INTERNAL_ERROR,
        Reason::HTTP_1_1_REQUIRED,
    ]);
    (
        (prop::bool::weighted(0.3), prop_oneof![3 => Just(0), 1 => 1..4_u32]),
        prop::sample::select(vec![200, 200, 200, 204, 304, 404, 500, 999]),
        (body, 1..5000_usize),
        any::<bool>(),
        field,
        prop::bool::weighted(0.2),
        prop::option::weighted(0.15, (moment(), reason)),
        prop::option::weighted(0.15, moment()),
    )
        .prop_map(
            |((early, interims), status, (body, piece), with_length, field, trailers, reset, cancelled)| {
                Plan {
                    early,
                    interims,
                    status,
                    body,
                    piece,
                    with_length: with_length && status != 204,
                    field,
                    trailers,
                    reset,
                    cancelled,
                }
            },
        )
}

/// After so long without a byte in either direction, nothing comes any more.
const STUCK: Duration = Duration::from_secs(20);
