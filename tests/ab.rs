//! `bench ab` as a whole: two versions of a small server, from a repository the test makes, from folders
//! and by commands. Whether a change is found is a matter of `compare`; here it is whether the right
//! things were measured, in the right order, and nothing was left behind.

#[path = "common/bed.rs"]
mod bed;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use bed::{Bed, data, hello, section};
use bench::results::{CellStatus, Results, ServerOrder, store};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A repository with a scenario, and in it two commits of the server `one`: its version is 1, then 2.
struct Repository {
    bed: Bed,
}

impl Repository {
    /// `build` is how version 1 is built; version 2 needs no build.
    fn new(build: &str) -> Self {
        let plain = section("Plain", "kind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\", \"2x1\"]");
        let servers = ["[[server]]\nuse = \"one\"\n".to_owned(), hello("two", "\"h1\"", "")].concat();
        let bed = Bed::new("duration = \"50ms\"", &[servers, plain].concat());
        let repository = Self { bed };
        repository.git(&["init", "--quiet"]);
        std::fs::write(repository.root().join(".gitignore"), "/tmp\n/reports\n").expect("a file");
        std::fs::create_dir(repository.temporary()).expect("a folder");
        write_server(&repository.root().join("servers/one"), "1", build);
        repository.commit();
        write_server(&repository.root().join("servers/one"), "2", "");
        repository.commit();
        repository
    }

    fn root(&self) -> &Path {
        self.bed.root()
    }

    /// Where the program under test has its temporary files.
    fn temporary(&self) -> PathBuf {
        self.root().join("tmp")
    }

    /// The folders that worktrees stand in.
    fn worktrees(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.temporary()).expect("the folder is there");
        let paths = folders.map(|folder| folder.expect("a readable folder").path());
        paths.filter(|path| path.to_string_lossy().contains("/bench-worktree.")).collect()
    }

    fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.root()).args(["-c", "user.name=Test", "-c", "user.email=test@example.org"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = git.args(args).output().expect("git can be started");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "A version"]);
    }

    /// `bench ab` on a scenario.
    fn bench_on(&self, scenario: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.arg("ab").arg(scenario).args(["--server", "one"]).args(args);
        command.current_dir(self.root()).stdin(Stdio::null()).env("TMPDIR", self.temporary());
        command
    }

    /// `bench ab` on its scenario.
    fn bench(&self, args: &[&str]) -> Command {
        self.bench_on(&self.bed.scenario(), args)
    }

    /// `bench ab` to its end, for two rounds: too few for any verdict, and so for chance.
    fn run(&self, args: &[&str]) -> Output {
        let args = [args, &["--rounds", "2"]].concat();
        let output = self.bench(&args).output().expect("bench can be started");
        self.assert_nothing_is_left();
        output
    }

    fn results(&self) -> Results {
        store::load(&self.root().join("reports/AB_RESULTS.json")).expect("the results file can be read")
    }

    /// Waits until no process and no worktree is left, and panics when one stays.
    fn assert_nothing_is_left(&self) {
        self.bed.assert_nothing_is_left();
        let deadline = Instant::now() + Duration::from_secs(30);
        let worktrees = || self.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count();
        while !self.worktrees().is_empty() || worktrees() > 1 {
            assert!(Instant::now() < deadline, "a worktree outlived the run");
            std::thread::yield_now();
        }
    }
}

/// A folder of the server `one`, which says its version.
fn write_server(folder: &Path, version: &str, build: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::copy(data("hello.py"), folder.join("hello.py")).expect("a copy of the server");
    std::fs::write(folder.join("VERSION"), version).expect("a file");
    let text = format!(
        "name = \"one\"\nlabel = \"One\"\nprotocols = [\"h1\"]\nversion = [\"cat\", \"{{dir}}/VERSION\"]\n{build}\n\
         command = [\"python3\", \"{{dir}}/hello.py\", \"{{http_port}}\", \"{{https_port}}\", \"{{cert}}\", \"{{key}}\"]\n"
    );
    std::fs::write(folder.join("server.toml"), text).expect("a file");
}

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn names(results: &Results) -> Vec<&str> {
    results.servers.iter().map(|server| server.name.as_str()).collect()
}

fn versions(results: &Results) -> Vec<Option<&str>> {
    results.servers.iter().map(|server| server.version.as_deref()).collect()
}

