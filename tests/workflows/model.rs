//! Owns what a workflow and an action are to these tests: the keys they use and no others, so that a key which is not
//! carried out here is an error and not passed over.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A file of `.github/workflows`, or an example of one.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workflow {
    pub(crate) name: Option<String>,
    pub(crate) on: Value,
    pub(crate) permissions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) concurrency: Value,
    #[serde(default)]
    pub(crate) defaults: Value,
    pub(crate) jobs: BTreeMap<String, Job>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Job {
    #[serde(rename = "name")]
    pub(crate) _name: Option<String>,
    #[serde(rename = "runs-on")]
    pub(crate) _runs_on: String,
    pub(crate) timeout_minutes: Option<u32>,
    #[serde(rename = "needs")]
    pub(crate) _needs: Option<String>,
    /// `publish` of bench.yml has to have one: without, it would not start after a job that failed.
    #[serde(rename = "if")]
    pub(crate) condition: Option<String>,
    #[serde(default)]
    pub(crate) permissions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) strategy: Value,
    pub(crate) steps: Vec<Step>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    #[serde(rename = "name")]
    pub(crate) _name: Option<String>,
    pub(crate) id: Option<String>,
    #[serde(rename = "if")]
    pub(crate) condition: Option<String>,
    pub(crate) uses: Option<String>,
    #[serde(default)]
    pub(crate) with: BTreeMap<String, Value>,
    pub(crate) run: Option<String>,
    pub(crate) shell: Option<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, Value>,
}

/// A composite action.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Action {
    #[serde(rename = "name")]
    pub(crate) _name: String,
    #[serde(rename = "description")]
    pub(crate) _description: String,
    pub(crate) inputs: BTreeMap<String, Input>,
    pub(crate) outputs: BTreeMap<String, Output>,
    pub(crate) runs: Runs,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    pub(crate) description: String,
    pub(crate) default: String,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Output {
    #[serde(rename = "description")]
    pub(crate) _description: String,
    pub(crate) value: String,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Runs {
    pub(crate) using: String,
    pub(crate) steps: Vec<Step>,
}

/// Reads YAML.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A file of this repository.
pub(crate) fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
