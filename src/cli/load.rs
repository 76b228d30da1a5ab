//! Owns `bench load`: the flags people know from other generators, made into a plan; and the same
//! generator run by plan, as `bench run` does.

use std::io::{Read, Write};
use std::net::ToSocketAddrs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::ValueEnum;

use super::Exit;
use crate::load::plan::{Event, Expect, Limit, LoadPlan, Quic, Request, Target, Verify};
use crate::load::{self, Control};
use crate::report;
use crate::results::{HeaderField, Measurement, Protocol, ResponseSample, Resumption, SocketMode, WaitMode};
use crate::time::Span;
use crate::units::parse_duration;

/// Drive one URL with the load generator.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// URL to ask for, http:// or https://
    #[arg(required_unless_present = "plan", value_name = "URL")]
    url: Option<String>,
    /// C: connections, each kept busy all the time
    #[arg(short = 'c', long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// M: concurrent requests on each connection; HTTP/1.1 has one
    #[arg(short = 'm', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// Measure for so long, e.g. 10s or 1m30s; this or --requests is needed
    #[arg(short = 'z', long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "requests")]
    duration: Option<Span>,
    /// Measure so many requests, in place of a duration
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Worker threads [default: the CPUs this process may use, at most one for each connection]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Pin worker threads to these CPUs, in order, e.g. 2-3 or 1,3
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<CpuList>,
    /// Method [default: GET, or POST with --data]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,
    /// Extra header field, repeatable: -H 'Name: value'
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// Request body; @FILE reads a file, @- standard input
    #[arg(short = 'd', long, value_name = "BODY")]
    data: Option<String>,
    /// Protocol [default: h1 for http://, h1s for https://]
    #[arg(long, value_enum, value_name = "NAME")]
    protocol: Option<ProtocolName>,
    /// Load for so long before measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s")]
    warmup: Span,
    /// Wait at most so long for answers after measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    drain: Span,
    /// A response that takes longer fails; 0s: never
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    timeout: Span,
    /// A connection that takes longer, TLS included, fails
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    connect_timeout: Span,
    /// A fresh connection for each request
    #[arg(long, conflicts_with = "requests_per_connection")]
    disable_keepalive: bool,
    /// A fresh connection after so many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_connection: Option<u32>,
    /// What a new connection makes of an earlier one's TLS session
    #[arg(long, value_enum, default_value_t = ResumptionName::Off, value_name = "HOW")]
    resumption: ResumptionName,
    /// Connect to this HOST:PORT instead of the URL's
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "unix_socket")]
    connect_to: Option<String>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<String>,
    /// TLS server name [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Check the server's certificate, against the system's roots or those in a PEM file
    #[arg(long, value_name = "ROOTS", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    verify: Option<String>,
    /// An ok response has this status [default: any 2xx or 3xx]
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(200..1000))]
    expect_status: Option<u16>,
    /// An ok response has this body; @FILE reads a file
    #[arg(long, value_name = "BODY")]
    expect_body: Option<String>,
    /// How to wait for answers: poll the ring, sleep in the kernel, or as fits the load
    #[arg(long, value_enum, default_value_t = WaitName::Auto, value_name = "HOW")]
    wait: WaitName,
    /// When sleeping, wake up for so many receptions at once (HTTP/1.1: answers); 0: as found out while running
    #[arg(long, default_value_t = 0, value_name = "N")]
    batch: u32,
    /// Print the measurement as JSON (docs/results-format.md)
    #[arg(long)]
    json: bool,
    /// Send one request and print the response as it came, content coding left on; nothing is measured
    #[arg(long, conflicts_with_all = ["duration", "requests", "connections", "concurrency", "threads", "warmup", "json"])]
    show: bool,
    /// Run a plan (JSON, from a file or - for standard input); prints events as JSON lines
    #[arg(long, value_name = "FILE", exclusive = true)]
    plan: Option<String>,
    // Last, for what follows it would stand under its heading.
    #[command(flatten)]
    quic: QuicArgs,
}