#[test]
fn a_revision_is_measured_against_the_working_tree_there_and_back() {
    let repository = Repository::new("");
    write_server(&repository.root().join("servers/one"), "3, not committed", "");
    // Two rounds cannot show a change, so that no limit can be said to hold.
    let output = repository.run(&["--base", "HEAD~1", "--format", "json", "--fail-on", "5%"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));

    let results = repository.results();
    assert!(results.complete);
    assert_eq!(names(&results), ["base", "head", "control"]);
    assert_eq!(versions(&results), [Some("1"), Some("3, not committed"), Some("1")]);
    let base = repository.git(&["rev-parse", "HEAD~1"]);
    let revisions: Vec<_> = results.servers.iter().map(|server| server.revision.as_deref()).collect();
    assert_eq!(revisions, [Some(base.as_str()), None, Some(base.as_str())]);
    assert_eq!(results.settings.order, ServerOrder::Abba);
    let order = [
        "1 / 1 / base",
        "1 / 1 / head",
        "1 / 1 / control",
        "2 / 1 / control",
        "2 / 1 / head",
        "2 / 1 / base",
    ];
    assert_eq!(results.sessions[0].order, order);
    let rounds = results.sections[0].cells.iter().flat_map(|cell| &cell.rounds);
    assert_eq!(rounds.filter(|round| round.status == CellStatus::Measured).count(), 3 * 2 * 2);
    assert!(repository.root().join("reports/AB_RESULTS.md").exists());

    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let cells = document["reports"][0]["cells"].as_array().expect("cells");
    let compared: Vec<_> =
        cells.iter().map(|cell| (cell["server"].as_str(), cell["cell"].as_str())).collect();
    assert_eq!(compared, [(Some("one"), Some("h1 1x1")), (Some("one"), Some("h1 2x1"))]);
    let report = &document["reports"][0];
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(0));
    // Two rounds call no change, also none of the control.
    let every = ["rate", "p50", "p99", "cpu"];
    let control = serde_json::json!({ "name": "control (base again)", "moved": [], "unjudged": every });
    assert_eq!(report["control"], control);
    assert_eq!((&report["base"]["name"], &report["base"]["commit"]), (&"base (HEAD~1)".into(), &base.into()));
    assert_eq!(report["head"]["name"], "head (the working tree)");
}

#[test]
fn two_revisions_beside_another_server_that_is_measured_twice() {
    let repository = Repository::new("");
    write_server(&repository.root().join("servers/one"), "3, not committed", "");
    let args = ["--base", "HEAD~1", "--head", "HEAD", "--control", "two", "--cell", "2x1"];
    let output = repository.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let results = repository.results();
    assert_eq!(names(&results), ["base", "head", "control", "control-again"]);
    assert_eq!(versions(&results), [Some("1"), Some("2"), None, None]);
    assert_eq!(results.sections[0].cells.len(), 4);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("base (HEAD~1)") && shown.contains("head (HEAD)"), "{shown}");
    assert!(shown.contains("Unchanged control (two): nothing could be said of it in req/s"), "{shown}");
}

