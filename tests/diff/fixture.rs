//! Owns the runs that are compared, and the folders and repositories they lie in.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bench::compare::{self, Comparison, Options};
use bench::report::diff::{Diff, Report};
use bench::results::*;

use crate::build::{self, cell, empty, section, server};
pub(crate) use build::summarised;

/// Ten rounds of three servers, whose rates are `factor` times what they would be. The noise of rounds depends on
/// the factor, as no two runs have the same.
pub(crate) fn run(factor: f64) -> Results {
    let mut results = empty();
    results.settings.rounds = 10;
    results.servers = [("rust", "Rust"), ("go", "Go"), ("nginx", "nginx")]
        .map(|(name, label)| server(name, label, "1"))
        .into();
    let noisy = |name: &str, c: u32, rate: f64| {
        let noise = if factor == 1.0 { NOISE } else { OTHER_NOISE };
        let rates: Vec<f64> = noise.iter().map(|noise| rate * factor * (1.0 + noise)).collect();
        // Latency is what keeps as many in flight as are offered.
        let mean = f64::from(c) * 0.98 * 1e6 / (rate * factor);
        build::with_rounds(cell(name, Protocol::H1, c, 1), &rates, mean)
    };
    let cells = [("rust", 9_000.0), ("go", 7_000.0), ("nginx", 8_000.0)]
        .into_iter()
        .flat_map(|(name, rate)| [(1, rate), (50, rate * 5.0)].map(|(c, rate)| noisy(name, c, rate)));
    results.sections = vec![section("Plaintext", SectionKind::ClosedLoop, cells.collect())];
    summarised(results)
}

/// Every cell with its first rounds alone.
pub(crate) fn rounds(mut results: Results, count: u32) -> Results {
    results.settings.rounds = count;
    let cells = results.sections.iter_mut().flat_map(|section| &mut section.cells);
    cells.for_each(|cell| cell.rounds.truncate(count as usize));
    results
}

/// Rates and latencies of each server's cells changed by a factor.
pub(crate) fn scaled(mut results: Results, factor: &dyn Fn(&str) -> f64) -> Results {
    for cell in results.sections.iter_mut().flat_map(|section| &mut section.cells) {
        let factor = factor(&cell.server);
        let measured = cell.rounds.iter().filter_map(|round| round.measurement.as_ref());
        let (rates, means): (Vec<f64>, Vec<f64>) = measured
            .filter_map(|m| Some((m.requests_per_second? * factor, m.latency_us.as_ref()?.mean / factor)))
            .unzip();
        *cell = build::with_rounds(cell.clone(), &rates, means[0]);
    }
    summarised(results)
}

/// Two runs as `bench diff` compares them.
pub(crate) fn diff(base: &Results, head: &Results, options: &Options) -> Diff {
    diff_of(compare::runs(("before.json", base), ("after.json", head), options))
}

pub(crate) fn diff_of(comparison: Comparison) -> Diff {
    Diff {
        base: "before.json".into(),
        head: "after.json".into(),
        reports: vec![Report { file: "HTTP_RESULTS.json".into(), comparison }],
        missing: vec![],
        new: vec![],
        limits: None,
        forced: false,
    }
}

/// A folder with results files, which may be a repository.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn with(files: &[(&str, &Results)]) -> Self {
        let folder = Self::new();
        files.iter().for_each(|(name, results)| folder.write(name, results));
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, results: &Results) {
        self.write_text(name, &store::to_json(results).expect("results are sound"));
    }

    pub(crate) fn write_text(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        std::fs::write(path, text).expect("it can be written");
    }

    /// Commits everything.
    pub(crate) fn commit(&self, subject: &str) {
        if !self.path(".git").exists() {
            self.git(&["init", "-q", "-b", "main"]);
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", subject]);
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        isolate(&mut command);
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
        let output = command.arg("-C").arg(self.0.path()).args(identity).args(args).output().expect("git");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// `bench COMMAND ARGS...` in a folder below.
    pub(crate) fn bench(&self, below: &str, args: &[&str]) -> assert_cmd::Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        isolate(&mut command);
        command.current_dir(self.path(below)).args(args);
        // Nothing above a temporary folder is its repository.
        command.env("GIT_CEILING_DIRECTORIES", self.0.path().parent().unwrap_or(Path::new("/")));
        assert_cmd::Command::from_std(command)
    }

    pub(crate) fn diff(&self, args: &[&str]) -> assert_cmd::Command {
        self.bench("", &[&["diff"], args].concat())
    }

    /// What `bench diff` prints, however it ends.
    pub(crate) fn output(&self, args: &[&str]) -> String {
        let Output { stdout, .. } = self.diff(args).output().expect("bench starts");
        String::from_utf8(stdout).expect("UTF-8")
    }

    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        json(self.output(&[args, &["--format", "json"]].concat()).as_bytes())
    }
}

/// Neither the user's settings nor a repository around the test change what git does.
fn isolate(command: &mut Command) {
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
}

pub(crate) fn json(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).expect("JSON")
}

/// Every change of a document.
pub(crate) fn changes(document: &serde_json::Value) -> Vec<&serde_json::Value> {
    let reports = document["reports"].as_array().expect("reports").iter();
    let cells = reports.flat_map(|report| report["cells"].as_array().expect("cells"));
    cells.flat_map(|cell| cell["changes"].as_array().expect("changes")).collect()
}

const NOISE: [f64; 10] = [0.0, 0.004, -0.003, 0.002, -0.005, 0.001, 0.003, -0.002, 0.005, -0.001];
const OTHER_NOISE: [f64; 10] = [0.001, -0.004, 0.003, -0.001, 0.005, 0.0, -0.003, 0.002, -0.002, 0.004];
