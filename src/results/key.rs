//! Owns what tells the cells of one section apart beside their server, and how that is read and
//! written: `10x10`, `1x1/ticket`.

use std::fmt;

use super::{CellRecord, Protocol, Resumption};

/// What a cell asks for: no two cells of a server in one section ask for the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CellKey {
    /// Protocol driven.
    pub protocol: Protocol,
    /// C.
    pub connections: u32,
    /// M.
    pub concurrency: u32,
    /// What its connections make of earlier ones.
    pub resumption: Resumption,
    /// Requests after which a connection is replaced; `None`: see [`CellRecord`].
    pub requests_per_connection: Option<u32>,
    /// Index of the generator that drives it; `None`: this tool's own, by a plan.
    pub generator: Option<u32>,
}

impl CellRecord {
    /// What it asks for.
    pub fn key(&self) -> CellKey {
        CellKey {
            protocol: self.protocol,
            connections: self.connections,
            concurrency: self.concurrency,
            resumption: self.resumption,
            requests_per_connection: self.requests_per_connection,
            generator: self.generator,
        }
    }
}

/// As messages name it: `h3 1x1/ticket, 4 requests on each connection`.
impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, connections, concurrency, resumption, requests_per_connection, generator: _ } =
            self;
        write!(f, "{} {connections}x{concurrency}", protocol.name())?;
        if *resumption != Resumption::Off || requests_per_connection.is_some() {
            write!(f, "/{}", resumption.name())?;
        }
        match requests_per_connection {
            Some(requests @ 2..) => write!(f, ", {requests} requests on each connection"),
            _ => Ok(()),
        }
    }
}

impl Resumption {
    /// Every way, in the order of the enumeration.
    pub const ALL: [Self; 3] = [Self::Off, Self::Ticket, Self::ZeroRtt];

    /// The name in scenarios, on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ticket => "ticket",
            Self::ZeroRtt => "0rtt",
        }
    }

    /// What the handshakes are called in tables.
    pub fn prose(self) -> &'static str {
        match self {
            Self::Off => "full",
            Self::Ticket => "resumed",
            Self::ZeroRtt => "0-RTT",
        }
    }

    /// True when connections over `protocol` can do it: sessions are TLS's (RFC 8446 §2.2), and
    /// early data is sent over QUIC alone, where a rejected request is known to be unprocessed.
    pub fn possible_over(self, protocol: Protocol) -> bool {
        match self {
            Self::Off => true,
            Self::Ticket => protocol.is_tls(),
            Self::ZeroRtt => protocol.is_quic(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_in_the_json() {
        for resumption in Resumption::ALL {
            assert_eq!(serde_json::to_value(resumption).unwrap(), resumption.name());
        }
    }

    #[test]
    fn keys_read_as_the_command_line_takes_them() {
        let key = CellKey {
            protocol: Protocol::H3,
            connections: 10,
            concurrency: 1,
            resumption: Resumption::Off,
            requests_per_connection: None,
            generator: None,
        };
        for (resumption, requests, text) in [
            (Resumption::Off, None, "h3 10x1"),
            (Resumption::Off, Some(1), "h3 10x1/off"),
            (Resumption::Ticket, None, "h3 10x1/ticket"),
            (Resumption::ZeroRtt, Some(4), "h3 10x1/0rtt, 4 requests on each connection"),
        ] {
            let key = CellKey { resumption, requests_per_connection: requests, ..key };
            assert_eq!(key.to_string(), text);
        }
    }
}
