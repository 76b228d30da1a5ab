//! Owns the grammar of field lines that heads, trailer sections and requests share (RFC 9110 §5,
//! RFC 9112 §5).

use super::Violation;

/// Splits a field line, its line end taken off, into name and value; whitespace around the value is
/// left to whoever reads it.
///
/// # Errors
/// The fault in its name; values are the business of whoever reads them.
#[inline]
pub(super) fn split(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    match line.iter().position(|&byte| !is_tchar(byte)) {
        Some(end) if end > 0 && line[end] == b':' => Ok((&line[..end], &line[end + 1..])),
        end => Err(name_fault(line, end)),
    }
}

/// Names what is wrong with the name of a field line; `end` is where its token ends.
#[cold]
fn name_fault(line: &[u8], end: Option<usize>) -> Violation {
    let Some(end) = end else { return Violation::MissingColon };
    if line[end] == b':' {
        Violation::EmptyFieldName
    } else if !line.contains(&b':') {
        Violation::MissingColon
    } else if end > 0 && trim(&line[end..]).starts_with(b":") {
        Violation::WhitespaceBeforeColon
    } else {
        Violation::InvalidFieldName
    }
}

/// The elements of a comma-separated list, whitespace taken off; empty ones are left out, as RFC
/// 9110 §5.6.1.2 asks of a recipient.
pub(super) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|element| !element.is_empty())
}

/// Takes optional whitespace (SP and HTAB, RFC 9110 §5.6.3) off both ends.
#[inline]
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Takes the CR off a line that was split at its LF.
pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether these bytes are a token (RFC 9110 §5.6.2).
pub(in crate::proto) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Whether a name or option, of a clean line, is this one in whatever case; `lower` holds lower-case
/// letters and hyphens alone.
#[inline]
pub(super) fn is_named<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name) else { return false };
    // Setting one bit makes letters lower case, and makes nothing else a letter; it makes a hyphen of a
    // CR only, which a clean line does not have. The bytes are compared at once, not one by one.
    name.iter().zip(lower).fold(true, |same, (byte, lower)| same & (byte | 0x20 == *lower))
}

/// Whether a token may hold this byte (RFC 9110 §5.6.2).
#[inline]
pub(super) fn is_tchar(byte: u8) -> bool {
    TCHAR[usize::from(byte)]
}

/// Whether a field value may hold this byte when it is sent: HTAB, SP, visible or obs-text (RFC 9110
/// §5.5).
pub(in crate::proto) fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

const TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~'
            | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_lines() {
        let ok: [(&str, &str, &str); 6] = [
            ("a:b", "a", "b"),
            ("Server: nginx/1.22.1", "Server", "nginx/1.22.1"),
            ("x:", "x", ""),
            ("x: \t ", "x", ""),
            ("x:\t a b \t", "x", "a b"),
            ("!#$%&'*+-.^_`|~09azAZ: :", "!#$%&'*+-.^_`|~09azAZ", ":"),
        ];
        for (line, name, value) in ok {
            let split = split(line.as_bytes()).map(|(name, value)| (name, trim(value)));
            assert_eq!(split, Ok((name.as_bytes(), value.as_bytes())), "{line:?}");
        }
        let faults = [
            ("no colon at all", Violation::MissingColon),
            ("name", Violation::MissingColon),
            (":value", Violation::EmptyFieldName),
            ("name : value", Violation::WhitespaceBeforeColon),
            ("name\t:value", Violation::WhitespaceBeforeColon),
            ("two words: value", Violation::InvalidFieldName),
            ("na(me: value", Violation::InvalidFieldName),
            ("näme: value", Violation::InvalidFieldName),
            ("\u{1}: value", Violation::InvalidFieldName),
        ];
        for (line, fault) in faults {
            assert_eq!(split(line.as_bytes()), Err(fault), "{line:?}");
        }
    }

    #[test]
    fn lists_leave_empty_elements_out() {
        let elements: Vec<&[u8]> = list(b", close ,\t,Keep-Alive,").collect();
        assert_eq!(elements, [&b"close"[..], b"Keep-Alive"]);
        assert_eq!(list(b" , ").count(), 0);
    }
}