/// What only QUIC connections have.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "QUIC (--protocol h3)")]
struct QuicArgs {
    /// How connections share UDP sockets [default: per-connection]
    #[arg(long = "quic-socket", value_enum, value_name = "HOW")]
    socket: Option<SocketName>,
    /// Spread packets over the round-trip time; on loopback this only costs
    #[arg(long = "quic-pacing")]
    pacing: bool,
    /// Largest UDP payload to send, 1200 to 65507 [default: 1200]
    #[arg(long = "quic-payload", value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=65507))]
    payload: Option<u16>,
    /// Send one datagram with each call, though the kernel could take several (UDP GSO)
    #[arg(long)]
    no_gso: bool,
    /// Receive one datagram at a time, though the kernel could hand over several (UDP GRO)
    #[arg(long)]
    no_gro: bool,
    /// Update the keys after so many packets [default: before the cipher's limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    key_update_after: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ResumptionName {
    /// Nothing: every handshake is a full one
    Off,
    /// Resume with a ticket, where one is held
    Ticket,
    /// Resume, and send the first request as early data (h3)
    #[value(name = "0rtt")]
    ZeroRtt,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SocketName {
    /// Each has its own
    PerConnection,
    /// All of a thread share one
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ProtocolName {
    /// Cleartext HTTP/1.1
    H1,
    /// HTTP/1.1 over TLS
    H1s,
    /// Cleartext HTTP/2 with prior knowledge
    H2c,
    /// HTTP/2 over TLS, by ALPN
    H2,
    /// HTTP/3 over QUIC
    H3,
}

impl From<ProtocolName> for Protocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::H1 => Self::H1,
            ProtocolName::H1s => Self::H1s,
            ProtocolName::H2c => Self::H2c,
            ProtocolName::H2 => Self::H2,
            ProtocolName::H3 => Self::H3,
        }
    }
}

impl From<ResumptionName> for Resumption {
    fn from(name: ResumptionName) -> Self {
        match name {
            ResumptionName::Off => Self::Off,
            ResumptionName::Ticket => Self::Ticket,
            ResumptionName::ZeroRtt => Self::ZeroRtt,
        }
    }
}

