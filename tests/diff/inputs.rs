//! Owns the tests of what a side may be.

use predicates::prelude::*;
use predicates::str::contains;

use crate::build;
use crate::fixture::{Folder, run};

/// Three commits: a report, a second one beside it, the first one slower.
fn repository() -> Folder {
    let folder = Folder::new();
    folder.write("reports/A.json", &run(1.0));
    folder.write_text("reports/A.md", "# A\n");
    folder.write_text("reports/schema.json", "{\"title\": \"no results\"}");
    folder.write("reports/old/C.json", &run(1.0));
    folder.commit("A");
    folder.git(&["tag", "v1"]);
    folder.write("reports/B.json", &run(1.0));
    folder.write("other/A.json", &run(0.5));
    folder.commit("B");
    folder.write("reports/A.json", &run(0.9));
    folder.write_text("src/x", "");
    folder.commit("slower");
    folder
}

#[test]
fn a_side_is_a_file_a_folder_a_revision_or_a_path_at_one() {
    let folder = repository();
    folder.write("before.json", &run(1.0));
    folder.write("reports/A.json", &run(0.8));
    let old = folder.path("before.json");
    let old = old.to_str().expect("UTF-8");
    for (below, args, base, head, change) in [
        ("", &["HEAD~1", "HEAD"][..], "HEAD~1:reports/A.json", "HEAD:reports/A.json", -0.1),
        ("", &["v1", "HEAD"], "v1:reports/A.json", "HEAD:reports/A.json", -0.1),
        ("", &["HEAD", "reports"], "HEAD:reports/A.json", "reports/A.json", -0.11),
        ("", &["HEAD~1", "reports/A.json"], "HEAD~1:reports/A.json", "reports/A.json", -0.2),
        ("", &["HEAD~2:reports/A.json", "HEAD"], "HEAD~2:reports/A.json", "HEAD:reports/A.json", -0.1),
        ("", &["HEAD:reports", "HEAD:other"], "HEAD:reports/A.json", "HEAD:other/A.json", -0.44),
        ("", &["v1", "HEAD:other/"], "v1:reports/A.json", "HEAD:other/A.json", -0.5),
        ("", &["HEAD^{/A}", "HEAD"], "HEAD^{/A}:reports/A.json", "HEAD:reports/A.json", -0.1),
        ("", &["HEAD", "HEAD", "--reports", "other"], "HEAD:other/A.json", "HEAD:other/A.json", 0.0),
        ("", &["before.json", "reports/A.json"], "before.json", "reports/A.json", -0.2),
        ("", &[old, "HEAD:reports/A.json"], old, "HEAD:reports/A.json", -0.1),
        (
            "src",
            &["HEAD~1", "HEAD", "--reports", "../reports"],
            "HEAD~1:reports/A.json",
            "HEAD:reports/A.json",
            -0.1,
        ),
        (
            "src",
            &["HEAD:../reports/A.json", "../reports/A.json"],
            "HEAD:reports/A.json",
            "../reports/A.json",
            -0.11,
        ),
    ] {
        let args = [&["diff", "--format", "json"], args].concat();
        let assert = folder.bench(below, &args).assert().code(0);
        let json = crate::fixture::json(&assert.get_output().stdout);
        let report = &json["reports"][0];
        assert_eq!(
            (&report["base"]["name"], &report["head"]["name"]),
            (&base.into(), &head.into()),
            "{args:?}"
        );
        let found = report["cells"][0]["changes"][0]["change"].as_f64().expect("a figure");
        assert!((found - change).abs() < 0.01, "{args:?}: {found}");
    }
}

#[test]
fn a_path_that_exists_is_taken_before_a_revision() {
    let folder = repository();
    folder.write("v1/A.json", &run(0.5));
    let name = |args: &[&str]| folder.json(args)["reports"][0]["base"]["name"].clone();
    assert_eq!(name(&["v1", "HEAD"]), "v1/A.json");
    assert_eq!(name(&["tags/v1", "HEAD"]), "tags/v1:reports/A.json");
}

