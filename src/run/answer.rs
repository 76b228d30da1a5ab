//! Owns the judgement on a server's answer before it is measured: its content coding is taken off, and what is
//! inside is held against the scenario's expectation. Pure.

use std::io::{ErrorKind, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::load::plan::Expect;
use crate::results::{Answer, ResponseSample};
use crate::scenario::Expected;

/// What a server's answers are, and what follows for its cells.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Looked {
    /// For the record; it has a `problem` when nothing is to be measured.
    pub(crate) answer: Answer,
    /// What the cells are held to: the bytes that came, or what can be said without knowing them.
    pub(crate) expect: Expect,
}

/// Judges two answers to the same request, for one that is wrong now and then is wrong. Those of the window are
/// compared with their bytes, when both have the same.
pub(crate) fn judge(first: &ResponseSample, second: &ResponseSample, expected: &Expected) -> Looked {
    let told = |sample: &ResponseSample| (sample.status, codings(sample), sample.body.clone());
    let repeats = !first.truncated && !second.truncated && told(first) == told(second);
    let mut answer = one(first, expected);
    if !repeats && answer.problem.is_none() {
        let other = one(second, expected);
        // What is recorded is the answer that the problem is about.
        if other.problem.is_some() {
            answer = other;
        }
    }
    answer.repeats = repeats;
    let uncoded = [first, second].iter().all(|sample| codings(sample).is_empty());
    let expect = match (repeats, uncoded) {
        (true, _) => Expect { status: expected.status, body: Some(first.body.clone()), length: None },
        (false, true) => super::plan::expect(expected),
        (false, false) => Expect { status: expected.status, body: None, length: None },
    };
    Looked { answer, expect }
}

/// One answer by itself.
fn one(sample: &ResponseSample, expected: &Expected) -> Answer {
    let codings = codings(sample);
    let encoded = STANDARD.decode(&sample.body).unwrap_or_default();
    let mut answer = Answer {
        status: sample.status,
        fields: sample.fields.clone(),
        encoding: if codings.is_empty() { IDENTITY.into() } else { codings.join(", ") },
        encoded_bytes: encoded.len() as u64,
        body_bytes: None,
        problem: None,
        repeats: false,
    };
    let body = match (sample.truncated, codings.is_empty()) {
        // Of the beginning of a body nothing can be said; the window counts its bytes.
        (true, true) => Ok(None),
        (true, false) => Err(format!(
            "the body is longer than the {} bytes that are kept of it to be decoded; ask for a smaller one",
            encoded.len()
        )),
        (false, _) => decoded(encoded, &codings).map(Some),
    };
    let (body, undecoded) = body.map_or_else(|problem| (None, Some(problem)), |body| (body, None));
    answer.body_bytes = body.as_ref().map(|body| body.len() as u64);
    answer.problem = undecoded
        .or_else(|| wrong_status(sample.status, expected))
        .or_else(|| wrong_body(body.as_deref()?, &answer.encoding, expected));
    answer
}

/// The content codings of a response in the order they were applied, in lower case (RFC 9110 §8.4).
fn codings(sample: &ResponseSample) -> Vec<String> {
    sample
        .fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("content-encoding"))
        .flat_map(|field| field.value.split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != IDENTITY)
        .collect()
}

/// Takes the codings off, the last one first.
///
/// # Errors
/// What is wrong with the body, by the name of its coding.
fn decoded(mut body: Vec<u8>, codings: &[String]) -> Result<Vec<u8>, String> {
    if codings.len() > MOST_CODINGS {
        return Err(format!("{} content codings upon each other, more than {MOST_CODINGS}", codings.len()));
    }
    for coding in codings.iter().rev() {
        body = without(coding, &body)?;
    }
    Ok(body)
}

