//! Owns the environment table of a report: host, kernel, CPU, memory, commit, CI run, load.

use std::path::Path;
use std::process::Command;

use nix::sys::utsname::uname;

use super::doctor::doctor;
use super::machine::usable_cpus;
use super::read::text;
use super::stat::{parse_cpu_list, parse_load, parse_meminfo};
use crate::results::Environment;

/// The environment table of a report. `scenario_dir` is where its commit is looked up.
///
/// What cannot be read is `None`, or `unknown` where a text is due. Starts `git` twice and touches
/// nothing; the load is read before anything else is done, so that it is not this function's own.
pub fn environment(scenario_dir: &Path, server_cpus: &[u32], generator_cpus: &[u32]) -> Environment {
    let load_at_start = text("/proc/loadavg").ok().as_deref().and_then(parse_load);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let online = text("/sys/devices/system/cpu/online").ok().and_then(|list| parse_cpu_list(&list));
    let logical_cpus = online.unwrap_or_else(usable_cpus).len();
    Environment {
        host: github_host(&variable).unwrap_or_else(|| or_unknown(text("/proc/sys/kernel/hostname").ok())),
        kernel: kernel(),
        cpu: or_unknown(text("/proc/cpuinfo").ok().as_deref().and_then(parse_cpu_model)),
        logical_cpus: u32::try_from(logical_cpus).unwrap_or(u32::MAX),
        governor: governor(server_cpus, generator_cpus),
        memory_kib: text("/proc/meminfo").ok().and_then(|info| parse_meminfo(&info, "MemTotal")).unwrap_or(0),
        commit: git_commit(scenario_dir).or_else(|| variable("GITHUB_SHA")),
        ci_run: github_run(&variable),
        load_at_start,
        findings: doctor(server_cpus, generator_cpus, &[]),
    }
}

