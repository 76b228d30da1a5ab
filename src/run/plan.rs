//! Owns what the generator is told: from a scenario, a visit and the server's ports to a
//! [`LoadPlan`], for a cell and for the one request that proves a server ready. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::schedule::Visit;
use crate::load::plan::{Expect, Limit, LoadPlan, Quic, Request, Target};
use crate::results::{Protocol, Resumption, SectionKind, WaitMode};
use crate::scenario::{Expected, Scenario, Section, SectionLimit};
use crate::server::Ports;
use crate::time::Span;

/// The plan of one cell.
pub(crate) fn cell(scenario: &Scenario, visit: &Visit, ports: Ports) -> LoadPlan {
    let section = &scenario.sections[visit.section];
    let connections = visit.cell.connections;
    let threads = scenario.pin.generator_threads.clamp(1, connections.max(1));
    LoadPlan {
        protocol: visit.protocol,
        target: target(visit.protocol, ports, &scenario.expect.path),
        request: get(&section.headers),
        expect: expect(&scenario.expect),
        connections,
        concurrency: visit.cell.concurrency,
        threads,
        cpus: scenario.pin.generator.iter().copied().take(threads as usize).collect(),
        limit: match section.limit {
            SectionLimit::Duration(window) => Limit::DurationNs(window.as_nanos()),
            SectionLimit::Requests(count) => Limit::Requests(count),
        },
        warmup_ns: section.warmup.as_nanos(),
        drain_ns: scenario.run.drain.as_nanos(),
        timeout_ns: scenario.run.timeout.as_nanos(),
        connect_timeout_ns: scenario.run.connect_timeout.as_nanos(),
        keepalive: section.kind != SectionKind::Setup && visit.cell.requests_per_connection != Some(1),
        requests_per_connection: visit.cell.requests_per_connection,
        resumption: visit.cell.resumption,
        quic: Quic { socket: section.socket, pacing: section.pacing, ..Quic::default() },
        wait: scenario.run.wait,
        batch: 0,
        verify: None,
        sample: false,
    }
}

/// The plan of a probe: one request on one connection over the protocol of the section, judged by
/// the same expectation as the cells. It sleeps rather than polls, because a server that is just
/// starting needs the CPU more than the probe does.
///
/// A section whose answers are looked at apart asks for its status alone: a body may come encoded.
pub(crate) fn probe(
    scenario: &Scenario,
    section: Option<&Section>,
    protocol: Protocol,
    ports: Ports,
) -> LoadPlan {
    let looked_at_apart = section.is_some_and(Section::samples_answers);
    let expected = expect(&scenario.expect);
    LoadPlan {
        protocol,
        target: target(protocol, ports, &scenario.expect.path),
        request: get(section.map_or(&[], |section| &section.headers)),
        expect: if looked_at_apart { Expect { body: None, length: None, ..expected } } else { expected },
        connections: 1,
        concurrency: 1,
        threads: 1,
        cpus: scenario.pin.generator.iter().copied().take(1).collect(),
        limit: Limit::Requests(1),
        warmup_ns: 0,
        drain_ns: 0,
        timeout_ns: PROBE_TIMEOUT.as_nanos(),
        connect_timeout_ns: PROBE_TIMEOUT.as_nanos(),
        keepalive: true,
        requests_per_connection: None,
        resumption: Resumption::Off,
        quic: Quic::default(),
        wait: WaitMode::Sleep,
        batch: 0,
        verify: None,
        sample: false,
    }
}

/// The plan of a look at a section's answer, whatever it is.
pub(crate) fn look(scenario: &Scenario, section: &Section, protocol: Protocol, ports: Ports) -> LoadPlan {
    LoadPlan { sample: true, ..probe(scenario, Some(section), protocol, ports) }
}

/// Where requests go. Servers are told a port and nothing else, so the address is always IPv4
/// loopback; a server that listens on `::` accepts it as well.
fn target(protocol: Protocol, ports: Ports, path: &str) -> Target {
    let (port, sni) = if protocol.is_tls() { (ports.https, HOST) } else { (ports.http, "") };
    let authority = format!("{HOST}:{port}");
    Target {
        url: format!("{}://{authority}{path}", protocol.scheme()),
        authority,
        path: path.into(),
        sni: sni.into(),
        addresses: vec![format!("127.0.0.1:{port}")],
    }
}

