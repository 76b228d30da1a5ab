//! Owns the encoding of a request.

use super::field;

/// Why a request cannot be put on the wire; the parts are quoted as they were given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// The method is not a token (RFC 9110 §9.1).
    #[error("method {0:?} is not a token; use letters only, such as GET")]
    Method(String),
    /// The method is CONNECT, which turns the connection into a tunnel (RFC 9110 §9.3.6).
    #[error("method CONNECT opens a tunnel, which has no responses to measure; choose another method")]
    Connect,
    /// The path is not an origin-form, or `*` with a method other than OPTIONS (RFC 9112 §3.2).
    #[error("path {0:?} does not start with `/`; only OPTIONS may ask for `*`")]
    PathStart(String),
    /// The path has a byte that no request target may hold (RFC 3986 §3.3).
    #[error("path {path:?} holds {character:?}; percent-encode it")]
    PathCharacter {
        /// The path.
        path: String,
        /// Its first character at fault.
        character: char,
    },
    /// The authority, or the Host field in its place, is not a host and port (RFC 9110 §7.2).
    #[error("host {0:?} is not a name or address with an optional port; leave out scheme, user and path")]
    Authority(String),
    /// Two Host fields were given (RFC 9112 §3.2).
    #[error("header Host is given twice; keep one")]
    RepeatedHost,
    /// A field name is not a token (RFC 9110 §5.1).
    #[error("header name {0:?} is not a token; use letters, digits and `-`")]
    FieldName(String),
    /// A field value holds a control character, which could end the field (RFC 9110 §5.5).
    #[error("value of header {0} holds a line break or another control character; remove it")]
    FieldValue(String),
    /// A Content-Length that is not the length of the body (RFC 9110 §8.6).
    #[error(
        "header Content-Length: {given} differs from the body's {actual} bytes; remove it, it is sent as needed"
    )]
    ContentLength {
        /// The value given.
        given: String,
        /// Bytes of the body.
        actual: usize,
    },
    /// A Transfer-Encoding: the body goes out as it is (RFC 9112 §6.1).
    #[error(
        "header Transfer-Encoding would break the framing; remove it, bodies are sent with Content-Length"
    )]
    TransferEncoding,
}

/// Encodes one request, head and body: request line, exactly one Host (a `host` among `headers`
/// replaces `authority`), the headers in order, `Content-Length` when there is a body (or the method
/// defines one), `Connection: close` unless `keepalive`.
///
/// Nothing else is sent: a field that nobody asked for would be parsing that the server is charged
/// with. A `Connection`
/// header is sent as given; `close` is added to it only where it is needed and missing.
///
/// # Errors
/// [`EncodeError`] names the part that would break the framing of the message (RFC 9110 §5).
pub fn encode_request(
    method: &str,
    path: &str,
    authority: &str,
    headers: &[(String, String)],
    body: &[u8],
    keepalive: bool,
) -> Result<Vec<u8>, EncodeError> {
    check_method(method)?;
    check_path(method, path)?;
    let headers = headers.iter().map(|(name, value)| (name.as_str(), trim(value))).collect::<Vec<_>>();
    for &(name, value) in &headers {
        check_field(name, value, body.len())?;
    }
    let host = only_host(&headers)?.unwrap_or(authority);
    check_authority(host)?;

    let given = |name: &str| values(&headers, name).next().is_some();
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    let mut field = |name: &str, value: &str| {
        request.push_str(name);
        request.push_str(": ");
        request.push_str(value);
        request.push_str("\r\n");
    };
    field("Host", host);
    for &(name, value) in &headers {
        if !name.eq_ignore_ascii_case("Host") && !name.eq_ignore_ascii_case("Content-Length") {
            field(name, value);
        }
    }
    if !body.is_empty() || expects_body(method) || given("Content-Length") {
        field("Content-Length", &body.len().to_string());
    }
    if !keepalive && !says_close(&headers) {
        field("Connection", "close");
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    Ok(request)
}

fn check_method(method: &str) -> Result<(), EncodeError> {
    if !field::is_token(method.as_bytes()) {
        return Err(EncodeError::Method(method.to_owned()));
    }
    // Methods are case-sensitive (RFC 9110 §9.1), so a `connect` is another one.
    if method == "CONNECT" { Err(EncodeError::Connect) } else { Ok(()) }
}

/// Origin-form or asterisk-form (RFC 9112 §3.2); a fragment is never sent (RFC 9110 §7.1).
fn check_path(method: &str, path: &str) -> Result<(), EncodeError> {
    let starts_well = path.starts_with('/') || (path == "*" && method == "OPTIONS");
    if !starts_well {
        return Err(EncodeError::PathStart(path.to_owned()));
    }
    match path.chars().find(|&character| !character.is_ascii_graphic() || character == '#') {
        Some(character) => Err(EncodeError::PathCharacter { path: path.to_owned(), character }),
        None => Ok(()),
    }
}

fn check_field(name: &str, value: &str, body: usize) -> Result<(), EncodeError> {
    if !field::is_token(name.as_bytes()) {
        return Err(EncodeError::FieldName(name.to_owned()));
    }
    if !value.bytes().all(field::is_field_byte) {
        return Err(EncodeError::FieldValue(name.to_owned()));
    }
    if name.eq_ignore_ascii_case("Transfer-Encoding") {
        return Err(EncodeError::TransferEncoding);
    }
    if name.eq_ignore_ascii_case("Content-Length") && value != body.to_string() {
        return Err(EncodeError::ContentLength { given: value.to_owned(), actual: body });
    }
    Ok(())
}

fn only_host<'a>(headers: &[(&str, &'a str)]) -> Result<Option<&'a str>, EncodeError> {
    let mut hosts = values(headers, "Host");
    let host = hosts.next();
    if hosts.next().is_some() { Err(EncodeError::RepeatedHost) } else { Ok(host) }
}