/// Takes one coding off, all of it: whatever follows its end is no part of the body, and not to be there.
fn without(coding: &str, mut input: &[u8]) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        // Each of the decoders leaves what it did not need in `input`.
        let (part, another): (_, &[u8]) = match coding {
            "gzip" | "x-gzip" => (bounded(flate2::bufread::GzDecoder::new(&mut input), coding)?, GZIP_MEMBER),
            "deflate" => (bounded(flate2::bufread::ZlibDecoder::new(&mut input), coding)?, &[]),
            "br" => {
                let decoder = brotli_decompressor::Decompressor::new(&mut input, BROTLI_BUFFER);
                (bounded(decoder, coding)?, &[])
            }
            "zstd" => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(&mut input);
                let decoder = decoder.map_err(|error| undecodable(coding, &error))?;
                (bounded(decoder, coding)?, ZSTD_FRAME)
            }
            unknown => {
                return Err(format!(
                    "the content coding `{unknown}` is not known (gzip, deflate, br, zstd are): the body cannot be \
                     checked"
                ));
            }
        };
        body.extend(part);
        check_bound(body.len(), coding)?;
        // Several gzip members (RFC 1952 §2.2) or zstd frames (RFC 8878 §3) are one body.
        if another.is_empty() || !input.starts_with(another) {
            break;
        }
    }
    match input.len() {
        0 => Ok(body),
        n => Err(format!("the body goes on after the end of its {coding} coding, by {n} bytes")),
    }
}

/// Reads a decoder to its end, but not further than the bound.
fn bounded(decoder: impl Read, coding: &str) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    decoder.take(MOST_DECODED as u64 + 1).read_to_end(&mut body).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => format!("the body is cut off inside its {coding} coding"),
        _ => undecodable(coding, &error),
    })?;
    check_bound(body.len(), coding)?;
    Ok(body)
}

fn check_bound(length: usize, coding: &str) -> Result<(), String> {
    if length <= MOST_DECODED {
        return Ok(());
    }
    Err(format!(
        "the body, after {coding} is taken off, is over {} MiB, which is as far as it is checked",
        MOST_DECODED >> 20
    ))
}

fn undecodable(coding: &str, error: &dyn std::fmt::Display) -> String {
    format!("the body is not what its content coding {coding} says: {error}")
}

fn wrong_status(status: u16, expected: &Expected) -> Option<String> {
    match expected.status {
        Some(expected) if status != expected => Some(format!("the status is {status}, expected {expected}")),
        None if !(200..400).contains(&status) => Some(format!("the status is {status}, expected 2xx or 3xx")),
        _ => None,
    }
}

fn wrong_body(body: &[u8], encoding: &str, expected: &Expected) -> Option<String> {
    let what = if encoding == IDENTITY {
        "the body".into()
    } else {
        format!("the body, after {encoding} is taken off,")
    };
    let length = expected.body.as_ref().map(|body| body.len() as u64).or(expected.length);
    match length {
        Some(length) if body.len() as u64 != length => {
            return Some(format!("{what} is {} bytes, expected {length}", body.len()));
        }
        _ => {}
    }
    let wanted = expected.body.as_ref()?;
    let at = body.iter().zip(wanted).position(|(is, wanted)| is != wanted)?;
    Some(format!("{what} is not the expected one from byte {at} on"))
}

