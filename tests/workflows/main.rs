//! Owns the tests of `.github`: its rules, and its workflows carried out step by step as they stand, in a project of
//! three small scenarios with a repository to push to. The README's examples are carried out likewise. In place of
//! the compiler stands a program that hands out the one under test; in place of the platform, `runner`.

mod action;
mod expression;
mod model;
mod project;
mod rules;
mod runner;
#[path = "../common/turn.rs"]
mod turn;

use model::{Workflow, file, parse};
use project::Project;
use runner::{Outcome, Run};

const INPUTS: [(&str, &str); 2] = [("rounds", "2"), ("duration", "60ms")];

const SCENARIOS: [&str; 3] = ["http", "h2", "h3"];

/// Runs before every push, knows already what the branch was: moves it, once.
const RACE: &str = r#"#!/usr/bin/env bash
set -euo pipefail
unset "${!GIT_@}"
cd "$AUTHOR"
[[ ! -e raced ]] || exit 0
touch raced
git pull --quiet --rebase origin main
git add raced
git -c user.name=author -c user.email=author@example.org commit --quiet --message "moved during the push"
git push --quiet origin HEAD:main
"#;

/// Measures each scenario; returns how that went.
fn measure(run: &Run<'_>) -> Vec<Outcome> {
    let scenarios = run.matrix("measure", "scenario");
    scenarios.iter().map(|scenario| run.job("measure", &[("matrix.scenario", scenario)])).collect()
}

/// All of bench.yml, with everything in order.
fn publish_once(project: &Project, workflow: &Workflow) {
    let run = Run::by_hand(project, workflow, &INPUTS);
    for outcome in measure(&run) {
        assert!(outcome.success, "{}", outcome.log);
    }
    let outcome = run.job("publish", &[]);
    assert!(outcome.success, "{}", outcome.log);
    std::fs::remove_dir_all(project.artefacts()).expect("artefacts");
    std::fs::create_dir(project.artefacts()).expect("a folder");
}

#[test]
fn reports_are_measured_compared_and_committed() {
    let project = Project::new();
    let workflow: Workflow = parse(&file(".github/workflows/bench.yml"));
    publish_once(&project, &workflow);
    let first = SCENARIOS.map(|_| ());
    assert_eq!(
        project.messages().len(),
        1 + first.len(),
        "a commit for each report: {:?}",
        project.messages()
    );

    let run = Run::by_hand(&project, &workflow, &INPUTS);
    assert_eq!(run.matrix("measure", "scenario"), SCENARIOS);
    for outcome in measure(&run) {
        assert!(outcome.success, "{}", outcome.log);
    }
    let published = run.job("publish", &[]);
    assert!(published.success, "{}", published.log);
    assert_eq!(project.messages().len(), 7, "{:?}", project.messages());
    for report in ["HTTP_RESULTS", "HTTP2_RESULTS", "HTTP3_RESULTS"] {
        let results = project.committed(&format!("reports/{report}.json")).expect("results");
        assert!(results.contains(&run.commit), "measured at the commit of the run");
        let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
        let command = results["sessions"][0]["command"].to_string();
        assert!(command.contains("--rounds=2") && command.contains("--duration=60ms"), "{command}");
        let markdown = project.committed(&format!("reports/{report}.md")).expect("a report");
        let picture = markdown.split('"').find(|link| link.ends_with(".svg"));
        assert!(project.committed(&format!("reports/{}", picture.expect("a picture"))).is_some());
    }
    for scenario in SCENARIOS {
        assert!(published.summary.contains(&format!("- {scenario}: measured\n")), "{}", published.summary);
    }
    assert!(published.summary.contains("# `HEAD` against `reports`\n"), "{}", published.summary);
    assert!(published.summary.contains("| my-server h1 1x1 |"), "{}", published.summary);
    assert!(published.summary.contains("On main now: 3 of 3 reports."), "{}", published.summary);

    // The job once more, as "re-run" has it: at the same commit.
    let again = run.job("publish", &[]);
    assert!(again.success && again.summary.contains("On main now: 3 of 3 reports."), "{}", again.log);
    assert_eq!(project.messages().len(), 7, "{:?}", project.messages());
    // At the newest commit, where these reports are the committed ones.
    let again = Run::by_hand(&project, &workflow, &INPUTS).job("publish", &[]);
    assert!(again.success, "{}", again.log);
    assert!(again.summary.contains("No report changed."), "{}", again.summary);
    assert!(again.summary.contains("Nothing to commit."), "{}", again.summary);
    assert_eq!(project.messages().len(), 7, "{:?}", project.messages());
    // A report that someone else put on the branch since then stands.
    project.commit("main", "another", &[("reports/HTTP2_RESULTS.md", "another")]);
    let late = run.job("publish", &[]);
    assert!(late.success && late.summary.contains("On main now: 2 of 3 reports."), "{}", late.log);
    assert!(late.summary.contains("- HTTP2_RESULTS: "), "{}", late.summary);
    assert_eq!(project.committed("reports/HTTP2_RESULTS.md").as_deref(), Some("another"));
}

#[test]
fn a_moved_branch_keeps_what_moved_it_and_a_failed_job_keeps_the_old_report() {
    let project = Project::new();
    let workflow: Workflow = parse(&file(".github/workflows/bench.yml"));
    publish_once(&project, &workflow);
    let old = project.committed("reports/HTTP2_RESULTS.json");
    project.commit("main", "breaks h2", &[("scenarios/h2.toml", "format = 1\nno such key\n")]);

    let run = Run::by_hand(&project, &workflow, &INPUTS);
    let outcomes = measure(&run);
    assert_eq!(outcomes.iter().map(|outcome| outcome.success).collect::<Vec<_>>(), [true, false, true]);
    assert!(run.starts_after_failure("publish"));
    project.commit("main", "moved before the job", &[("moved", "once")]);
    // And between a fetch and its push, the first time.
    project.hook("pre-push", RACE);
    let published = run.job("publish", &[]);
    assert!(published.success, "{}", published.log);

    let messages = project.messages();
    let newest: Vec<&str> = messages.iter().map(|m| m.split(':').next().unwrap_or_default()).collect();
    let expected =
        ["HTTP_RESULTS", "HTTP3_RESULTS", "moved during the push", "moved before the job", "breaks h2"];
    assert_eq!(newest[..5], expected, "{}", published.log);
    assert_eq!(project.committed("moved").as_deref(), Some("once"));
    assert_eq!(project.committed("reports/HTTP2_RESULTS.json"), old);
    assert!(published.summary.contains("- h2: **no report**"), "{}", published.summary);
    assert!(published.summary.contains("On main now: 2 of 2 reports."), "{}", published.summary);

    // What is not whole is not taken over.
    let kept = |path: &str| project.artefacts().join(path);
    std::fs::write(kept("measured-h3/h3/HTTP3_RESULTS.journal"), "{}").expect("a journal");
    std::fs::write(kept("measured-http/http/HTTP_RESULTS.md"), "torn").expect("a report");
    let before = project.messages();
    let refused = Run::by_hand(&project, &workflow, &INPUTS).job("publish", &[]);
    assert!(refused.success, "{}", refused.log);
    for said in ["- http: **damaged**", "- h2: **no report**", "- h3: **not complete**", "Nothing to commit."]
    {
        assert!(refused.summary.contains(said), "{}", refused.summary);
    }
    assert_eq!(project.messages(), before);
}