impl QuicArgs {
    /// The first of them that was given, for the message that it has no meaning.
    fn given(&self) -> Option<&'static str> {
        let Self { socket, pacing, payload, no_gso, no_gro, key_update_after } = self;
        [
            (socket.is_some(), "--quic-socket"),
            (*pacing, "--quic-pacing"),
            (payload.is_some(), "--quic-payload"),
            (*no_gso, "--no-gso"),
            (*no_gro, "--no-gro"),
            (key_update_after.is_some(), "--key-update-after"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }

    fn settings(&self) -> Quic {
        let default = Quic::default();
        Quic {
            socket: match self.socket {
                Some(SocketName::Shared) => SocketMode::Shared,
                Some(SocketName::PerConnection) => SocketMode::PerConnection,
                None => default.socket,
            },
            pacing: self.pacing,
            gso: !self.no_gso,
            gro: !self.no_gro,
            payload: self.payload.unwrap_or(default.payload),
            key_update_after: self.key_update_after,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WaitName {
    /// Poll when pinned to CPUs of its own and little is in flight, else sleep
    Auto,
    /// Never sleep while requests are in flight
    Poll,
    /// Always sleep in the kernel
    Sleep,
}

/// A list of CPUs, as one value of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CpuList(Vec<u32>);

/// Runs the command.
pub fn run(args: Args) -> Exit {
    match &args.plan {
        Some(source) => run_plan(source),
        None => run_url(&args),
    }
}

fn run_url(args: &Args) -> Exit {
    let plan = match plan(args) {
        Ok(plan) => plan,
        Err(message) => return could_not(&message),
    };
    let control = Control::new();
    if let Err(message) = stop_on_signals(&control) {
        return could_not(&message);
    }
    match load::run(&plan, &control, &mut |_| ()) {
        Ok(measurement) => {
            let output = match &measurement.sample {
                Some(sample) => shown(&measurement, sample),
                None if args.show => Vec::new(),
                None if args.json => {
                    format!("{}\n", serde_json::to_string_pretty(&measurement).unwrap_or_default()).into()
                }
                None => format!("{}\n", report::measurement(&measurement)).into(),
            };
            match super::print(&output) {
                Exit::Measured => verdict(&measurement),
                lost => lost,
            }
        }
        Err(error) => could_not(&error.to_string()),
    }
}

/// A response: status and fields as text, and its body behind a blank line.
fn shown(measurement: &Measurement, sample: &ResponseSample) -> Vec<u8> {
    let version = measurement.negotiated.as_ref().map_or("HTTP", |negotiated| &negotiated.http);
    let mut text = format!("{version} {}\n", sample.status);
    for HeaderField { name, value } in &sample.fields {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text.push('\n');
    let mut output = text.into_bytes();
    output.extend(BASE64_STANDARD.decode(&sample.body).unwrap_or_default());
    if sample.truncated {
        output.extend_from_slice(b"\n[longer than what is kept of it]\n");
    }
    output
}

fn run_plan(source: &str) -> Exit {
    // The child dies with the orchestrator that would read it.
    let parent = nix::unistd::getppid();
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM);
    if nix::unistd::getppid() != parent {
        return Exit::CouldNot;
    }
    let result = read(source)
        .and_then(|text| {
            serde_json::from_slice::<LoadPlan>(&text).map_err(|error| format!("the plan: {error}"))
        })
        .and_then(|plan| {
            let control = Control::new();
            stop_on_signals(&control)?;
            load::run(&plan, &control, &mut say).map_err(|error| error.to_string())
        });
    match result {
        Ok(measurement) => {
            let exit = if measurement.requests.ok > 0 { Exit::Measured } else { Exit::Unmet };
            say(Event::Measurement(Box::new(measurement)));
            exit
        }
        Err(message) => {
            say(Event::Error { message });
            Exit::CouldNot
        }
    }
}

fn say(event: Event) {
    let line = serde_json::to_string(&event).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    // When nobody reads any more, the parent is gone and a signal is on its way.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn verdict(measurement: &Measurement) -> Exit {
    if measurement.requests.ok > 0 {
        return Exit::Measured;
    }
    let reason = measurement.errors.first().map_or_else(
        || "no request was answered in time".to_owned(),
        |error| {
            let example = error.example.as_deref().unwrap_or("");
            format!("{} of {} ({example})", error.count, error.kind)
        },
    );
    eprintln!("error: nothing was ok: {reason}");
    Exit::Unmet
}

fn could_not(message: &str) -> Exit {
    eprintln!("error: {message}");
    Exit::CouldNot
}

/// Signals so close together are one.
const SAME_SIGNAL: Span = Span::from_millis(250);

/// The first Ctrl-C or SIGTERM ends the run, a second one the process.
fn stop_on_signals(control: &Control) -> Result<(), String> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| format!("cannot handle signals: {error}"))?;
    let control = control.clone();
    std::thread::spawn(move || {
        let mut first = None;
        for signal in signals.forever() {
            let first = *first.get_or_insert_with(crate::clock::now);
            control.stop();
            // timeout(1) signals the process and then its group: that is one wish, not two.
            if crate::clock::now().since(first) > SAME_SIGNAL {
                std::process::exit(128 + signal);
            }
        }
    });
    Ok(())
}

fn plan(args: &Args) -> Result<LoadPlan, String> {
    let url = args.url.as_deref().unwrap_or_default();
    let parsed = parse_url(url)?;
    let protocol = protocol(args, url, parsed.tls)?;
    if !parsed.tls && (args.verify.is_some() || args.sni.is_some()) {
        return Err(format!(
            "--verify and --sni are about TLS, and {url} is cleartext; use https:// or leave them out"
        ));
    }
    check_connections(args, protocol)?;
    let limit = match (args.duration, args.requests) {
        _ if args.show => Limit::Requests(1),
        (Some(duration), None) if duration.is_zero() => {
            return Err("a duration of 0s measures nothing".into());
        }
        (Some(duration), None) => Limit::DurationNs(duration.as_nanos()),
        (None, Some(count)) => Limit::Requests(count),
        _ => return Err("say how long to measure: a time (-z 10s) or a number of requests (-n 1000); or --show one response".into()),
    };
    let body = args.data.as_deref().map(body_of).transpose()?.unwrap_or_default();
    let method =
        args.method.clone().unwrap_or_else(|| if args.data.is_some() { "POST" } else { "GET" }.into());
    let addresses = match (&args.unix_socket, &args.connect_to) {
        (Some(path), _) => vec![format!("unix:{path}")],
        (None, Some(to)) => resolve(to)?,
        (None, None) => resolve(&format!("{}:{}", parsed.host, parsed.port))?,
    };
    let cpus = args.cpus.clone().map(|list| list.0).unwrap_or_default();
    let threads = args.threads.unwrap_or_else(|| {
        let available = if cpus.is_empty() { available_cpus() } else { cpus.len() as u32 };
        available.min(args.connections)
    });
    Ok(LoadPlan {
        protocol,
        target: Target {
            url: url.into(),
            authority: parsed.authority,
            path: parsed.path,
            sni: args.sni.clone().unwrap_or_else(|| parsed.host.trim_matches(['[', ']']).into()),
            addresses,
        },
        request: Request { method, headers: args.headers.clone(), body: BASE64_STANDARD.encode(body) },
        expect: Expect {
            status: args.expect_status,
            body: args
                .expect_body
                .as_deref()
                .map(body_of)
                .transpose()?
                .map(|body| BASE64_STANDARD.encode(body)),
            length: None,
        },
        connections: if args.show { 1 } else { args.connections },
        concurrency: args.concurrency,
        threads,
        cpus,
        limit,
        warmup_ns: args.warmup.as_nanos(),
        drain_ns: args.drain.as_nanos(),
        timeout_ns: args.timeout.as_nanos(),
        connect_timeout_ns: args.connect_timeout.as_nanos(),
        keepalive: !args.disable_keepalive,
        requests_per_connection: args.requests_per_connection,
        resumption: args.resumption.into(),
        quic: args.quic.settings(),
        wait: match args.wait {
            WaitName::Auto => WaitMode::Auto,
            WaitName::Poll => WaitMode::Poll,
            WaitName::Sleep => WaitMode::Sleep,
        },
        batch: args.batch,
        verify: args.verify.as_deref().map(|path| match path {
            "" => Verify::System,
            path => Verify::Roots(path.into()),
        }),
        sample: args.show,
    })
}

/// What was said of connections that this protocol's do not have.
fn check_connections(args: &Args, protocol: Protocol) -> Result<(), String> {
    let resumption = Resumption::from(args.resumption);
    let name = protocol.name();
    if !resumption.possible_over(protocol) {
        return Err(match resumption {
            Resumption::ZeroRtt => format!(
                "--resumption 0rtt sends early data over h3 alone, and this is {name}; use --protocol h3 or \
                 --resumption ticket"
            ),
            _ => format!(
                "--resumption {} resumes TLS sessions, and {name} is cleartext; use https:// or leave it out",
                resumption.name()
            ),
        });
    }
    if protocol.is_quic() && args.unix_socket.is_some() {
        return Err(
            "QUIC runs over UDP, not over a Unix socket; leave --unix-socket out or use --protocol h2".into(),
        );
    }
    match args.quic.given() {
        Some(flag) if !protocol.is_quic() => {
            Err(format!("{flag} is about QUIC, and this is {name}; use --protocol h3 or leave it out"))
        }
        _ => Ok(()),
    }
}

/// The protocol asked for, or HTTP/1.1 as the scheme says.
fn protocol(args: &Args, url: &str, tls: bool) -> Result<Protocol, String> {
    let by_scheme = if tls { Protocol::H1s } else { Protocol::H1 };
    let protocol = args.protocol.map_or(by_scheme, Protocol::from);
    let name = protocol.name();
    // The other protocol of this version, over the transport of the URL.
    let other = Protocol::ALL.into_iter().find(|p| p.version() == protocol.version() && p.is_tls() == tls);
    let other = other.map_or("another protocol", Protocol::name);
    match (protocol.is_tls(), tls) {
        (false, true) => {
            return Err(format!("{name} is cleartext, and {url} asks for TLS; use {other} or http://"));
        }
        (true, false) => {
            let what = if protocol.is_quic() { "is always encrypted" } else { "is TLS" };
            let cleartext =
                if protocol.is_quic() { "https://".into() } else { format!("{other} or https://") };
            return Err(format!("{name} {what}, and {url} is cleartext; use {cleartext}"));
        }
        _ => {}
    }
    let m = args.concurrency;
    if m > 1 && !protocol.multiplexes() {
        return Err(format!(
            "HTTP/1.1 carries one request at a time on a connection, and -m {m} asks for more; use more \
             connections (-c) instead, or HTTP/2 (--protocol {})",
            if tls { "h2" } else { "h2c" }
        ));
    }
    if m > 1 && args.disable_keepalive {
        return Err(format!(
            "with --disable-keepalive each connection carries one request, and -m {m} asks for more; leave one \
             of them out"
        ));
    }
    if let Some(requests) = args.requests_per_connection.filter(|requests| *requests < m) {
        return Err(format!(
            "--requests-per-connection {requests} is less than the {m} at once that -m asks for; write {m} or \
             more, or a smaller -m"
        ));
    }
    Ok(protocol)
}

struct ParsedUrl {
    tls: bool,
    host: String,
    port: u16,
    authority: String,
    path: String,
}

fn parse_url(url: &str) -> Result<ParsedUrl, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("`{url}` is not a URL: {error}"))?;
    let tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(format!("`{url}` must start with http:// or https://")),
    };
    let authority = uri.authority().ok_or_else(|| format!("`{url}` names no host"))?;
    if authority.as_str().contains('@') {
        return Err(format!("`{url}` holds credentials; send them with -H 'Authorization: ...'"));
    }
    let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
        None | Some("") => {
            if tls {
                443
            } else {
                80
            }
        }
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("`{text}` in `{url}` is no port; ports go from 1 to 65535")),
        },
    };
    Ok(ParsedUrl {
        tls,
        host: authority.host().into(),
        port,
        authority: authority.as_str().into(),
        path: match uri.path_and_query().map_or("/", |path| path.as_str()) {
            query if query.starts_with('?') => format!("/{query}"),
            path => path.into(),
        },
    })
}