/// The characters of `uri-host [":" port]` (RFC 9110 §7.2, RFC 3986 §3.2); empty is allowed, for a
/// target without an authority.
fn check_authority(host: &str) -> Result<(), EncodeError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%[]:".contains(&byte);
    if host.bytes().all(allowed) { Ok(()) } else { Err(EncodeError::Authority(host.to_owned())) }
}

/// Methods that give a body a meaning announce its length even when it is empty (RFC 9110 §8.6).
fn expects_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

fn says_close(headers: &[(&str, &str)]) -> bool {
    values(headers, "Connection")
        .any(|value| field::list(value.as_bytes()).any(|option| option.eq_ignore_ascii_case(b"close")))
}

/// The values of every header of this name, in order.
fn values<'h, 'a>(headers: &'h [(&str, &'a str)], name: &'h str) -> impl Iterator<Item = &'a str> + 'h {
    headers.iter().filter(move |header| header.0.eq_ignore_ascii_case(name)).map(|header| header.1)
}

/// Whitespace around a field value is no part of it (RFC 9110 §5.5).
fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// GET of `/` with these headers, as text.
    fn get(fields: &[(&str, &str)], keepalive: bool) -> Result<String, EncodeError> {
        let bytes = encode_request("GET", "/", "localhost:8080", &headers(fields), b"", keepalive)?;
        Ok(String::from_utf8(bytes).expect("a request of ASCII parts"))
    }

    #[test]
    fn a_plain_request() {
        let expected = "GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n".to_owned();
        assert_eq!(get(&[], true), Ok(expected));
    }

    #[test]
    fn a_host_header_replaces_the_authority() {
        let expected = "GET / HTTP/1.1\r\nHost: example.org\r\nX: 1\r\n\r\n".to_owned();
        assert_eq!(get(&[("X", "1"), ("hOST", " example.org ")], true), Ok(expected));
        assert_eq!(get(&[("Host", "a"), ("host", "a")], true), Err(EncodeError::RepeatedHost));
    }

    #[test]
    fn given_headers_go_out_as_they_are() {
        let request = get(&[("user-agent", "x"), ("ACCEPT", "text/html"), ("accept", "text/plain")], true);
        let expected = "GET / HTTP/1.1\r\nHost: localhost:8080\r\nuser-agent: x\r\nACCEPT: text/html\r\naccept: \
                        text/plain\r\n\r\n";
        assert_eq!(request.as_deref(), Ok(expected));
    }

    #[test]
    fn close_is_said_once() {
        let close = |fields: &[(&str, &str)], keepalive| {
            get(fields, keepalive).map(|request| {
                request.lines().filter(|line| line.to_ascii_lowercase().starts_with("connection:")).count()
            })
        };
        assert_eq!(close(&[], true), Ok(0));
        assert_eq!(close(&[], false), Ok(1));
        assert_eq!(close(&[("Connection", "Close")], false), Ok(1));
        assert_eq!(close(&[("connection", "te, close")], false), Ok(1));
        assert_eq!(close(&[("connection", "te")], false), Ok(2));
        assert_eq!(close(&[("Connection", "keep-alive")], true), Ok(1));
    }

    #[test]
    fn lengths() {
        let encode = |method: &str, fields: &[(&str, &str)], body: &[u8]| {
            let request = encode_request(method, "/", "h", &headers(fields), body, true)?;
            let text = String::from_utf8_lossy(&request).into_owned();
            Ok(text
                .lines()
                .filter_map(|line| line.strip_prefix("Content-Length: "))
                .collect::<Vec<_>>()
                .join("|"))
        };
        assert_eq!(encode("GET", &[], b""), Ok(String::new()));
        assert_eq!(encode("HEAD", &[], b""), Ok(String::new()));
        assert_eq!(encode("DELETE", &[], b"abc"), Ok("3".to_owned()));
        for method in ["POST", "PUT", "PATCH"] {
            assert_eq!(encode(method, &[], b""), Ok("0".to_owned()), "{method}");
            assert_eq!(encode(method, &[], b"abc"), Ok("3".to_owned()), "{method}");
        }
        assert_eq!(encode("GET", &[("Content-Length", "0")], b""), Ok("0".to_owned()));
        assert_eq!(
            encode("PUT", &[("content-length", " 3"), ("Content-Length", "3")], b"abc"),
            Ok("3".to_owned())
        );
        for wrong in ["4", "", "+3", "03", "3, 3", "three"] {
            let error = EncodeError::ContentLength { given: wrong.to_owned(), actual: 3 };
            assert_eq!(encode("PUT", &[("Content-Length", wrong)], b"abc"), Err(error), "{wrong:?}");
        }
        let error = Err(EncodeError::TransferEncoding);
        assert_eq!(encode("PUT", &[("transfer-encoding", "chunked")], b"abc"), error);
    }

    #[test]
    fn parts_that_would_break_the_message() {
        let encode =
            |method: &str, path: &str, host: &str| encode_request(method, path, host, &[], b"", true).err();
        for method in ["", "GET ", "G T", "GET\r\n", "GÉT", "GET:"] {
            assert_eq!(encode(method, "/", "h"), Some(EncodeError::Method(method.to_owned())));
        }
        assert_eq!(encode("CONNECT", "/", "h"), Some(EncodeError::Connect));
        for path in ["", "index.html", "*", "http://h/", "?q", " /"] {
            assert_eq!(encode("GET", path, "h"), Some(EncodeError::PathStart(path.to_owned())));
        }
        assert_eq!(encode("OPTIONS", "*", "h"), None);
        for (path, character) in [
            ("/a b", ' '),
            ("/\r\nX: y", '\r'),
            ("/\0", '\0'),
            ("/é", 'é'),
            ("/#top", '#'),
            ("/\u{7f}", '\u{7f}'),
        ] {
            let error = EncodeError::PathCharacter { path: path.to_owned(), character };
            assert_eq!(encode("GET", path, "h"), Some(error));
        }
        for host in ["h\r\nX: y", "a b", "user@host", "h/path", "http://h", "h\0", "é"] {
            assert_eq!(encode("GET", "/", host), Some(EncodeError::Authority(host.to_owned())));
        }
        for host in ["", "localhost", "127.0.0.1:80", "[::1]:8443", "a_b.example", "xn--nxasmq6b"] {
            assert_eq!(encode("GET", "/", host), None, "{host}");
        }
        for name in ["", "X Y", "X:", "X\r\n", "É"] {
            assert_eq!(get(&[(name, "v")], true), Err(EncodeError::FieldName(name.to_owned())));
        }
        for value in ["a\r\nY: z", "a\nb", "a\0", "\u{7f}", "\u{1b}[0m"] {
            assert_eq!(get(&[("X", value)], true), Err(EncodeError::FieldValue("X".to_owned())), "{value:?}");
        }
    }

    #[test]
    fn messages_name_the_part_and_the_remedy() {
        let error = get(&[("Content-Length", "7")], true).expect_err("the body is empty");
        assert_eq!(
            error.to_string(),
            "header Content-Length: 7 differs from the body's 0 bytes; remove it, it is sent as needed"
        );
    }

    proptest! {
        /// Whatever is accepted is read back by an independent parser as it was meant.
        #[test]
        fn an_independent_parser_reads_the_same(
            method in "[A-Z]{1,8}",
            path in "/[!-\"$-~]{0,40}",
            fields in prop::collection::vec(("[A-Za-z][A-Za-z0-9-]{0,14}", "[ -~é\t]{0,20}"), 0..12),
            body in prop::collection::vec(any::<u8>(), 0..64),
            keepalive in any::<bool>(),
        ) {
            let encoded = encode_request(&method, &path, "example.org:80", &fields, &body, keepalive);
            prop_assume!(encoded.is_ok());
            let encoded = encoded.expect("just looked at");
            let mut slots = [httparse::EMPTY_HEADER; 32];
            let mut request = httparse::Request::new(&mut slots);
            let head = request.parse(&encoded).expect("a request that parses").unwrap();
            prop_assert_eq!(request.method, Some(method.as_str()));
            prop_assert_eq!(request.path, Some(path.as_str()));
            prop_assert_eq!(request.version, Some(1));
            prop_assert_eq!(&encoded[head..], &body[..]);
            let read: Vec<(&str, &[u8])> = request.headers.iter().map(|h| (h.name, trim_bytes(h.value))).collect();
            let count = |name: &str| read.iter().filter(|field| field.0.eq_ignore_ascii_case(name)).count();
            prop_assert_eq!(count("Host"), 1);
            prop_assert_eq!(count("Content-Length"), usize::from(!body.is_empty() || expects_body(&method)));
            for (name, value) in &fields {
                prop_assert!(read.contains(&(name.as_str(), trim(value).as_bytes())), "{} is missing", name);
            }
        }
    }

    fn trim_bytes(value: &[u8]) -> &[u8] {
        field::trim(value)
    }
}
