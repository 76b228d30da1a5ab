//! Owns the tests of releases and of the action that takes them: release.yml's job that puts them out, then the README's
//! examples, which are read from its text.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::model::{Workflow, file, parse};
use crate::project::Project;
use crate::runner::{Outcome, Run};

const TAG: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Puts a release out of the program under test, as release.yml does once it is built.
fn release(project: &Project) {
    let kept = project.artefacts().join("release-this");
    fs::create_dir(&kept).expect("a folder");
    let archive = kept.join(format!("bench-{TAG}-{}-linux.tar.gz", std::env::consts::ARCH));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_bench"));
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(program.parent().expect("a folder"))
        .arg("-I")
        .arg("gzip -1")
        .arg("-cf")
        .arg(archive)
        .arg("bench");
    assert!(tar.status().expect("tar can be started").success());

    let workflow: Workflow = parse(&file(".github/workflows/release.yml"));
    let mut run = Run::on(project, &workflow, "main");
    run.variables.insert("GITHUB_REF_NAME".into(), TAG.into());
    run.variables.insert("GITHUB_REPOSITORY".into(), "OWNER/bench".into());
    let outcome = run.job("release", &[]);
    assert!(outcome.success, "{}", outcome.log);
}

/// The workflows that the README shows, by name.
fn examples() -> BTreeMap<String, Workflow> {
    let readme = file("README.md");
    let (_, section) = readme.split_once("## In GitHub Actions\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("a section after it");
    let blocks =
        section.split("```yaml\n").skip(1).map(|block| block.split_once("```").expect("a block ends").0);
    blocks.map(parse::<Workflow>).map(|workflow| (workflow.name.clone().expect("a name"), workflow)).collect()
}

/// Carries out the only job of an example.
fn carry_out(run: &Run<'_>) -> Outcome {
    let [job] = run.workflow.jobs.keys().collect::<Vec<_>>()[..] else { panic!("one job") };
    run.job(job, &[])
}

/// What a pull request from a repository brings.
fn pull_request(run: &mut Run<'_>, repository: &str) {
    run.names.insert("github.event.pull_request.number".into(), "7".into());
    run.names.insert("github.event.pull_request.head.repo.full_name".into(), repository.into());
    run.variables.insert("GITHUB_REF_NAME".into(), "7/merge".into());
    run.variables.insert("GITHUB_BASE_REF".into(), "main".into());
}

fn comments(project: &Project) -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(project.path("comments.json")).unwrap()).unwrap()
}

#[test]
fn a_release_has_checksums_the_schema_and_the_section_of_the_changelog() {
    let project = Project::new();
    release(&project);
    let folder = project.path("releases/OWNER/bench/releases/download").join(TAG);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let archive = format!("bench-{TAG}-{}-linux.tar.gz", std::env::consts::ARCH);
    assert_eq!(names, ["SHA256SUMS", &archive, "notes.md", "results.schema.json"]);
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert!(sums.contains(&archive) && sums.contains("results.schema.json"), "{sums}");
    let notes = fs::read_to_string(folder.join("notes.md")).unwrap();
    assert!(notes.contains("- `bench run`:") && !notes.contains("## "), "{notes}");
}

#[test]
fn the_readmes_example_publishes_a_report() {
    let project = Project::new();
    release(&project);
    let examples = examples();
    assert_eq!(examples.keys().collect::<Vec<_>>(), ["bench", "bench-reports"]);
    let run = Run::on(&project, &examples["bench-reports"], "main");
    let outcome = carry_out(&run);
    assert!(outcome.success, "{}", outcome.log);
    assert!(outcome.log.contains(&format!("{}-linux.tar.gz: OK", std::env::consts::ARCH)), "{}", outcome.log);
    assert!(
        project.committed("reports/HTTP_RESULTS.md").is_some_and(|report| outcome.summary.contains(&report))
    );
    assert!(project.artefacts().join("bench/http/HTTP_RESULTS.json").exists());
    assert!(outcome.summary.contains("Committed to main: 1 of 1 reports."), "{}", outcome.summary);
}

#[test]
fn a_release_that_was_tampered_with_is_not_run() {
    let project = Project::new();
    release(&project);
    let sums = project.path("releases/OWNER/bench/releases/download").join(TAG).join("SHA256SUMS");
    let (listed, zeroes) = (fs::read_to_string(&sums).unwrap(), "0".repeat(64));
    let tampered = listed.lines().map(|line| format!("{zeroes}{}\n", &line[64..])).collect::<String>();
    for (sums_say, said) in
        [(tampered, "is not what SHA256SUMS of"), (String::new(), "is not what SHA256SUMS of")]
    {
        fs::write(&sums, sums_say).unwrap();
        let outcome = carry_out(&Run::on(&project, &examples()["bench-reports"], "main"));
        assert!(!outcome.success && outcome.log.contains(said), "{}", outcome.log);
        assert_eq!(project.committed("reports/HTTP_RESULTS.md"), None);
    }
}

#[test]
#[ignore = "until `bench ab` is here"]
fn the_readmes_example_comments_on_a_pull_request_once_and_keeps_the_comment_up_to_date() {
    let project = Project::new();
    release(&project);
    let start = project.tip("main");
    project.branch("change");
    project.commit("moved", &[("moved", "once")]);
    let people = json!([{"id": 1, "user": {"type": "User"}, "body": "<!-- bench: bench -->\nwhat is this?"}]);
    fs::write(project.path("comments.json"), people.to_string()).unwrap();
    let examples = examples();
    let example = &examples["bench"];

    let mut run = Run::on(&project, example, "change");
    pull_request(&mut run, "someone/project");
    for _ in 0..2 {
        let outcome = carry_out(&run);
        assert!(outcome.success, "{}", outcome.log);
        let comments = comments(&project);
        assert_eq!(comments.len(), 2, "{comments:?}");
        assert_eq!(comments[0], people[0]);
        let body = comments[1]["body"].as_str().unwrap();
        let text = body.strip_prefix("<!-- bench: bench -->\n").expect("its marker");
        assert!(outcome.summary.contains(text), "{}", outcome.summary);
        assert!(text.contains(&start[..7]), "compared with the commit that the branch left main at: {text}");
        fs::remove_dir_all(project.artefacts().join("bench")).unwrap();
    }

    let mut run = Run::on(&project, example, "change");
    pull_request(&mut run, "another/project");
    fs::write(project.path("comments.json"), "[]").unwrap();
    let outcome = carry_out(&run);
    assert!(outcome.success && outcome.summary.contains(&start[..7]), "{}", outcome.log);
    assert_eq!(comments(&project), [] as [Value; 0], "a fork's token may not write");
}
