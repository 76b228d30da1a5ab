//! Owns the folder that tests of `bench run` stand in: a scenario, its server, its reports.

#![allow(dead_code, reason = "each test binary uses its own part")]

mod turn;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::results::{Results, store};

use self::turn::Turn;

/// A folder with a scenario in it, removed with everything below.
pub(crate) struct Bed {
    root: tempfile::TempDir,
    _turn: Turn,
}

impl Bed {
    /// Servers and sections of the scenario, whose windows are short.
    pub(crate) fn new(run: &str, servers_and_sections: &str) -> Self {
        let root = tempfile::tempdir().expect("a scratch folder");
        let scenarios = root.path().join("scenarios");
        std::fs::create_dir_all(&scenarios).expect("a scratch folder");
        std::fs::create_dir_all(root.path().join("servers")).expect("a scratch folder");
        std::fs::copy(data("hello.py"), scenarios.join("hello.py")).expect("a copy of the server");
        let text = format!(
            "format = 1\ntitle = \"Small\"\nreport = \"SMALL\"\ntemplate = \"http\"\npin = \"off\"\n\
             [run]\nwarmup = \"10ms\"\ndrain = \"200ms\"\n{run}\n[expect]\nstatus = 200\nbody = \"hi\\n\"\n\
             {servers_and_sections}"
        );
        std::fs::write(scenarios.join("small.toml"), text).expect("a scenario file");
        Self { root, _turn: Turn::take() }
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Its scenario file.
    pub(crate) fn scenario(&self) -> PathBuf {
        self.root.path().join("scenarios/small.toml")
    }

    /// The report's file of this kind.
    pub(crate) fn report(&self, suffix: &str) -> PathBuf {
        self.root.path().join(format!("reports/SMALL.{suffix}"))
    }

    /// The results file, read.
    pub(crate) fn results(&self) -> Results {
        store::load(&self.report("json")).expect("the results file can be read")
    }

    /// `bench run` on the scenario.
    pub(crate) fn bench(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.arg("run").arg(self.scenario()).stdin(Stdio::null());
        command
    }

    /// True while any process has this bed's folder on its command line.
    fn has_processes(&self) -> bool {
        let folder = self.root.path().to_str().expect("an ASCII path").as_bytes();
        let holds = |entry: std::io::Result<std::fs::DirEntry>| {
            let Ok(entry) = entry else { return false };
            // A process that ends meanwhile has no command line any more.
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            memchr::memmem::find(&line, folder).is_some()
        };
        std::fs::read_dir("/proc").expect("/proc is there").any(holds)
    }

    /// Waits until no server or generator of this bed is left, and panics when one stays.
    pub(crate) fn assert_nothing_is_left(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.has_processes() {
            assert!(Instant::now() < deadline, "a server or generator outlived the run");
            std::thread::yield_now();
        }
    }
}

/// A file of `tests/data/run`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/run").join(name)
}

/// A `[[server]]` that is `hello.py` with `options`.
pub(crate) fn hello(name: &str, protocols: &str, options: &str) -> String {
    format!(
        "[[server]]\nname = \"{name}\"\nlabel = \"{name}\"\nprotocols = [{protocols}]\n\
         command = [\"python3\", \"{{dir}}/hello.py\", \"{{http_port}}\", \"{{https_port}}\", \"{{cert}}\", \"{{key}}\"{options}]\n"
    )
}

/// A `[[section]]` with these keys.
pub(crate) fn section(title: &str, keys: &str) -> String {
    format!("[[section]]\ntitle = \"{title}\"\n{keys}\n")
}
