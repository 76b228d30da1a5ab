//! Owns the facts of each protocol that more than one part needs: its names, its transport, how it is
//! agreed on, what a connection carries.

use super::Protocol;

impl Protocol {
    /// Every protocol, in the order of the enumeration.
    pub const ALL: [Self; 5] = [Self::H1, Self::H1s, Self::H2c, Self::H2, Self::H3];

    /// The name in scenarios, on the command line and in results: `h1`, `h2c`.
    pub fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H1s => "h1s",
            Self::H2c => "h2c",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }

    /// The version of HTTP, as in prose and in [`super::Negotiated::http`]: `HTTP/1.1`, `HTTP/2`.
    pub fn version(self) -> &'static str {
        match self {
            Self::H1 | Self::H1s => "HTTP/1.1",
            Self::H2c | Self::H2 => "HTTP/2",
            Self::H3 => "HTTP/3",
        }
    }

    /// Version and transport in prose: `HTTP/2 over TLS`; cleartext goes without saying.
    pub fn prose(self) -> &'static str {
        match self {
            Self::H1 => "HTTP/1.1",
            Self::H1s => "HTTP/1.1 over TLS",
            Self::H2c => "HTTP/2",
            Self::H2 => "HTTP/2 over TLS",
            Self::H3 => "HTTP/3",
        }
    }

    /// True when it is encrypted. Protocols that agree in this are served on one port.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::H1s | Self::H2 | Self::H3)
    }

    /// True when it runs over QUIC, on UDP.
    pub fn is_quic(self) -> bool {
        self == Self::H3
    }

    /// True for HTTP/1.1 over either transport.
    pub fn is_http1(self) -> bool {
        matches!(self, Self::H1 | Self::H1s)
    }

    /// True when a connection can carry several requests at once (M above 1).
    pub fn multiplexes(self) -> bool {
        !self.is_http1()
    }

    /// The scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        if self.is_tls() { "https" } else { "http" }
    }

    /// The protocol name offered by ALPN (RFC 7301, RFC 9113 §3.1); `None` without TLS.
    pub fn alpn(self) -> Option<&'static str> {
        match self {
            Self::H1 | Self::H2c => None,
            Self::H1s => Some("http/1.1"),
            Self::H2 => Some("h2"),
            Self::H3 => Some("h3"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_in_the_json() {
        for protocol in Protocol::ALL {
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.name());
        }
    }

    #[test]
    fn transport_and_alpn_agree() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.is_tls(), protocol.alpn().is_some(), "{}", protocol.name());
            assert_eq!(protocol.is_tls(), protocol.scheme() == "https", "{}", protocol.name());
            assert!(protocol.prose().starts_with(protocol.version()), "{}", protocol.name());
        }
    }
}