fn get(headers: &[(String, String)]) -> Request {
    Request { method: "GET".into(), headers: headers.to_vec(), body: String::new() }
}

/// What the generator is to take for ok.
pub(crate) fn expect(expected: &Expected) -> Expect {
    Expect {
        status: expected.status,
        body: expected.body.as_ref().map(|body| STANDARD.encode(body)),
        length: expected.length,
    }
}

/// Name in the run's certificate, and value of Host and of SNI.
const HOST: &str = "localhost";

/// Longest wait of a probe for its connection, and again for its response. Long enough for the first
/// request of a server that compiles or loads on demand; a refused connection returns at once.
pub(crate) const PROBE_TIMEOUT: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::SocketMode;
    use crate::run::fixture;
    use crate::scenario::Cell;

    const PORTS: Ports = Ports { http: 20080, https: 20443 };

    fn visit(protocol: Protocol, connections: u32) -> Visit {
        Visit { round: 1, section: 0, server: 0, protocol, cell: Cell::new(connections, 1) }
    }

    #[test]
    fn the_protocol_decides_scheme_port_and_sni() {
        let scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1, Protocol::H1s]], &[10]);
        let plain = cell(&scenario, &visit(Protocol::H1, 10), PORTS);
        assert_eq!((plain.target.url.as_str(), plain.target.sni.as_str()), ("http://localhost:20080/", ""));
        assert_eq!(plain.target.addresses, ["127.0.0.1:20080"]);
        let tls = probe(&scenario, None, Protocol::H1s, PORTS);
        assert_eq!(
            (tls.target.url.as_str(), tls.target.sni.as_str()),
            ("https://localhost:20443/", "localhost")
        );
        assert_eq!(tls.expect, cell(&scenario, &visit(Protocol::H1s, 10), PORTS).expect);
        assert_eq!(tls.limit, Limit::Requests(1));
        // Both versions of HTTP are asked of the same listener.
        assert_eq!(probe(&scenario, None, Protocol::H2, PORTS).target, tls.target);
        assert_eq!(cell(&scenario, &visit(Protocol::H2c, 10), PORTS).target, plain.target);
    }

    #[test]
    fn no_more_threads_than_connections_and_no_more_cpus_than_threads() {
        let mut scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[1]);
        scenario.pin.generator = vec![4, 5, 6];
        scenario.pin.generator_threads = 3;
        for (connections, cpus) in [(1, &[4][..]), (2, &[4, 5]), (50, &[4, 5, 6])] {
            let plan = cell(&scenario, &visit(Protocol::H1, connections), PORTS);
            assert_eq!((plan.threads as usize, &plan.cpus[..]), (cpus.len(), cpus), "C = {connections}");
        }
    }

    #[test]
    fn a_handshake_section_replaces_its_connections_and_says_what_they_resume() {
        let mut scenario = fixture::scenario(1, &["a"], &[&[Protocol::H3]], &[1]);
        let section = &mut scenario.sections[0];
        section.kind = SectionKind::Handshake;
        section.limit = SectionLimit::Requests(3000);
        (section.socket, section.pacing) = (SocketMode::Shared, true);
        for (requests, keepalive) in [(1, false), (3, true)] {
            let resumption = Resumption::ZeroRtt;
            let short = Cell { resumption, requests_per_connection: Some(requests), ..Cell::new(1, 1) };
            let plan = cell(&scenario, &Visit { cell: short, ..visit(Protocol::H3, 1) }, PORTS);
            assert_eq!((plan.requests_per_connection, plan.keepalive), (Some(requests), keepalive));
            assert_eq!((plan.resumption, plan.limit), (resumption, Limit::Requests(3000)));
            let quic = Quic { socket: SocketMode::Shared, pacing: true, ..Quic::default() };
            assert_eq!(plan.quic, quic);
            assert_eq!(plan.target.addresses, ["127.0.0.1:20443"], "the number of the TLS port");
        }
    }

    #[test]
    fn a_setup_section_opens_a_connection_for_each_request() {
        let mut scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[20]);
        scenario.sections[0].kind = SectionKind::Setup;
        scenario.sections[0].limit = SectionLimit::Requests(1000);
        let plan = cell(&scenario, &visit(Protocol::H1, 20), PORTS);
        assert!(!plan.keepalive);
        assert_eq!(plan.limit, Limit::Requests(1000));
    }
}
