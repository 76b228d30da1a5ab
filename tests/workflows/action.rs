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
    // The summary has the report, without the pictures, which are files beside it.
    let report = project.committed("reports/HTTP_RESULTS.md").expect("a report");
    let (mut within, mut lines) = (false, Vec::new());
    for line in report.lines() {
        within |= line == "<picture>";
        if !within {
            lines.push(line);
        }
        within &= line != "</picture>";
    }
    assert!(
        report.contains("<picture>") && outcome.summary.contains(&lines.join("\n")),
        "{}",
        outcome.summary
    );
    assert!(!outcome.summary.contains("<picture>"), "{}", outcome.summary);
    assert!(project.artefacts().join("bench/http/HTTP_RESULTS.json").exists());
    assert!(outcome.summary.contains("On main now: 1 of 1 reports."), "{}", outcome.summary);
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
fn inputs_say_where_bench_comes_from_and_what_it_does() {
    let project = Project::new();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bench"), project.path("bin/bench")).unwrap();
    let cases = [
        ("version: source, scenario: scenarios/http.toml, server: my-server", true, "written: "),
        (
            "version: source, scenario: scenarios/http.toml, server: other",
            false,
            "not in the scenario; it has my-server",
        ),
        (
            "version: source, scenario: scenarios/http.toml, options: --rounds 1 --cell 2x1",
            true,
            "1 cells in 1 rounds",
        ),
        ("version: source, mode: diff, base: nowhere", false, "nowhere"),
        ("version: source, mode: ab", false, "this is no pull request"),
        ("version: source, mode: race", false, "none of run, ab and diff"),
        ("version: installed, scenario: scenarios/http.toml", true, "written: "),
        ("version: v9.9.9", false, "is there such a release?"),
        ("version: latest", false, "version 'latest' is none"),
    ];
    for (inputs, success, said) in cases {
        let text = format!(
            "{{name: case, on: push, permissions: {{}}, jobs: {{job: {{runs-on: any, steps: [{{uses: actions/checkout@v1}},\n\
             {{uses: ./.github/actions/bench, with: {{{inputs}}}}}]}}}}}}"
        );
        let workflow = parse(&text);
        let outcome = carry_out(&Run::on(&project, &workflow, "main"));
        assert_eq!(outcome.success, success, "{inputs}: {}", outcome.log);
        assert!(outcome.log.contains(said), "{inputs}: {}", outcome.log);
        let _ = fs::remove_dir_all(project.artefacts().join("bench"));
    }
}

#[test]
fn the_readmes_example_comments_on_a_pull_request_and_keeps_the_comment_up_to_date() {
    let project = Project::new();
    release(&project);
    let start = project.tip("main");
    project.commit("change", "adds a note", &[("scenarios/notes", "changed")]);
    project.commit("main", "moved", &[("moved", "once")]);
    let asked = json!({"id": 1, "user": {"type": "User"}, "body": "<!-- bench: bench -->\nwhat is this?"});
    fs::write(project.path("comments.json"), json!([asked]).to_string()).unwrap();
    let examples = examples();

    let mut run = Run::on(&project, &examples["bench"], "change");
    pull_request(&mut run, "someone/project");
    let measured = carry_out(&run);
    // So short a measurement may find anything. The mark on the commit says what the text says: red where a limit is
    // broken, and where nothing could be judged.
    assert_eq!(measured.success, measured.summary.contains("The limits hold"), "{}", measured.log);
    let text = comment(&project, &asked);
    assert!(measured.summary.contains(&text), "{}", measured.summary);
    assert!(text.contains(&start[..12]), "compared with the commit that the branch left main at: {text}");
    assert!(text.contains("| my-server h1 2x1 |"), "{text}");
    fs::remove_dir_all(project.artefacts().join("bench")).unwrap();

    // The next commit cannot be measured.
    project.commit("change", "breaks the scenario", &[("scenarios/http.toml", "format = 1\nno such key\n")]);
    let mut run = Run::on(&project, &examples["bench"], "change");
    pull_request(&mut run, "someone/project");
    let broken = carry_out(&run);
    assert!(!broken.success && broken.log.contains("http.toml:2"), "{}", broken.log);
    assert_eq!(
        comment(&project, &asked),
        "`bench ab` ended with exit code 2; the log of this step says why.\n"
    );
    fs::remove_dir_all(project.artefacts().join("bench")).unwrap();

    fs::write(project.path("comments.json"), "[]").unwrap();
    pull_request(&mut run, "another/project");
    let from_fork = carry_out(&run);
    assert!(from_fork.summary.contains("ended with exit code 2"), "{}", from_fork.log);
    assert_eq!(comments(&project), [] as [Value; 0], "a fork's token may not write");
}

/// The text of the only comment beside the one that people wrote, which is as it was.
fn comment(project: &Project, asked: &Value) -> String {
    let comments = comments(project);
    assert_eq!((comments.len(), &comments[0]), (2, asked), "{comments:?}");
    let body = comments[1]["body"].as_str().expect("a text");
    body.strip_prefix("<!-- bench: bench -->\n").expect("its marker").to_owned()
}
