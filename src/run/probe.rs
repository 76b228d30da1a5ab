//! Owns the question whether a server is ready: one request by the generator itself, over the
//! protocol of the section, judged by the expectation of the scenario. What the generator met is put
//! into words that say what the server does wrong.

use super::cell::{Ending, Sampling, watch};
use super::generator::Link;
use super::plan::PROBE_TIMEOUT;
use crate::results::{ErrorCount, Measurement, Phase, ResponseSample, ServerSample, verdict};
use crate::server::Probe;
use crate::time::{Instant, Span};
use crate::units::format_duration;

/// What a probe found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Something about the server.
    Server(Probe),
    /// The run is to stop.
    Halted(String),
    /// The generator cannot work here: no server will ever be ready.
    Refused(String),
    /// The server speaks another protocol than the one asked for, and will go on to.
    OtherProtocol(String),
}

/// Asks once, by a generator that was started on [`super::plan::probe`].
pub(crate) fn ask(link: &mut impl Link) -> Answer {
    // Connection and response each have their time-out; the rest is for the process itself.
    let allowed = PROBE_TIMEOUT + PROBE_TIMEOUT + PROCESS_ALLOWANCE;
    let watched = watch(link, &mut Unsampled, allowed, Span::ZERO);
    match (watched.ending, watched.measurement) {
        (Ending::Refused(message), _) => Answer::Refused(message),
        (Ending::Cut(reason), _) => Answer::Halted(reason),
        (_, Some(measurement)) => match verdict::other_protocol(&measurement.errors) {
            Some(met) => Answer::OtherProtocol(verdict::not_spoken(measurement.protocol, met)),
            None => Answer::Server(judge(&measurement)),
        },
        (Ending::Failed(reason), None) => Answer::Server(Probe::NotYet(reason)),
        (Ending::Measured, None) => Answer::Server(Probe::NotYet("the probe measured nothing".into())),
    }
}

/// Takes one response whatever it is, by a generator that was started on [`super::plan::look`].
///
/// # Errors
/// Why there is none.
pub(crate) fn look(link: &mut impl Link) -> Result<ResponseSample, Ending> {
    let allowed = PROBE_TIMEOUT + PROBE_TIMEOUT + PROCESS_ALLOWANCE;
    let watched = watch(link, &mut Unsampled, allowed, Span::ZERO);
    let sample = watched.measurement.and_then(|measurement| measurement.sample);
    match (watched.ending, sample) {
        (ending @ (Ending::Refused(_) | Ending::Cut(_)), _) => Err(ending),
        (_, Some(sample)) => Ok(sample),
        (Ending::Failed(reason), None) => {
            Err(Ending::Failed(format!("its answer could not be looked at: {reason}")))
        }
        (Ending::Measured, None) => Err(Ending::Failed("the generator kept no response to look at".into())),
    }
}

/// Ready is exactly one expected response.
fn judge(measurement: &Measurement) -> Probe {
    if measurement.requests.ok >= 1 {
        return Probe::Ready;
    }
    let url = &measurement.url;
    let Some(error) = measurement.errors.first() else {
        return Probe::NotYet(format!("no answer from {url}"));
    };
    let detail = error.example.as_deref().unwrap_or(&error.kind);
    match error.phase {
        Phase::Connect if !measurement.protocol.is_quic() => {
            Probe::NotYet(format!("nothing accepts connections for {url} ({})", error.kind))
        }
        Phase::Tls if came_to_nothing(error) => {
            Probe::NotYet(format!("the connection for {url} ended during the TLS handshake ({})", error.kind))
        }
        // An ICMP refusal and silence alike: nobody listens on the UDP port, or not yet.
        Phase::Connect | Phase::Quic if came_to_nothing(error) => Probe::NotYet(format!(
            "no {}: nothing answers QUIC on the UDP port of {url} ({})",
            measurement.protocol.version(),
            error.kind
        )),
        Phase::Connect | Phase::Quic => {
            Probe::NotYet(format!("the QUIC connection to {url} failed: {detail}"))
        }
        Phase::Tls => Probe::Wrong(format!("the TLS handshake for {url} failed: {detail}")),
        Phase::Write | Phase::Read | Phase::Interrupted | Phase::Refused => {
            Probe::NotYet(format!("the connection ended before {url} answered ({})", error.kind))
        }
        Phase::Timeout => Probe::NotYet(format!(
            "{url} accepted a connection and did not answer within {}",
            format_duration(PROBE_TIMEOUT)
        )),
        Phase::Framing => Probe::Wrong(format!("what {url} answered is not valid HTTP: {detail}")),
        Phase::Unexpected => {
            Probe::Wrong(format!("{url} answered, but not as `expect` asks: {} ({detail})", error.kind))
        }
    }
}

/// True for a handshake that was broken off or met without a word, as by a server that is not up yet:
/// errno names, and time-outs of every kind.
fn came_to_nothing(error: &ErrorCount) -> bool {
    error.kind.starts_with('E') || error.kind.ends_with("timeout")
}

