//! Owns what every workflow of this repository keeps to.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::{Action, Step, Workflow, file, parse};

const ACTION: &str = ".github/actions/bench/action.yml";
const WORKFLOWS: [&str; 4] = ["bench", "ci", "pr", "release"];

fn path(name: &str) -> String {
    format!(".github/workflows/{name}.yml")
}

fn workflow(name: &str) -> Workflow {
    parse(&file(&path(name)))
}

#[test]
fn every_workflow_is_known_here() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, WORKFLOWS.map(|name| format!("{name}.yml")));
}

#[test]
fn actions_are_pinned_by_commit_with_their_version_beside_it() {
    let mut pins = BTreeMap::new();
    for path in WORKFLOWS.map(path).into_iter().chain([ACTION.to_owned()]) {
        let text = file(&path);
        for line in text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, uses)| uses) {
            if line.starts_with("./") {
                continue;
            }
            let (action, pin) = line.split_once('@').unwrap_or_else(|| panic!("{path}: {line}"));
            let (commit, version) = pin.split_once(" # v").unwrap_or_else(|| panic!("{path}: {line}"));
            assert!(commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "{path}: {line}");
            assert_eq!(version.split('.').count(), 3, "{path}: {line}");
            let first = pins.entry(action.to_owned()).or_insert_with(|| pin.to_owned());
            assert_eq!(first, pin, "{path}: two versions of {action}");
        }
    }
    assert!(pins.contains_key("actions/checkout"));
}

#[test]
fn rights_are_the_least_and_nothing_runs_for_ever() {
    let may_write =
        [("bench", "publish", "contents"), ("pr", "ab", "pull-requests"), ("release", "release", "contents")];
    for name in WORKFLOWS {
        let workflow = workflow(name);
        assert_eq!(workflow.name.as_deref(), Some(name));
        assert_eq!(workflow.permissions, BTreeMap::from([("contents".into(), "read".into())]), "{name}");
        assert_ne!(workflow.concurrency, Value::Null, "{name}");
        for (job, jobs) in &workflow.jobs {
            assert!(jobs.timeout_minutes.is_some(), "{name}: {job}");
            let writes: Vec<_> = jobs.permissions.iter().filter(|(_, right)| *right == "write").collect();
            let allowed =
                may_write.iter().find(|(workflow, allowed, _)| (*workflow, *allowed) == (name, &job[..]));
            assert_eq!(
                writes.first().map(|(what, _)| &what[..]),
                allowed.map(|(_, _, what)| *what),
                "{name}: {job}"
            );
            assert!(writes.len() <= 1, "{name}: {job}");
        }
    }
}

#[test]
fn credentials_stay_only_where_something_is_pushed() {
    for name in WORKFLOWS {
        for (job, jobs) in workflow(name).jobs {
            let pushes = jobs
                .steps
                .iter()
                .any(|step| step.run.as_deref().is_some_and(|run| run.contains("publish.sh push")));
            for step in jobs.steps.iter().filter(|step| uses(step, "actions/checkout")) {
                let dropped = step.with.get("persist-credentials") == Some(&Value::Bool(false));
                assert_eq!(dropped, !pushes, "{name}: {job}");
            }
        }
    }
}

#[test]
fn no_expression_becomes_part_of_a_script() {
    let jobs = WORKFLOWS.map(workflow).into_iter().flat_map(|workflow| workflow.jobs.into_values());
    let steps = jobs.flat_map(|job| job.steps).chain(parse::<Action>(&file(ACTION)).runs.steps);
    for run in steps.filter_map(|step| step.run) {
        assert!(!run.contains("${{"), "{run}");
    }
}

#[test]
fn the_action_is_given_only_inputs_it_has() {
    let action: Action = parse(&file(ACTION));
    for (name, input) in &action.inputs {
        assert!(input.description.len() > 10, "{name}");
    }
    for step in workflow("pr").jobs["ab"].steps.iter().filter(|step| uses(step, "./.github/actions/bench")) {
        assert!(step.with.keys().all(|key| action.inputs.contains_key(key)), "{:?}", step.with);
    }
}

fn uses(step: &Step, action: &str) -> bool {
    step.uses.as_deref().is_some_and(|uses| uses.split('@').next() == Some(action))
}
