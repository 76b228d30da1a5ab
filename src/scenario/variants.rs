//! Owns `[[server.variant]]`: the servers that one server of a scenario stands for.

use super::ScenarioError;
use super::expand::one_line;
use super::file::RawServer;
use super::servers;
use super::source::At;
use crate::results::VariantRecord;

/// The server itself, when it has no variants; else one server for each of them, which has what the
/// variant leaves out from the server, with what it is a variant of. A server with variants is not
/// measured beside them: a variant that has a label alone is the server as it is.
///
/// # Errors
/// A variant that cannot be named or labelled.
pub(super) fn expand(
    mut server: RawServer,
) -> Result<Vec<(RawServer, Option<VariantRecord>)>, ScenarioError> {
    let variants = std::mem::take(&mut server.variants);
    if variants.is_empty() {
        return Ok(vec![(server, None)]);
    }
    let name = servers::name(&server)?.value.clone();
    let label = server.label.as_ref().map_or(&name, |label| &label.value).clone();
    let of_variant = |mut variant: RawServer| {
        let told = variant.label.as_ref().ok_or_else(|| {
            let place = variant.place.missing("label");
            place.mistake("missing; write what tells this variant from the others, like `label = \"debug\"`")
        })?;
        let record = VariantRecord { of: name.clone(), label: one_line(told)? };
        if variant.name.is_none() {
            variant.name = Some(At { value: format!("{name}-{}", slug(told)?), place: told.place.clone() });
        }
        variant.label = Some(At { value: format!("{label}, {}", record.label), place: told.place.clone() });
        Ok((variant.over(server.clone()), Some(record)))
    };
    variants.into_iter().map(of_variant).collect()
}

/// A label as part of a name: `TLS by aws-lc-rs` gives `tls-by-aws-lc-rs`.
fn slug(label: &At<String>) -> Result<String, ScenarioError> {
    let lower = label.value.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(label.mistake(format_args!(
            "{:?} makes no name, which has letters and digits of ASCII; write `name` as well",
            label.value
        )));
    }
    Ok(words.join("-"))
}