/// A probe looks at the answer, not at what it cost.
pub(crate) struct Unsampled;

impl Sampling for Unsampled {
    type Snapshot = ();

    fn snapshot(&mut self) {}

    fn difference((): &(), (): &(), _: Instant, _: Instant, _: u64) -> Option<ServerSample> {
        None
    }
}

/// What the generator's process may take to start and to end, on a machine busy with a server's start.
const PROCESS_ALLOWANCE: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture;
    use crate::run::generator::Heard;

    #[test]
    fn what_the_generator_met_is_said_in_words() {
        for (phase, kind, example, probe) in [
            (
                Phase::Connect,
                "ECONNREFUSED",
                None,
                Probe::NotYet("nothing accepts connections for http://localhost:1/ (ECONNREFUSED)".into()),
            ),
            (
                Phase::Read,
                "ECONNRESET",
                None,
                Probe::NotYet("the connection ended before http://localhost:1/ answered (ECONNRESET)".into()),
            ),
            (
                Phase::Timeout,
                "response",
                None,
                Probe::NotYet(
                    "http://localhost:1/ accepted a connection and did not answer within 2s".into(),
                ),
            ),
            (
                Phase::Tls,
                "ECONNRESET",
                None,
                Probe::NotYet(
                    "the connection for http://localhost:1/ ended during the TLS handshake (ECONNRESET)"
                        .into(),
                ),
            ),
            (
                Phase::Quic,
                "ECONNREFUSED",
                None,
                Probe::NotYet(
                    "no HTTP/3: nothing answers QUIC on the UDP port of http://localhost:1/ (ECONNREFUSED)"
                        .into(),
                ),
            ),
            (
                Phase::Quic,
                "handshake-timeout",
                None,
                Probe::NotYet(
                    "no HTTP/3: nothing answers QUIC on the UDP port of http://localhost:1/ (handshake-timeout)"
                        .into(),
                ),
            ),
            (
                Phase::Quic,
                "stateless-reset",
                Some("the server knows nothing of the connection"),
                Probe::NotYet(
                    "the QUIC connection to http://localhost:1/ failed: the server knows nothing of the \
                     connection"
                        .into(),
                ),
            ),
            (
                Phase::Tls,
                "InvalidContentType",
                Some("received corrupt message"),
                Probe::Wrong(
                    "the TLS handshake for http://localhost:1/ failed: received corrupt message".into(),
                ),
            ),
            (
                Phase::Framing,
                "bad_status_line",
                None,
                Probe::Wrong("what http://localhost:1/ answered is not valid HTTP: bad_status_line".into()),
            ),
            (
                Phase::Unexpected,
                "status",
                Some("404, not 200"),
                Probe::Wrong(
                    "http://localhost:1/ answered, but not as `expect` asks: status (404, not 200)".into(),
                ),
            ),
        ] {
            let mut measurement = fixture::measurement(0);
            if phase == Phase::Quic {
                measurement.protocol = crate::results::Protocol::H3;
            }
            let example = example.map(str::to_owned);
            measurement.errors =
                vec![ErrorCount { phase, kind: kind.into(), count: 1, requests: 1, example }];
            assert_eq!(judge(&measurement), probe);
        }
    }

    #[test]
    fn another_protocol_is_said_at_once_and_by_its_name() {
        struct Says(Vec<Heard>);
        impl Link for Says {
            fn now(&self) -> Instant {
                Instant::from_nanos(0)
            }
            fn hear(&mut self, _: Instant, _: bool) -> Heard {
                self.0.pop().unwrap_or(Heard::Ended("status 1".into()))
            }
            fn interrupt(&mut self) {}
            fn end(&mut self, _: bool) {}
        }
        for (kind, example, answer) in [
            (
                "wrong-protocol",
                Some("asked for h2 by ALPN, the server chose http/1.1"),
                "no HTTP/2 over TLS: asked for h2 by ALPN, the server chose http/1.1",
            ),
            (
                "alert-received-no-application-protocol",
                None,
                "no HTTP/2 over TLS: alert-received-no-application-protocol",
            ),
        ] {
            let mut measurement = fixture::measurement(0);
            measurement.protocol = crate::results::Protocol::H2;
            let example = example.map(str::to_owned);
            measurement.errors =
                vec![ErrorCount { phase: Phase::Tls, kind: kind.into(), count: 1, requests: 0, example }];
            let event = crate::load::plan::Event::Measurement(Box::new(measurement));
            assert_eq!(ask(&mut Says(vec![Heard::Event(event)])), Answer::OtherProtocol(answer.into()));
        }
    }

    #[test]
    fn one_expected_response_is_ready() {
        assert_eq!(judge(&fixture::measurement(1)), Probe::Ready);
        assert_eq!(
            judge(&fixture::measurement(0)),
            Probe::NotYet("no answer from http://localhost:1/".into())
        );
    }
}
