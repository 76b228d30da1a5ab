//! Owns the encoding of a request.

use super::field;
use crate::proto::request::{EncodeError, Parts};

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
    let parts = Parts::check(method, path, authority, headers, body.len())?;
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    let mut field = |name: &str, value: &str| {
        request.push_str(name);
        request.push_str(": ");
        request.push_str(value);
        request.push_str("\r\n");
    };
    field("Host", parts.authority);
    for (name, value) in &parts.fields {
        field(name, value);
    }
    if let Some(length) = parts.content_length {
        field("Content-Length", &length.to_string());
    }
    if !keepalive && !says_close(&parts.fields) {
        field("Connection", "close");
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    Ok(request)
}

fn says_close(headers: &[(&str, &str)]) -> bool {
    headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("Connection"))
        .any(|(_, value)| field::list(value.as_bytes()).any(|option| option.eq_ignore_ascii_case(b"close")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proto::request::{expects_body, trim};

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