#[test]
fn two_folders_and_two_commands() {
    let repository = Repository::new("");
    for version in ["old", "new"] {
        write_server(&repository.root().join(version), version, "build = [\"touch\", \"{dir}/built\"]");
    }
    let output = repository.run(&["--base-dir", "old", "--head-dir", "new"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(versions(&repository.results()), [Some("old"), Some("new"), Some("old")]);
    assert!(repository.root().join("old/built").exists() && repository.root().join("new/built").exists());
    assert!(!repository.root().join("servers/one/built").exists(), "each is built where it stands");

    let script = |folder: &str| {
        let program = repository.root().join(folder).join("hello.sh");
        std::fs::write(&program, "#!/bin/sh\nexec python3 \"$(dirname \"$0\")/hello.py\" \"$@\"\n")
            .expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("its owner may");
        format!("./{folder}/hello.sh {{http_port}} '{{https_port}}' {{cert}} {{key}}")
    };
    let output = repository.run(&["--base-command", &script("old"), "--head-command", &script("new")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let results = repository.results();
    assert_eq!(versions(&results), [None; 3], "of another command no version is known");
    for (server, folder) in results.servers.iter().zip(["old", "new", "old"]) {
        let program = repository.root().join(format!("{folder}/hello.sh"));
        assert_eq!(Path::new(&server.command[0]).canonicalize().ok(), program.canonicalize().ok());
        assert_eq!(server.command[1..], ["{http_port}", "{https_port}", "{cert}", "{key}"]);
    }
}

#[test]
fn a_version_that_does_not_build_ends_it_with_the_log() {
    let build = "build = [\"sh\", \"-c\", \"echo no such luck; exit 3\"]";
    let repository = Repository::new(build);
    let output = repository.run(&["--base", "HEAD~1"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("base (HEAD~1): its build exited with status 3"), "{stderr}");
    assert!(stderr.contains("\n  no such luck"), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", text(&output));
}

#[test]
fn a_base_that_does_not_answer_is_no_base() {
    let repository = Repository::new("");
    let output = repository.run(&["--base-command", "false", "--head-command", "false"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("the base was not measured, so there is nothing to compare with: "));
}

/// `bench ab` that builds its base for as long as it is let.
fn building() -> (Repository, Child) {
    let repository = Repository::new("build = [\"sh\", \"-c\", \"touch started; exec sleep 3600\"]");
    let mut command = repository.bench(&["--base", "HEAD~1"]);
    let child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("bench can be started");
    let deadline = Instant::now() + Duration::from_secs(60);
    let started =
        || repository.worktrees().iter().any(|folder| folder.join("tree/servers/one/started").exists());
    while !started() {
        assert!(Instant::now() < deadline, "the build did not start");
        std::thread::yield_now();
    }
    (repository, child)
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("process ids are small");
    kill(Pid::from_raw(pid), signal).expect("it was not waited for yet");
}

#[test]
fn nothing_is_left_of_a_run_that_is_ended_while_it_builds() {
    for how in [Signal::SIGINT, Signal::SIGKILL] {
        let (repository, mut child) = building();
        signal(&child, how);
        assert!(!child.wait().expect("it ends").success(), "{how}");
        repository.assert_nothing_is_left();
    }
}

#[test]
fn ctrl_c_while_it_measures_saves_the_rounds_and_compares_nothing() {
    let repository = Repository::new("");
    let mut command = repository.bench(&["--base", "HEAD~1", "--rounds", "1000", "--cell", "1x1"]);
    let mut child =
        command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bench can be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("[1/3000]") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).expect("text"), 0, "it ended before its first cell");
    }
    signal(&child, Signal::SIGINT);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{rest}");
    repository.assert_nothing_is_left();
    assert!(rest.contains("stopped: interrupted by SIGINT; nothing is compared"), "{rest}");
    assert!(output.stdout.is_empty());
    assert!(!repository.results().complete);
}

#[test]
fn mistakes_end_it_before_anything_is_built() {
    let repository = Repository::new("");
    let scenario = repository.bed.scenario();
    let with = |name: &str, text: &str| {
        let path = scenario.with_file_name(name);
        let own = std::fs::read_to_string(&scenario).expect("the scenario");
        std::fs::write(&path, own.replace("[[server]]\nuse = \"one\"\n", text)).expect("a file");
        path
    };
    let absolute = "[[server]]\nuse = \"one\"\ncommand = [\"/bin/true\"]\n";
    let outside = "[[server]]\nname = \"one\"\ndir = \"/\"\ncommand = [\"true\"]\nprotocols = [\"h1\"]\n";
    let several =
        "[[server]]\nuse = \"one\"\n[[server.variant]]\nlabel = \"a\"\n[[server.variant]]\nlabel = \"b\"\n";
    for (scenario, args, message) in [
        (scenario.clone(), &[][..], "required arguments were not provided"),
        (scenario.clone(), &["--base-dir", "servers/one"], "--head-dir <DIR>"),
        (scenario.clone(), &["--base", "HEAD", "--base-command", "x"], "cannot be used with"),
        (
            scenario.clone(),
            &["--base", "HEAD", "--server", "two"],
            "--server: name the one server whose versions",
        ),
        (scenario.clone(), &["--base", "no-such"], "--base no-such: `no-such` is no revision of "),
        (
            scenario.clone(),
            &["--base", "HEAD", "--head", "no-such"],
            "--head no-such: `no-such` is no revision of ",
        ),
        (
            scenario.clone(),
            &["--base", "HEAD", "--control", "no-such"],
            "--control no-such: not in the scenario",
        ),
        (scenario.clone(), &["--base", "HEAD", "--fail-on", "5"], "--fail-on: "),
        (
            scenario.clone(),
            &["--base-dir", "gone", "--head-dir", "servers/one"],
            "--base-dir gone: No such file",
        ),
        (
            scenario.clone(),
            &["--base-dir", "servers/one/VERSION", "--head-dir", "servers/one"],
            "--base-dir servers/one/VERSION: it is no folder",
        ),
        (
            scenario.clone(),
            &["--base-command", "a 'b", "--head-command", "c"],
            "--base-command:1:1: a quote that is not closed",
        ),
        (
            scenario.clone(),
            &["--base-command", "a", "--head-command", "b {prt}"],
            "--head-command:1:1: unknown placeholder {prt}; did you mean `port`?",
        ),
        (
            with("absolute.toml", absolute),
            &["--base", "HEAD"],
            "--base HEAD: the server's command is /bin/true, whatever the revision; name it by {dir}",
        ),
        (
            with("outside.toml", outside),
            &["--base", "HEAD"],
            "one stands in /, which is in no git repository",
        ),
        (
            with("several.toml", several),
            &["--base", "HEAD"],
            "--server: there are several of this name; take one of one-a, one-b",
        ),
    ] {
        let output = repository.bench_on(&scenario, args).output().expect("bench can be started");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(message), "{args:?}: {}", text(&output));
    }
    assert!(!repository.root().join("reports").exists());
    repository.assert_nothing_is_left();

    // Committed only now, so that the commits before do not have it.
    write_server(&repository.root().join("servers/new"), "1", "");
    let new = with("new.toml", "[[server]]\nuse = \"new\"\nname = \"one\"\n");
    let output = repository.bench_on(&new, &["--base", "HEAD"]).output().expect("bench can be started");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let told = "--base HEAD: there was no folder servers/new then; name a revision that has it";
    assert!(text(&output).contains(told), "{}", text(&output));
}
