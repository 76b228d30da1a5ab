//! Owns a project that has this repository's workflows: a bare repository that everyone pushes to, three small scenarios
//! in it, a server that answers them, and a place for each job.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::turn::Turn;

/// The project's repository, its jobs' places and their artefacts; gone when dropped.
pub(crate) struct Project {
    root: tempfile::TempDir,
    places: Cell<usize>,
    _turn: Turn,
}

impl Project {
    /// A project whose first commit has the workflows and what they need, and no reports.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a scratch folder");
        let project = Self { root, places: Cell::new(0), _turn: Turn::take() };
        for folder in ["origin", "home", "bin", "hooks", "artefacts", "releases"] {
            fs::create_dir(project.path(folder)).expect("a folder");
        }
        project.git(&project.path("origin"), &["init", "--quiet", "--bare", "--initial-branch=main"]);
        // As the platform does, which hands out commits by their hash.
        project.git(&project.path("origin"), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        project.program("cargo", CARGO);
        project.program("gh", GH);
        fs::write(project.path("comments.json"), "[]").expect("a file");
        project.first_commit();
        project
    }

    fn first_commit(&self) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let tree = self.path("author");
        self.git(self.root.path(), &["clone", "--quiet", "origin", "author"]);
        for folder in ["scenarios", ".ci/steps", "docs"] {
            fs::create_dir_all(tree.join(folder)).expect("a folder");
        }
        let copied = Command::new("cp").arg("-R").arg(source.join(".github")).arg(&tree).status();
        assert!(copied.expect("cp can be started").success());
        for name in
            [".gitignore", ".ci/run", ".ci/release", "Cargo.toml", "CHANGELOG.md", "docs/results.schema.json"]
        {
            fs::copy(source.join(name), tree.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        fs::copy(source.join("tests/data/run/hello.py"), tree.join("scenarios/hello.py")).expect("a copy");
        // The servers of these scenarios take Python alone.
        fs::write(tree.join(".ci/steps/setup.sh"), "command -v python3\n").expect("a file");
        for (name, report) in [("http", "HTTP"), ("h2", "HTTP2"), ("h3", "HTTP3")] {
            fs::write(tree.join(format!("scenarios/{name}.toml")), scenario(report)).expect("a file");
        }
        self.commit("main", "the project", &[]);
    }

    /// Commits these files, and all others that changed, on top of a branch, which leaves `main` when it is new.
    pub(crate) fn commit(&self, branch: &str, message: &str, files: &[(&str, &str)]) {
        let (tree, origin) = (self.path("author"), self.path("origin"));
        let has = |name: &str| !self.git(&origin, &["branch", "--list", name]).is_empty();
        if has("main") {
            let start = format!("origin/{}", if has(branch) { branch } else { "main" });
            self.git(&tree, &["fetch", "--quiet", "origin"]);
            self.git(&tree, &["checkout", "--quiet", "-B", branch, &start]);
        }
        for (path, content) in files {
            fs::write(tree.join(path), content).expect("a file");
        }
        self.git(&tree, &["add", "--all"]);
        self.git(&tree, &["commit", "--quiet", "--message", message]);
        self.git(&tree, &["push", "--quiet", "origin", &format!("HEAD:{branch}")]);
    }

    /// The hash of a branch's newest commit.
    pub(crate) fn tip(&self, branch: &str) -> String {
        self.git(&self.path("origin"), &["rev-parse", branch]).trim().to_owned()
    }

    /// First lines of the messages on `main`, newest first.
    pub(crate) fn messages(&self) -> Vec<String> {
        let log = self.git(&self.path("origin"), &["log", "--format=%s", "main"]);
        log.lines().map(str::to_owned).collect()
    }

    /// A file of `main`; `None` where there is none.
    pub(crate) fn committed(&self, path: &str) -> Option<String> {
        let listed = self.git(&self.path("origin"), &["ls-tree", "--name-only", "main", path]);
        (!listed.is_empty()).then(|| self.git(&self.path("origin"), &["show", &format!("main:{path}")]))
    }

    /// Runs git as this project's people.
    pub(crate) fn git(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=author", "-c", "user.email=author@example.org"]);
        self.environment(&mut command, &[]);
        let output = command.args(arguments).stdin(Stdio::null()).output().expect("git can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Checks a commit out as `actions/checkout` does: that commit alone, or with a depth of 0 everything.
    pub(crate) fn checkout(&self, folder: &Path, commit: &str, depth: &str) {
        let origin = format!("file://{}", self.path("origin").display());
        self.git(folder, &["init", "--quiet", "--initial-branch=main"]);
        self.git(folder, &["remote", "add", "origin", &origin]);
        match depth {
            "0" => self.git(folder, &["fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*"]),
            "" => self.git(folder, &["fetch", "--quiet", "--depth=1", "origin", commit]),
            other => panic!("no depth {other}"),
        };
        self.git(folder, &["checkout", "--quiet", "--force", "-B", "main", commit]);
    }

    /// A folder that no other job has.
    pub(crate) fn place(&self) -> PathBuf {
        self.places.set(self.places.get() + 1);
        self.path(&format!("place-{}", self.places.get()))
    }

    /// Variables of all programs here: nothing of the user's settings, and stand-ins first on the `PATH`.
    pub(crate) fn environment(&self, command: &mut Command, path: &[String]) {
        let stands_in = self.path("bin").to_str().expect("ASCII").to_owned();
        let inherited = std::env::var("PATH").expect("a PATH");
        let newest_first = path.iter().rev().map(String::as_str);
        let path: Vec<&str> = newest_first.chain([&stands_in[..], &inherited]).collect();
        command.env("PATH", path.join(":")).env("HOME", self.path("home")).env("TZ", "UTC");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", self.path("gitconfig"));
        for name in ["GITHUB_BASE_REF", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        command.env("CI", "true").env("GITHUB_ACTIONS", "true").env("GITHUB_RUN_ID", "42");
        command.env("GITHUB_REPOSITORY", "someone/project").env("RUNNER_OS", "Linux");
        command.env("GITHUB_SERVER_URL", format!("file://{}", self.path("releases").display()));
        command
            .env("BENCH_UNDER_TEST", env!("CARGO_BIN_EXE_bench"))
            .env("COMMENTS", self.path("comments.json"));
        command.env("AUTHOR", self.path("author")).env("RELEASES", self.path("releases"));
    }

    /// Everything that jobs kept.
    pub(crate) fn artefacts(&self) -> PathBuf {
        self.path("artefacts")
    }

    /// Something of this project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A program that git runs in every repository from now on.
    pub(crate) fn hook(&self, name: &str, text: &str) {
        self.program(&format!("../hooks/{name}"), text);
        let hooks = self.path("hooks");
        fs::write(self.path("gitconfig"), format!("[core]\nhooksPath = {}\n", hooks.display()))
            .expect("a file");
    }

    /// A program on the `PATH`.
    fn program(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, text).expect("a program");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
    }
}

/// A scenario of one server and two cells whose report has this name. Windows end by a count, which no machine is too
/// slow for.
fn scenario(report: &str) -> String {
    format!(
        r#"format = 1
title = "{report}"
report = "{report}_RESULTS"
template = "http"
pin = "off"
[run]
rounds = 3
warmup = "10ms"
drain = "200ms"
[expect]
status = 200
body = "hi\n"
[[server]]
name = "my-server"
protocols = ["h1"]
command = ["python3", "{{dir}}/hello.py", "{{http_port}}", "{{https_port}}", "{{cert}}", "{{key}}"]
[[section]]
title = "Plain"
kind = "closed-loop"
protocol = "h1"
cells = ["1x1", "2x1"]
requests = 50
"#
    )
}

/// Stands in for the compiler: the program under test is built already.
const CARGO: &str = r#"#!/usr/bin/env bash
set -euo pipefail
[[ "$*" == "build --release --locked" ]]
mkdir -p target/release
ln -sf "$BENCH_UNDER_TEST" target/release/bench
"#;

/// Stands in for the platform's comments, which it keeps in a file, and for its releases, which it keeps in a folder.
const GH: &str = r#"#!/usr/bin/env bash
set -euo pipefail
[[ -n $GH_TOKEN ]]
if [[ "$1 $2" == "release create" ]]; then
    [[ "${*:4:4}" == "--verify-tag --title $3 --notes-file" ]]
    release=$RELEASES/$GITHUB_REPOSITORY/releases/download/$3
    mkdir -p "$release"
    cp "$8" "$release/notes.md"
    cp "${@:9}" "$release"
    exit
fi
[[ $1 == api ]]
shift
method=GET
while (($# > 0)); do
    case $1 in
    --paginate | --silent) shift ;;
    --method) method=$2; shift 2 ;;
    --jq) filter=$2; shift 2 ;;
    --field) body=${2#body=@}; shift 2 ;;
    --raw-field) method=POST query=${2#query=}; shift 2 ;;
    *) path=$1; shift ;;
    esac
done
case $method:$path in
GET:repos/someone/project/issues/7/comments)
    jq -r "$filter" "$COMMENTS"
    exit
    ;;
POST:graphql)
    [[ $query == "{viewer{login}}" ]]
    jq -nr '{data: {viewer: {login: "github-actions"}}}'" | $filter"
    exit
    ;;
POST:repos/someone/project/issues/7/comments)
    edit='. + [{id: (length + 1), user: {type: "Bot", login: "github-actions[bot]"}, body: $body}]'
    ;;
PATCH:repos/someone/project/issues/comments/*)
    edit="map(if .id == ${path##*/} then .body = \$body else . end)"
    ;;
*)
    echo "gh: no $method of $path" >&2
    exit 1
    ;;
esac
jq --rawfile body "$body" "$edit" "$COMMENTS" >"$COMMENTS.new"
mv "$COMMENTS.new" "$COMMENTS"
"#;
