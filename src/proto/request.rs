//! Owns what a request is made of, checked once for every protocol: nothing in it can break the
//! framing of the message.

use super::h1::field;

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
    /// A field that HTTP/2 and later do not have (RFC 9113 §8.2.2).
    #[error("header {0} manages an HTTP/1.1 connection and has no meaning here; remove it")]
    ConnectionField(String),
}

/// The parts of a request, none of which can break the framing of the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts<'a> {
    /// A token other than CONNECT.
    pub method: &'a str,
    /// An origin-form, or `*` for OPTIONS.
    pub path: &'a str,
    /// Host and port: of the Host field where one is given, else of the target.
    pub authority: &'a str,
    /// The other fields in order, Content-Length excepted.
    pub fields: Vec<(&'a str, &'a str)>,
    /// The length to announce; `None` when there is no body and the method gives it no meaning.
    pub content_length: Option<usize>,
}

impl<'a> Parts<'a> {
    /// Checks the parts of a request with a body of `body` bytes.
    ///
    /// # Errors
    /// [`EncodeError`] names the part that would break the framing of the message (RFC 9110 §5).
    pub fn check(
        method: &'a str,
        path: &'a str,
        authority: &'a str,
        headers: &'a [(String, String)],
        body: usize,
    ) -> Result<Self, EncodeError> {
        check_method(method)?;
        check_path(method, path)?;
        let headers = headers.iter().map(|(name, value)| (name.as_str(), trim(value))).collect::<Vec<_>>();
        for &(name, value) in &headers {
            check_field(name, value, body)?;
        }
        let authority = only_host(&headers)?.unwrap_or(authority);
        check_authority(authority)?;
        let given = values(&headers, "Content-Length").next().is_some();
        let content_length = (body > 0 || expects_body(method) || given).then_some(body);
        let kept_apart = ["Host", "Content-Length"];
        let fields = headers
            .into_iter()
            .filter(|(name, _)| !kept_apart.iter().any(|known| name.eq_ignore_ascii_case(known)))
            .collect();
        Ok(Self { method, path, authority, fields, content_length })
    }

    /// The field lines of HTTP/2 and HTTP/3 in order: the pseudo-header fields (RFC 9113 §8.3.1,
    /// RFC 9114 §4.3.1), the fields with their names in lower case, `content-length` where it is announced.
    ///
    /// # Errors
    /// [`EncodeError::ConnectionField`]: `TE: trailers` is the only field about the connection that these
    /// protocols have (RFC 9113 §8.2.2, RFC 9114 §4.2).
    pub fn lines(&self, scheme: &str) -> Result<Vec<(String, String)>, EncodeError> {
        let mut lines =
            vec![(":method".to_owned(), self.method.to_owned()), (":scheme".into(), scheme.into())];
        if !self.authority.is_empty() {
            lines.push((":authority".into(), self.authority.into()));
        }
        lines.push((":path".into(), self.path.into()));
        for (name, value) in &self.fields {
            let name = name.to_ascii_lowercase();
            if is_of_the_connection(&name, value) {
                return Err(EncodeError::ConnectionField(name));
            }
            lines.push((name, (*value).to_owned()));
        }
        if let Some(length) = self.content_length {
            lines.push(("content-length".into(), length.to_string()));
        }
        Ok(lines)
    }
}

fn is_of_the_connection(name: &str, value: &str) -> bool {
    match name {
        "connection" | "keep-alive" | "proxy-connection" | "upgrade" => true,
        "te" => !value.eq_ignore_ascii_case("trailers"),
        _ => false,
    }
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
pub(in crate::proto) fn expects_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

/// The values of every header of this name, in order.
fn values<'h, 'a>(headers: &'h [(&str, &'a str)], name: &'h str) -> impl Iterator<Item = &'a str> + 'h {
    headers.iter().filter(move |header| header.0.eq_ignore_ascii_case(name)).map(|header| header.1)
}

/// Whitespace around a field value is no part of it (RFC 9110 §5.5).
pub(in crate::proto) fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}
