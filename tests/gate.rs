//! Holds the two lists of the gate's steps to each other and to the scripts there are.

use std::fs;
use std::path::Path;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words between `open` and `close` in the line of `text` that starts with `open`.
fn list(text: &str, open: &str, close: char) -> Vec<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(open)).expect("the list is there");
    let words = line.trim_end_matches(close).split([' ', ',']);
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_workflow_runs_every_step_of_the_gate() {
    let steps = list(&text(".ci/run"), "steps=(", ')');
    assert_eq!(steps[0], "setup");
    // Setup comes before each job's own step.
    assert_eq!(list(&text(".github/workflows/ci.yml"), "step: [", ']'), steps[1..]);

    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/steps");
    let mut found: Vec<String> = fs::read_dir(scripts)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".sh").expect("a step is a shell script").to_owned())
        .collect();
    found.sort();
    let mut expected = steps;
    expected.sort();
    assert_eq!(found, expected);
}