/// What an answer without a coding is called (RFC 9110 §12.5.3).
const IDENTITY: &str = "identity";
/// A body is decoded up to here, so that a small answer cannot fill the memory.
const MOST_DECODED: usize = 64 << 20;
/// Codings upon each other; one is the rule, and each costs a whole pass.
const MOST_CODINGS: usize = 4;
/// A byte at a time, so that the decoder takes none from behind the end.
const BROTLI_BUFFER: usize = 1;
/// What a gzip member begins with (RFC 1952 §2.3.1).
const GZIP_MEMBER: &[u8] = &[0x1f, 0x8b];
/// What a zstd frame begins with (RFC 8878 §3.1.1).
const ZSTD_FRAME: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;
    use crate::results::HeaderField;

    const TEXT: &str = "Hello, World!\n";

    fn text() -> Vec<u8> {
        TEXT.repeat(8).into_bytes()
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(body).and_then(|()| encoder.finish()).expect("a vector takes what is written")
    }

    fn zlib(body: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(body).and_then(|()| encoder.finish()).expect("a vector takes what is written")
    }

    fn zstd(body: &[u8]) -> Vec<u8> {
        compress_to_vec(body, CompressionLevel::Fastest)
    }

    /// [`text`] in brotli, made with its reference encoder.
    fn brotli() -> Vec<u8> {
        unhex("1b6f00f89d09368ea8974683d70a204857aaec2d59d8e43a848ced4d20180fc053f32700")
    }

    fn unhex(digits: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    fn sample(status: u16, coding: &str, body: &[u8]) -> ResponseSample {
        let field = |name: &str, value: &str| HeaderField { name: name.into(), value: value.into() };
        let mut fields = vec![field("Content-Type", "text/plain")];
        if !coding.is_empty() {
            fields.push(field("Content-Encoding", coding));
        }
        ResponseSample { status, fields, body: STANDARD.encode(body), truncated: false }
    }

    fn expected() -> Expected {
        Expected { path: "/".into(), status: Some(200), body: Some(text()), length: None }
    }

    fn problem(sample: &ResponseSample, expected: &Expected) -> Option<String> {
        judge(sample, sample, expected).answer.problem
    }

    #[test]
    fn each_coding_is_taken_off_and_the_body_compared() {
        let twice = zlib(&gzip(&text()));
        let members = [gzip(&text()[..14]), gzip(&text()[14..])].concat();
        let frames = [zstd(&text()[..14]), zstd(&text()[14..])].concat();
        for (coding, body, encoding) in [
            ("", text(), "identity"),
            ("identity", text(), "identity"),
            ("gzip", gzip(&text()), "gzip"),
            ("X-GZIP", gzip(&text()), "x-gzip"),
            ("gzip", members, "gzip"),
            ("deflate", zlib(&text()), "deflate"),
            ("br", brotli(), "br"),
            ("zstd", zstd(&text()), "zstd"),
            ("zstd", frames, "zstd"),
            ("gzip, deflate", twice, "gzip, deflate"),
        ] {
            let sample = sample(200, coding, &body);
            let looked = judge(&sample, &sample, &expected());
            let answer = looked.answer;
            assert_eq!(answer.problem, None, "{coding}");
            assert_eq!((answer.encoding.as_str(), answer.body_bytes), (encoding, Some(112)));
            assert_eq!((answer.encoded_bytes, answer.repeats), (body.len() as u64, true));
            assert_eq!(looked.expect.body.as_deref(), Some(&sample.body[..]));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let short = |length| Expected { body: None, length: Some(length), ..expected() };
        let mut other = text();
        other[20] = b'-';
        for (sample, expected, message) in [
            (
                sample(200, "gzip", &gzip(&text()[..90])),
                short(112),
                "the body, after gzip is taken off, is 90 bytes, expected 112",
            ),
            (
                sample(200, "gzip", &gzip(&other)),
                expected(),
                "the body, after gzip is taken off, is not the expected one from byte 20 on",
            ),
            (sample(200, "", &other), expected(), "the body is not the expected one from byte 20 on"),
            (sample(200, "", b"hi"), expected(), "the body is 2 bytes, expected 112"),
            (sample(404, "br", &brotli()), expected(), "the status is 404, expected 200"),
            (
                sample(500, "", &text()),
                Expected { status: None, ..expected() },
                "the status is 500, expected 2xx or 3xx",
            ),
            (
                sample(200, "snappy", &text()),
                expected(),
                "the content coding `snappy` is not known (gzip, deflate, br, zstd are): the body cannot be checked",
            ),
            (
                sample(200, "gzip", &gzip(&text())[..20]),
                expected(),
                "the body is cut off inside its gzip coding",
            ),
            (
                sample(200, "gzip,gzip,gzip,gzip,gzip", &text()),
                expected(),
                "5 content codings upon each other, more than 4",
            ),
        ] {
            assert_eq!(problem(&sample, &expected).as_deref(), Some(message));
        }
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let message = problem(&sample(200, coding, &text()), &expected()).expect("it is plain text");
            let start = format!("the body is not what its content coding {coding} says: ");
            assert!(message.starts_with(&start), "{message}");
        }
        for (coding, body) in [("deflate", zlib(&text())), ("br", brotli()), ("zstd", zstd(&text()))] {
            assert!(
                problem(&sample(200, coding, &body[..body.len() - 2]), &expected()).is_some(),
                "{coding}"
            );
        }
    }

    #[test]
    fn nothing_follows_the_end_of_a_coding() {
        for (coding, body) in [
            ("gzip", gzip(&text())),
            ("x-gzip", [gzip(&text()[..14]), gzip(&text()[14..])].concat()),
            ("deflate", zlib(&text())),
            ("br", brotli()),
            ("zstd", zstd(&text())),
        ] {
            for more in [&b"\0"[..], b"<!-- more -->", &[b'x'; 5000]] {
                let message =
                    format!("the body goes on after the end of its {coding} coding, by {} bytes", more.len());
                let longer = [&body, more].concat();
                assert_eq!(problem(&sample(200, coding, &longer), &expected()), Some(message));
            }
        }
    }

    /// A problem of either answer is one, and what is recorded is the answer that has it.
    #[test]
    fn both_answers_are_judged() {
        let good = sample(200, "gzip", &gzip(&text()));
        let uncoded = format!("the body is {} bytes, expected 112", gzip(&text()).len());
        for (bad, message) in [
            (
                sample(200, "gzip", &gzip(&text()[..90])),
                "the body, after gzip is taken off, is 90 bytes, expected 112",
            ),
            (sample(503, "gzip", &gzip(&text())), "the status is 503, expected 200"),
            // The same bytes by another name.
            (sample(200, "", &gzip(&text())), &uncoded),
        ] {
            for (first, second) in [(&good, &bad), (&bad, &good)] {
                let answer = judge(first, second, &expected()).answer;
                assert_eq!((answer.problem.as_deref(), answer.repeats), (Some(message), false));
                assert_eq!((answer.status, &answer.fields), (bad.status, &bad.fields));
            }
        }
        let plain = sample(200, "", &text());
        for (first, second) in [(&good, &plain), (&plain, &good)] {
            let looked = judge(first, second, &expected());
            assert_eq!((looked.answer.problem, looked.answer.repeats), (None, false));
            assert_eq!(looked.expect, Expect { status: Some(200), body: None, length: None });
        }
    }

    /// A small answer that would fill the memory is not read to its end.
    #[test]
    fn a_bomb_is_not_unpacked() {
        let large = vec![0; MOST_DECODED + 1];
        let brotli = unhex(BROTLI_BOMB);
        for (coding, body) in
            [("gzip", gzip(&large)), ("deflate", zlib(&large)), ("zstd", zstd(&large)), ("br", brotli)]
        {
            let message = format!(
                "the body, after {coding} is taken off, is over 64 MiB, which is as far as it is checked"
            );
            assert_eq!(problem(&sample(200, coding, &body), &expected()), Some(message));
        }
    }

    #[test]
    fn answers_that_differ_are_held_to_less() {
        let (one, other) = (gzip(&text()), [gzip(&text()[..14]), gzip(&text()[14..])].concat());
        let looked = judge(&sample(200, "gzip", &one), &sample(200, "gzip", &other), &expected());
        assert_eq!((looked.answer.problem, looked.answer.repeats), (None, false));
        assert_eq!(looked.expect, Expect { status: Some(200), body: None, length: None });
        let plain = Expected { body: None, length: None, ..expected() };
        let looked = judge(&sample(200, "", b"one"), &sample(200, "", b"two"), &plain);
        assert!(!looked.answer.repeats);
        let long = ResponseSample { truncated: true, ..sample(200, "", &text()) };
        let looked = judge(&long, &long, &Expected { length: Some(1 << 30), ..plain.clone() });
        assert_eq!((looked.answer.problem, looked.answer.body_bytes), (None, None));
        assert_eq!(looked.expect.length, Some(1 << 30), "the window counts what was not kept");
        let long = ResponseSample { truncated: true, ..sample(200, "gzip", &gzip(&text())) };
        assert!(problem(&long, &plain).is_some_and(|problem| problem.contains("longer than the")));
    }

    /// 64 MiB and a byte of zeros in brotli, made with its reference encoder.
    const BROTLI_BOMB: &str = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f011087\
        0500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffe3ffff1f\
        fc1300715800a07bff0700800003";
}