/// Every address of a name, in the order of the resolver, without repetition.
fn resolve(host_port: &str) -> Result<Vec<String>, String> {
    let found =
        host_port.to_socket_addrs().map_err(|error| format!("cannot resolve {host_port}: {error}"))?;
    let mut addresses: Vec<String> = Vec::new();
    for address in found.map(|address| address.to_string()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(format!("{host_port} has no address")) } else { Ok(addresses) }
}

fn available_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

fn body_of(data: &str) -> Result<Vec<u8>, String> {
    match data.strip_prefix('@') {
        Some(source) => read(source),
        None => Ok(data.as_bytes().to_vec()),
    }
}

fn read(source: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let result = match source {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        path => std::fs::read(path).map(|read| bytes = read),
    };
    result.map(|()| bytes).map_err(|error| format!("cannot read {source}: {error}"))
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'Name: value'")?;
    Ok((name.trim().into(), value.trim().into()))
}

fn parse_cpus(text: &str) -> Result<CpuList, String> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim().parse::<u32>().map_err(|_| format!("`{text}` is not a CPU number; write 0-3 or 1,3"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > 4095 {
            return Err(format!("`{part}` is not a range of CPUs"));
        }
        cpus.extend(first..=last);
    }
    Ok(CpuList(cpus))
}

