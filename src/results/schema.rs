//! Owns the JSON schema of results files: generated from the model, and committed as
//! `docs/results.schema.json`, which a test holds to it.

use super::Results;

/// The schema (JSON Schema 2020-12), pretty-printed. Unknown keys are refused by it as by the reader.
pub fn json() -> String {
    let schema = schemars::schema_for!(Results);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