/// The frequency governors of the CPUs in use, each once; of all CPUs when nothing is pinned.
fn governor(server_cpus: &[u32], generator_cpus: &[u32]) -> Option<String> {
    let mut cpus: Vec<u32> = [server_cpus, generator_cpus].concat();
    if cpus.is_empty() {
        cpus = usable_cpus();
    }
    let read = |cpu| text(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")).ok();
    let mut governors: Vec<String> =
        cpus.into_iter().filter_map(read).map(|governor| governor.trim().to_owned()).collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

fn or_unknown(text: Option<String>) -> String {
    let text = text.unwrap_or_default().trim().to_owned();
    if text.is_empty() { "unknown".into() } else { text }
}

/// System, release and machine, e.g. `Linux 6.8.0 x86_64`.
fn kernel() -> String {
    let Ok(name) = uname() else { return or_unknown(None) };
    [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy()).join(" ")
}

/// The model of the first CPU in `/proc/cpuinfo`. Arm names no model, only who designed the core and
/// its part number, and these are given instead.
fn parse_cpu_model(text: &str) -> Option<String> {
    let value = |key: &str| {
        let (_, value) =
            text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key)?;
        Some(value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty())
    };
    value("model name").or_else(|| {
        Some(format!("CPU implementer {}, part {}", value("CPU implementer")?, value("CPU part")?))
    })
}

/// The host's name is random on GitHub's runners and says nothing; image and architecture do.
fn github_host(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    variable("GITHUB_ACTIONS").filter(|value| value == "true")?;
    let image = variable("ImageOS").or_else(|| variable("RUNNER_OS"));
    let mut host = format!("GitHub Actions {} runner", image.as_deref().unwrap_or("self-hosted"));
    let details: Vec<String> =
        [variable("ImageVersion").map(|v| format!("image {v}")), variable("RUNNER_ARCH")]
            .into_iter()
            .flatten()
            .collect();
    if !details.is_empty() {
        host += &format!(" ({})", details.join(", "));
    }
    Some(host)
}

/// Address of the CI run, from the variables GitHub Actions sets.
fn github_run(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let server = variable("GITHUB_SERVER_URL")?;
    let (repository, run) = (variable("GITHUB_REPOSITORY")?, variable("GITHUB_RUN_ID")?);
    Some(format!("{server}/{repository}/actions/runs/{run}"))
}

/// The commit checked out in `folder`, with `-dirty` when a tracked file differs from it. Files below
/// `reports/` at the top do not count, for it is the run itself that changes them.
fn git_commit(folder: &Path) -> Option<String> {
    let commit = git(folder, &["rev-parse", "--verify", "HEAD"])?;
    let changes =
        git(folder, &["status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)reports"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// Output of a git command in `folder`; `None` without git, outside of a repository, or when git
/// does not trust the folder.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Inside of a hook git is told of another repository through these.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    // Without this lock status(1) does not refresh the index: looking must not write.
    let output = command.arg("--no-optional-locks").arg("-C").arg(folder).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn a_github_runner_is_described_by_its_image() {
        let hosted = variables(&[
            ("GITHUB_ACTIONS", "true"),
            ("ImageOS", "ubuntu24"),
            ("ImageVersion", "20260105.1"),
            ("RUNNER_ARCH", "X64"),
        ]);
        assert_eq!(
            github_host(&hosted).as_deref(),
            Some("GitHub Actions ubuntu24 runner (image 20260105.1, X64)")
        );
        let own = variables(&[("GITHUB_ACTIONS", "true")]);
        assert_eq!(github_host(&own).as_deref(), Some("GitHub Actions self-hosted runner"));
        assert_eq!(github_host(&variables(&[("ImageOS", "ubuntu24")])), None);
    }

    #[test]
    fn the_ci_run_has_an_address_only_when_all_of_it_is_known() {
        let all = &[
            ("GITHUB_SERVER_URL", "https://github.example"),
            ("GITHUB_REPOSITORY", "owner/name"),
            ("GITHUB_RUN_ID", "42"),
        ];
        assert_eq!(
            github_run(&variables(all)).as_deref(),
            Some("https://github.example/owner/name/actions/runs/42")
        );
        assert_eq!(github_run(&variables(&[("GITHUB_RUN_ID", "42")])), None);
    }

    #[test]
    fn cpu_models_of_intel_and_arm() {
        let intel = "processor\t: 0\nmodel\t\t: 207\nmodel name\t: Intel(R)  Xeon(R) Processor\n";
        assert_eq!(parse_cpu_model(intel).as_deref(), Some("Intel(R) Xeon(R) Processor"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n";
        assert_eq!(parse_cpu_model(arm).as_deref(), Some("CPU implementer 0x41, part 0xd40"));
        assert_eq!(parse_cpu_model("processor\t: 0\nmodel name\t:\n"), None);
    }

    /// Runs git with an identity of its own, whatever is configured on this machine.
    fn run_git(folder: &Path, args: &[&str]) {
        let identity =
            ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"];
        let output = git(folder, &[&identity[..], args].concat());
        assert!(output.is_some(), "git {args:?} works");
    }

    #[test]
    fn the_commit_is_dirty_when_a_tracked_file_differs_but_not_for_reports() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (top, inner) = (folder.path(), folder.path().join("scenarios"));
        assert_eq!(git_commit(top), None, "no repository yet");
        for file in ["scenarios/a.toml", "reports/R.md"] {
            let path = top.join(file);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("writable");
            std::fs::write(path, "one").expect("writable");
        }
        run_git(top, &["init", "--quiet"]);
        assert_eq!(git_commit(top), None, "no commit yet");
        run_git(top, &["add", "."]);
        run_git(top, &["commit", "--quiet", "--no-verify", "-m", "first"]);
        let clean = git_commit(&inner).expect("there is a commit");
        assert_eq!(clean.len(), 40);
        std::fs::write(top.join("reports/R.md"), "two").expect("writable");
        assert_eq!(git_commit(&inner), Some(clean.clone()));
        std::fs::write(top.join("scenarios/a.toml"), "two").expect("writable");
        assert_eq!(git_commit(&inner), Some(format!("{clean}-dirty")));
    }
}