const EXAMPLES: &str = "\
Examples:
  bench load -c 50 -z 10s http://127.0.0.1:8080/
  bench load -n 100000 -t 1 --cpus 3 http://127.0.0.1:8080/
  bench load -H 'Content-Type: application/json' -d @body.json -z 5s http://127.0.0.1:8080/
  bench load --protocol h2c -c 10 -m 32 -z 10s http://127.0.0.1:8080/  # HTTP/2: 32 streams on each connection
  bench load --protocol h3 -c 32 -m 32 -z 10s https://localhost:4433/  # HTTP/3
  bench load --protocol h3 --resumption 0rtt --disable-keepalive -n 4000 --warmup 1s https://localhost:4433/
  bench load --disable-keepalive -c 20 -z 5s https://localhost:8443/  # handshakes per second
  bench load --connect-to 127.0.0.1:8443 --sni example.org -z 5s https://example.org/
  bench load --show -H 'Accept-Encoding: gzip' http://127.0.0.1:8080/  # one response, to look at
  bench load --plan - < plan.json

Exit codes: 0 measured; 1 nothing was ok; 2 could not measure.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let parsed = parse_url("https://[::1]:8443/a?b=c").unwrap_or_else(|e| panic!("{e}"));
        assert!(parsed.tls);
        assert_eq!((parsed.host.as_str(), parsed.port), ("[::1]", 8443));
        assert_eq!((parsed.authority.as_str(), parsed.path.as_str()), ("[::1]:8443", "/a?b=c"));
        let query = parse_url("http://x?y=1").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((query.path.as_str(), query.port), ("/?y=1", 80));
        for bad in [
            "localhost",
            "ftp://x/",
            "http:///x",
            "http://u:p@x/",
            "http://x:99999/",
            "http://x:65536/",
            "http://x:abc/",
            "http://[::1]:0/",
        ] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(parse_cpus("0-2,5"), Ok(CpuList(vec![0, 1, 2, 5])));
        for bad in ["", "3-1", "a", "1-", "0-99999"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }
}
