//! Owns the two versions that `bench ab` compares: checked out, found in folders, or started by other
//! commands.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Args, BASE, HEAD, named};
use crate::git::{Repository, Worktree};
use crate::scenario::{self, Machine, Overrides, ServerSpec};

/// Both versions, with the worktrees they stand in.
pub(super) struct Versions {
    pub(super) base: ServerSpec,
    pub(super) head: ServerSpec,
    /// They go when this does.
    _worktrees: Vec<Worktree>,
}

/// A folder that stands in the place of another one.
struct InPlace<'a> {
    of: &'a Path,
    stands: &'a Path,
}

impl Versions {
    /// The versions that the command line names of the server `tested`.
    ///
    /// # Errors
    /// A revision, folder or command that there is not, or that cannot be this server's.
    pub(super) fn of(args: &Args, tested: &ServerSpec, machine: &Machine) -> Result<Self, String> {
        let found = Found { args, tested, machine };
        match (&args.base, &args.base_dir, &args.head_dir, &args.base_command, &args.head_command) {
            (Some(base), ..) => found.revisions(base, args.head.as_deref()),
            (_, Some(base), Some(head), ..) => {
                let base = found.folder("--base-dir", BASE, base)?;
                let head = found.folder("--head-dir", HEAD, head)?;
                Ok(Self { base, head, _worktrees: Vec::new() })
            }
            (.., Some(base), Some(head)) => {
                let base = found.command("--base-command", BASE, base)?;
                let head = found.command("--head-command", HEAD, head)?;
                Ok(Self { base, head, _worktrees: Vec::new() })
            }
            _ => Err("nothing to compare: name --base, or both of --base-dir and --head-dir, or both of \
                      --base-command and --head-command"
                .into()),
        }
    }
}

/// What versions are found from.
struct Found<'a> {
    args: &'a Args,
    tested: &'a ServerSpec,
    machine: &'a Machine,
}

impl Found<'_> {
    fn revisions(&self, base: &str, head: Option<&str>) -> Result<Versions, String> {
        let dir = Path::new(&self.tested.dir);
        let dir = dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?;
        let repository = Repository::containing(&dir).map_err(|error| {
            format!(
                "{} stands in {}, which is in no git repository ({error}); compare two folders of it with \
                 --base-dir and --head-dir, or two commands with --base-command and --head-command",
                self.tested.name,
                dir.display()
            )
        })?;
        let (base, base_tree) = self.revision("--base", BASE, &repository, &dir, base)?;
        let Some(head) = head else {
            let head = version(self.tested.clone(), HEAD, "the working tree");
            return Ok(Versions { base, head, _worktrees: vec![base_tree] });
        };
        let (head, head_tree) = self.revision("--head", HEAD, &repository, &dir, head)?;
        Ok(Versions { base, head, _worktrees: vec![base_tree, head_tree] })
    }

    /// The server as it was at a revision, in a worktree. The scenario is the one given: what is asked of
    /// both versions is the same.
    fn revision(
        &self,
        option: &str,
        name: &str,
        repository: &Repository,
        dir: &Path,
        revision: &str,
    ) -> Result<(ServerSpec, Worktree), String> {
        let told = |error: crate::git::GitError| format!("{option} {revision}: {error}");
        let commit = repository.resolve(revision).map_err(told)?;
        let worktree = repository.worktree(&commit).map_err(told)?;
        let place = InPlace { of: repository.root(), stands: worktree.path() };
        let moved = place.moved(dir).filter(|moved| moved.is_dir()).ok_or_else(|| {
            format!(
                "{option} {revision}: there was no folder {} then; name a revision that has it",
                dir.strip_prefix(repository.root()).unwrap_or(dir).display()
            )
        })?;
        let spec = self.described(option, revision, &place, &moved)?;
        // What is absolute is the same program at every revision.
        if let Some(program) = spec.command.first().filter(|program| program.starts_with('/')) {
            return Err(format!(
                "{option} {revision}: the server's command is {program}, whatever the revision; name it by \
                 {{dir}}, or compare two commands with --base-command and --head-command"
            ));
        }
        let spec = ServerSpec { revision: Some(commit), ..spec };
        Ok((version(spec, name, revision), worktree))
    }

    /// The server with another folder in the place of its own.
    fn folder(&self, option: &str, name: &str, folder: &Path) -> Result<ServerSpec, String> {
        let shown = folder.display();
        let stands = folder.canonicalize().map_err(|error| format!("{option} {shown}: {error}"))?;
        if !stands.is_dir() {
            return Err(format!("{option} {shown}: it is no folder; name the one the server stands in"));
        }
        let of = PathBuf::from(&self.tested.dir);
        let of = of.canonicalize().unwrap_or(of);
        let spec =
            self.described(option, &shown.to_string(), &InPlace { of: &of, stands: &stands }, &stands)?;
        Ok(version(spec, name, &shown.to_string()))
    }

    /// The server as the scenario describes it when one folder stands in the place of another: its
    /// server.toml, and what it renders, are those found there. It stands in `dir` itself.
    fn described(
        &self,
        option: &str,
        value: &str,
        place: &InPlace<'_>,
        dir: &Path,
    ) -> Result<ServerSpec, String> {
        let told = |error: String| format!("{option} {value}: {error}");
        let scenario = &self.args.scenario;
        let scenario =
            scenario.canonicalize().map_err(|error| told(format!("{}: {error}", scenario.display())))?;
        let read = |path: &Path| match place.moved(path).filter(|_| path != scenario) {
            Some(moved) => match scenario::read_from_disk(&moved) {
                // Other servers of the scenario may not have been there.
                Err(error) if error.kind() == ErrorKind::NotFound => scenario::read_from_disk(path),
                read => read,
            },
            None => scenario::read_from_disk(path),
        };
        let overrides = Overrides { servers: vec![self.tested.name.clone()], ..Overrides::default() };
        let checked = scenario::check(&scenario, &read, self.machine, &overrides)
            .map_err(|error| told(error.to_string()))?;
        let spec = checked.scenario.servers.into_iter().find(|spec| spec.name == self.tested.name);
        let spec = spec.ok_or_else(|| told(format!("there is no server {}", self.tested.name)))?;
        Ok(ServerSpec { dir: dir.to_string_lossy().into_owned(), ..spec })
    }

    /// The server started by another command. A program named by a relative path is one of the working
    /// directory, where the command was typed.
    fn command(&self, option: &str, name: &str, command: &str) -> Result<ServerSpec, String> {
        let mut spec =
            scenario::started_by(self.tested, option, command).map_err(|error| error.to_string())?;
        if let Some(program) = spec.command.first_mut()
            && program.contains('/')
            && !program.starts_with('{')
        {
            let absolute: io::Result<PathBuf> = std::path::absolute(&program);
            let absolute = absolute.map_err(|error| format!("{option} {program}: {error}"))?;
            *program = absolute.to_string_lossy().into_owned();
        }
        Ok(version(spec, name, command))
    }
}

/// A version as tables name it: with what the command line says it is, where that is short.
fn version(spec: ServerSpec, name: &str, told: &str) -> ServerSpec {
    let short = told.chars().count() <= LABEL_LIMIT && !told.contains(char::is_control);
    let label = if short { format!("{name} ({told})") } else { name.to_owned() };
    named(spec, name, &label)
}

impl InPlace<'_> {
    /// Where a path of the one folder is in the other; `None` for one that is not in it.
    fn moved(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(self.of).ok().map(|rest| self.stands.join(rest))
    }
}

/// Characters of a revision, folder or command in the label of a version.
const LABEL_LIMIT: usize = 60;