#[test]
fn an_argument_that_is_neither_gets_one_message_with_both_readings() {
    let folder = repository();
    for (args, parts) in [
        (
            ["nosuch", "HEAD"],
            &["`nosuch` is neither a file or folder here nor a revision", "--unshallow"][..],
        ),
        (["HEAD", "nosuch.json"], &["`nosuch.json` is neither"]),
        (["HEAD", "nosuch:reports/A.json"], &["neither"]),
        (["HEAD", ""], &["neither"]),
        (["HEAD", "--help-me"], &["--help-me"]),
        (["HEAD:reports/Z.json", "HEAD"], &["HEAD has no results files", "reports/Z.json"]),
        (["HEAD:src", "HEAD"], &["HEAD has no results files", "in src", "--reports"]),
        (["HEAD:reports/A.md", "HEAD"], &["HEAD:reports/A.md: not a results file"]),
        (["HEAD", "reports/A.md"], &["reports/A.md: not a results file"]),
        (["HEAD", "src"], &["src has no results files"]),
        (["reports/B.json", "v1"], &["no report is on both sides: reports/B.json has B.json; v1 has A.json"]),
        (["HEAD:../x", "HEAD"], &["is not in"]),
    ] {
        let assert = folder.diff(&args).assert().code(2).stdout("");
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(parts.iter().all(|part| message.contains(part)), "{args:?}: {message}");
        assert!(args[1].starts_with("--") || message.matches("error: ").count() == 1, "{message}");
    }
    let outside = Folder::new();
    outside
        .diff(&["HEAD~1", "HEAD"])
        .assert()
        .code(2)
        .stderr(contains("neither").and(contains("not a git repository")));
}

#[test]
fn reports_of_one_side_alone_are_listed_and_a_missing_one_fails() {
    let folder = repository();
    folder
        .diff(&["v1", "HEAD~1", "--fail-on", "5%"])
        .assert()
        .code(0)
        .stdout(contains("B.json: the report is new"));
    folder.diff(&["HEAD~1", "v1"]).assert().code(0).stdout(contains("B.json: the report is missing"));
    let fails = folder.diff(&["HEAD~1", "v1", "--fail-on", "5%", "--format", "json"]).assert().code(1);
    let json = crate::fixture::json(&fails.get_output().stdout);
    assert_eq!(json["missing_reports"], serde_json::json!(["B.json"]));
    assert_eq!((&json["limits"], &json["breaches"][0]), (&"broken".into(), &"B.json is missing".into()));
    let text = folder.output(&["HEAD~1", "v1", "--fail-on", "5%", "--format", "md"]);
    assert!(text.contains("The limits are broken") && text.contains("- B.json is missing"), "{text}");
    // One that is named alone does not ask for the others.
    folder.diff(&["HEAD~1", "reports/A.json", "--fail-on", "90%"]).assert().code(0);
}

#[test]
fn other_json_is_left_out_and_damaged_results_are_an_error() {
    let folder = repository();
    folder.diff(&["HEAD~1", "HEAD~1"]).assert().code(0).stderr(contains("schema.json is left out"));
    folder.diff(&["reports", "reports"]).assert().code(0).stderr(contains("reports/schema.json is left out"));
    let whole = std::fs::read_to_string(folder.path("reports/A.json")).expect("it is there");
    for (text, part) in [
        (&whole[..whole.len() / 2], "reports/A.json: "),
        (&whole.replacen("\"format\": \"1.", "\"format\": \"7.", 1)[..], "use a newer bench"),
        ("{\"sections\": []}", "missing field `format`"),
        ("", "not a results file"),
    ] {
        folder.write_text("reports/A.json", text);
        folder.diff(&["HEAD", "reports"]).assert().code(2).stderr(contains(part));
        folder.commit("damaged");
        folder.diff(&["HEAD~1", "HEAD"]).assert().code(2).stderr(contains(part));
        folder.write_text("reports/A.json", &whole);
        folder.commit("mended");
    }
}

#[test]
fn a_repository_that_a_hook_names_is_not_the_one_asked() {
    let (folder, other) = (repository(), repository());
    let mut command = folder.diff(&["HEAD~1", "HEAD"]);
    command.env("GIT_DIR", other.path("nosuch")).assert().code(0);
}

#[test]
fn results_without_servers_or_sections_are_compared_too() {
    let folder = Folder::with(&[("a.json", &build::empty()), ("b.json", &build::empty())]);
    for format in ["text", "md", "json"] {
        folder.diff(&["a.json", "b.json", "--format", format, "--fail-on", "5%"]).assert().code(2);
    }
    let some = Folder::with(&[("a.json", &build::empty()), ("b.json", &run(1.0))]);
    some.diff(&["a.json", "b.json", "--fail-on", "5%"]).assert().code(2).stdout(contains("New (6)"));
    some.diff(&["b.json", "a.json", "--fail-on", "5%"]).assert().code(1);
}
