//! Owns the carrying out of jobs: each step's `run` as it stands, in bash, with the variables and files that the platform
//! gives it, in a checkout of the project's repository. Of the actions that come from elsewhere it does what the
//! workflows rely on: checking out, keeping and fetching artefacts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::expression::{Names, filled, string, truth, value};
use crate::model::{Action, Step, Workflow, parse};
use crate::project::Project;

/// A job that has ended.
pub(crate) struct Outcome {
    /// True when no step failed.
    pub(crate) success: bool,
    /// What it said to the reader of its page.
    pub(crate) summary: String,
    /// What its steps printed.
    pub(crate) log: String,
}

/// What is the same for each job of a workflow's run.
pub(crate) struct Run<'a> {
    pub(crate) project: &'a Project,
    pub(crate) workflow: &'a Workflow,
    /// `github.*` and `inputs.*`.
    pub(crate) names: Names,
    /// The commit it is a run of.
    pub(crate) commit: String,
    /// Variables that the event brings, such as `GITHUB_BASE_REF`.
    pub(crate) variables: BTreeMap<String, String>,
}

impl<'a> Run<'a> {
    /// A run of the workflow by hand, with some of its inputs.
    pub(crate) fn by_hand(project: &'a Project, workflow: &'a Workflow, inputs: &[(&str, &str)]) -> Self {
        let mut run = Self::on(project, workflow, "main");
        let known = workflow.on["workflow_dispatch"]["inputs"].as_object().expect("inputs");
        for (name, input) in known {
            run.names.insert(format!("inputs.{name}"), input["default"].clone());
        }
        for (name, value) in inputs {
            assert!(known.contains_key(*name), "{name} is no input");
            run.names.insert(format!("inputs.{name}"), (*value).into());
        }
        run
    }

    /// A run for the tip of a branch.
    pub(crate) fn on(project: &'a Project, workflow: &'a Workflow, branch: &str) -> Self {
        let mut names = Names::new();
        names.insert("github.repository".into(), "someone/project".into());
        names.insert("github.token".into(), "a token".into());
        // There for pull requests alone.
        for name in ["number", "head.repo.full_name"] {
            names.insert(format!("github.event.pull_request.{name}"), Value::Null);
        }
        let variables = BTreeMap::from([("GITHUB_REF_NAME".to_owned(), branch.to_owned())]);
        Self { project, workflow, names, commit: project.tip(branch), variables }
    }

    /// The values of a job's matrix for its key.
    pub(crate) fn matrix(&self, job: &str, key: &str) -> Vec<String> {
        let matrix = &self.workflow.jobs[job].strategy["matrix"][key];
        let Value::Array(list) = value(matrix.as_str().expect("an expression"), &self.names) else {
            panic!("{matrix} is no list");
        };
        list.iter().map(string).collect()
    }

    /// True when a job starts although one that it needs has failed.
    pub(crate) fn starts_after_failure(&self, job: &str) -> bool {
        let condition = self.workflow.jobs[job].condition.as_deref().unwrap_or("success()");
        let names = Names::from([("success".into(), false.into())]);
        truth(&value(condition, &names))
    }

    /// Carries out a job; `names` are its own: `matrix.*`.
    pub(crate) fn job(&self, job: &str, names: &[(&str, &str)]) -> Outcome {
        let mut scope = self.names.clone();
        scope.extend(names.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        let place = self.project.place();
        let mut worker = Worker {
            run: self,
            workspace: place.join("workspace"),
            temp: place.join("temp"),
            path: Vec::new(),
            success: true,
            summary: String::new(),
            log: String::new(),
        };
        fs::create_dir_all(&worker.workspace).expect("a workspace");
        fs::create_dir_all(&worker.temp).expect("a folder for temporary files");
        let shell = self.workflow.defaults["run"]["shell"].as_str();
        worker.steps(&self.workflow.jobs[job].steps, &scope, None, shell);
        Outcome { success: worker.success, summary: worker.summary, log: worker.log }
    }
}

struct Worker<'a> {
    run: &'a Run<'a>,
    workspace: PathBuf,
    temp: PathBuf,
    /// What steps put in front of `PATH`, newest last.
    path: Vec<String>,
    success: bool,
    summary: String,
    log: String,
}

