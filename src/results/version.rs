//! Owns the format number of the results file, its history, and the rule of what may be read.
//!
//! | format | what changed |
//! |---|---|
//! | 1.0 | the first |
//! | 1.1 | HTTP/2: protocols `h2c`, `h2`; section kind `ratio`; `replayed`, `interrupted`, `multiplexing`, `stalls`, `effective_concurrency`; phases `interrupted`, `refused`; status `wrong-protocol` |
//! | 1.2 | HTTP/3: protocol `h3`; section kind `handshake`; `resumption`, `requests_per_connection`, `handshakes`, `first_response_us`, `quic`, `udp_drops`, `bound_reason`, `summary.handshake`; phase `quic` |
//! | 1.3 | comparisons: section kind `generators`; `generators`, `probes`, `governor`; `order` of settings; of servers `variant`, `workers`, `gate`, `revision`; of sections `headers`, `runs`; `generator` of cells; of rounds `external`, `answer`; `sample` |
//!
//! A minor number grows when a field is added that older files can do without; a major number grows
//! when the meaning of a field changes. A reader takes its own major number with any minor number
//! up to its own. One file of every format ever released stays in `tests/data/`.

/// Format written by this version: `major.minor`.
pub const FORMAT: &str = "1.3";

/// Says whether a file of `format` may be read by this version.
///
/// # Errors
/// A fragment that names both formats and what to do.
pub fn may_read(format: &str) -> Result<(), String> {
    let (ours, theirs) = (parse(FORMAT), parse(format));
    match (theirs, ours) {
        (None, _) => Err(format!("format `{format}` is not of the form `major.minor`, e.g. `{FORMAT}`")),
        (Some(theirs), Some(ours)) if theirs > ours => Err(format!(
            "format {format} is newer than {FORMAT}, the newest this version reads; use a newer bench"
        )),
        (Some((theirs, _)), Some((ours, _))) if theirs < ours => Err(format!(
            "format {format} is of an older major than {FORMAT}; render it with the bench that wrote it"
        )),
        _ => Ok(()),
    }
}

fn parse(format: &str) -> Option<(u32, u32)> {
    let (major, minor) = format.split_once('.')?;
    let number = |text: &str| {
        // `u32::from_str` would also take a plus sign.
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    Some((number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_format_is_readable_and_newer_ones_are_refused_by_name() {
        assert_eq!(may_read(FORMAT), Ok(()));
        for newer in ["1.4", "2.0", "10.0"] {
            let error = may_read(newer).unwrap_err();
            assert!(error.contains(newer) && error.contains(FORMAT), "{error}");
        }
        assert!(may_read("0.9").unwrap_err().contains("older major"));
        for malformed in ["", "1", "1.", ".0", "1.0.0", "+1.0", "1.-1", "one.zero", "99999999999.0"] {
            assert!(may_read(malformed).unwrap_err().contains("major.minor"), "{malformed}");
        }
    }
}
