//! Owns what a section says of its requests and their answers: `headers` and `runs`.

use super::ScenarioError;
use super::file::RawSection;
use super::source::At;
use crate::proto::request::{EncodeError, Parts};
use crate::results::{Protocol, SectionKind};

/// The header fields of a section's requests, and whether the report shows every round.
///
/// # Errors
/// A field that cannot be sent, or keys that this kind of section has no use for.
pub(super) fn of(
    raw: &RawSection,
    kind: SectionKind,
    protocols: &[At<Protocol>],
) -> Result<(Vec<(String, String)>, bool), ScenarioError> {
    if kind == SectionKind::Generators {
        let place = raw.headers.as_ref().map(|headers| &headers.place);
        let place = place.or_else(|| raw.runs.as_ref().map(|runs| &runs.place));
        if let Some(place) = place {
            return Err(place.mistake(
                "belongs to sections that one generator drives; write it in a section of another kind",
            ));
        }
    }
    let runs = raw.runs.as_ref().is_some_and(|runs| runs.value);
    let Some(headers) = &raw.headers else { return Ok((Vec::new(), runs)) };
    let mut fields: Vec<(String, String)> = Vec::with_capacity(headers.value.len());
    for (name, value) in &headers.value {
        if fields.iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            return Err(value.mistake(format_args!(
                "header {name} is given twice, in another case; field names have none, so leave one out"
            )));
        }
        let field = [(name.clone(), value.value.clone())];
        for protocol in protocols {
            check(&field, protocol.value).map_err(|error| value.mistake(error))?;
        }
        fields.extend(field);
    }
    Ok((fields, runs))
}

/// Checks a field as the generator does with its requests, which are GETs without a body.
fn check(field: &[(String, String)], protocol: Protocol) -> Result<(), EncodeError> {
    let parts = Parts::check("GET", "/", "localhost", field, 0)?;
    if protocol.is_http1() {
        return Ok(());
    }
    parts.lines(protocol.scheme()).map(|_| ())
}