impl Worker<'_> {
    /// Carries steps out, those of a job or, with its folder, those of an action. Returns their outputs.
    fn steps(&mut self, steps: &[Step], names: &Names, action: Option<&Path>, shell: Option<&str>) -> Names {
        let mut names = names.clone();
        let ids = steps.iter().filter_map(|step| step.id.as_ref());
        let mut outputs: Names = ids.map(|id| (format!("steps.{id}"), Value::Null)).collect();
        names.extend(outputs.clone());
        for step in steps {
            names.insert("success".into(), self.success.into());
            let condition = step.condition.as_deref().unwrap_or("success()");
            // Without a word on it a condition is one of steps that went well.
            let implied =
                ["always()", "cancelled()", "success()"].iter().all(|call| !condition.contains(call));
            if (implied && !self.success) || !truth(&value(condition, &names)) {
                continue;
            }
            let (success, said) = self.step(step, &names, action, shell);
            self.success &= success;
            if let Some(id) = &step.id {
                let said =
                    said.iter().map(|(name, value)| (format!("steps.{id}.outputs.{name}"), value.clone()));
                outputs.extend(said);
            }
            names.extend(outputs.clone());
        }
        outputs
    }

    fn step(
        &mut self,
        step: &Step,
        names: &Names,
        action: Option<&Path>,
        shell: Option<&str>,
    ) -> (bool, Names) {
        let with =
            |key: &str| step.with.get(key).map(|value| filled(&string(value), names)).unwrap_or_default();
        if let Some(run) = &step.run {
            assert!(step.uses.is_none());
            let env = step.env.iter().map(|(name, value)| (name.clone(), filled(&string(value), names)));
            return self.shell(run, &env.collect(), action, step.shell.as_deref().or(shell));
        }
        let uses = step.uses.as_deref().expect("a step runs or uses something");
        let (name, _) = uses.split_once('@').unwrap_or((uses, ""));
        match name {
            "actions/checkout" => {
                self.run.project.checkout(&self.workspace, &self.run.commit, &with("fetch-depth"));
            }
            "actions/upload-artifact" => {
                self.upload(&with("name"), &with("path"), &with("if-no-files-found"));
            }
            "actions/download-artifact" => {
                assert_eq!(with("merge-multiple"), "true", "several artefacts go to one folder");
                self.download(&with("pattern"), &with("path"));
            }
            "Swatinem/rust-cache" => {}
            _ => {
                let given = step.with.keys().map(|key| (key.as_str(), with(key))).collect();
                let own = name.strip_prefix("./").map(|path| (self.workspace.join(path), ""));
                let (folder, repository) = own.unwrap_or_else(|| {
                    let path =
                        name.strip_prefix("OWNER/bench/").unwrap_or_else(|| panic!("no action {name}"));
                    (Path::new(env!("CARGO_MANIFEST_DIR")).join(path), "OWNER/bench")
                });
                return self.action(&folder, repository, &given, names);
            }
        }
        (true, Names::new())
    }

    /// Carries a composite action out, which comes from a repository or, without one, from the checkout.
    fn action(
        &mut self,
        folder: &Path,
        repository: &str,
        with: &BTreeMap<&str, String>,
        names: &Names,
    ) -> (bool, Names) {
        let text = fs::read_to_string(folder.join("action.yml")).expect("an action");
        let action: Action = parse(&text);
        assert_eq!(action.runs.using, "composite");
        let unknown = with.keys().find(|key| !action.inputs.contains_key(**key));
        assert_eq!(unknown, None, "no input of that name");
        let mut inner: Names = names
            .iter()
            .filter(|(name, _)| name.starts_with("github."))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        inner.insert("github.action_repository".into(), repository.into());
        for (key, input) in &action.inputs {
            let value = with.get(key.as_str()).cloned().unwrap_or_else(|| filled(&input.default, names));
            inner.insert(format!("inputs.{key}"), value.into());
        }
        let before = std::mem::replace(&mut self.success, true);
        let outputs = self.steps(&action.runs.steps, &inner, Some(folder), None);
        inner.extend(outputs);
        let success = std::mem::replace(&mut self.success, before);
        let said =
            action.outputs.iter().map(|(key, output)| (key.clone(), filled(&output.value, &inner).into()));
        (success, said.collect())
    }

    /// Runs the lines of a step.
    fn shell(
        &mut self,
        lines: &str,
        env: &BTreeMap<String, String>,
        action: Option<&Path>,
        shell: Option<&str>,
    ) -> (bool, Names) {
        let script = self.temp.join("step.sh");
        fs::write(&script, lines).expect("a script");
        let files = ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_ENV"];
        let file = |name: &str| self.temp.join(name);
        for name in files {
            fs::write(file(name), "").expect("a file for what a step says");
        }
        let options: &[&str] = match shell {
            Some("bash") => &["--noprofile", "--norc", "-eo", "pipefail"],
            None => &["-e"],
            Some(other) => panic!("no shell {other}"),
        };
        let mut command = Command::new("bash");
        command.args(options).arg(&script).current_dir(&self.workspace).stdin(Stdio::null());
        self.run.project.environment(&mut command, &self.path);
        command.envs(files.iter().map(|name| (name, file(name))));
        command.env("GITHUB_WORKSPACE", &self.workspace).env("RUNNER_TEMP", &self.temp);
        command.env("GITHUB_SHA", &self.run.commit).envs(&self.run.variables).envs(env);
        if let Some(folder) = action {
            command.env("GITHUB_ACTION_PATH", folder);
        }
        let output = command.output().expect("bash can be started");
        self.log += &format!("$ {lines}\n");
        self.log += &String::from_utf8_lossy(&output.stdout);
        self.log += &String::from_utf8_lossy(&output.stderr);

        let said = |name: &str| fs::read_to_string(file(name)).expect("what a step says");
        assert_eq!(said("GITHUB_ENV"), "", "no step needs it");
        self.summary += &said("GITHUB_STEP_SUMMARY");
        self.path.extend(said("GITHUB_PATH").lines().map(str::to_owned));
        let outputs = said("GITHUB_OUTPUT");
        let pair =
            |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), Value::from(value)));
        (output.status.success(), outputs.lines().filter_map(pair).collect())
    }

    /// Keeps a folder's content under a name.
    fn upload(&self, name: &str, path: &str, absent: &str) {
        let from = self.workspace.join(path);
        if !from.exists() {
            assert!(["", "ignore"].contains(&absent), "{path} is not there");
            return;
        }
        let to = self.run.project.artefacts().join(name);
        assert!(!to.exists(), "an artefact of the name {name} is there already");
        copy(&from, &to);
    }

    /// Puts the content of the artefacts whose name begins so into a folder.
    fn download(&self, pattern: &str, path: &str) {
        let prefix = pattern.strip_suffix('*').expect("a pattern that ends in a star");
        for entry in fs::read_dir(self.run.project.artefacts()).expect("the artefacts") {
            let entry = entry.expect("an artefact");
            if entry.file_name().to_str().expect("ASCII").starts_with(prefix) {
                copy(&entry.path(), &self.workspace.join(path));
            }
        }
    }
}

/// Copies what a folder holds, hidden files apart, into another.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (name, kind) = (entry.file_name(), entry.file_type().expect("its kind"));
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if kind.is_dir() {
            copy(&entry.path(), &to.join(name));
        } else {
            fs::copy(entry.path(), to.join(name)).expect("a copy");
        }
    }
}
