//! Owns what is asked of `git`: files at a revision, the commits that touched a path, worktrees. Starts
//! the program of that name; reads nothing of a repository by itself.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What `git` refused, in one line, with what to do where that is known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct GitError(pub String);

/// A working tree with its history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repository {
    root: PathBuf,
}

/// A commit, as tables name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// Its hash, in full.
    pub hash: String,
    /// When it was committed, RFC 3339.
    pub at: String,
    /// First line of its message.
    pub subject: String,
}

/// A checkout of one commit in a folder of its own. It is gone when this is dropped, and also when the
/// process ends in another way, by a signal it does not survive: a child waits for that.
#[derive(Debug)]
pub struct Worktree {
    path: PathBuf,
    /// Removes it once its standard input ends.
    remover: Child,
}

impl Repository {
    /// The repository that `folder` is in.
    ///
    /// # Errors
    /// None is, or `git` cannot be started.
    pub fn containing(folder: &Path) -> Result<Self, GitError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let root = text(git(folder, ["rev-parse", "--show-toplevel"])?);
        Ok(Self { root: PathBuf::from(root.trim_end_matches('\n')) })
    }

    /// Its topmost folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path of this machine as git names it: relative to the root, whether or not it is there.
    ///
    /// # Errors
    /// It lies outside.
    pub fn relative(&self, path: &Path) -> Result<String, GitError> {
        let outside = || GitError(format!("{} is not in {}", path.display(), self.root.display()));
        let mut whole = PathBuf::new();
        for part in std::path::absolute(path).map_err(|_| outside())?.components() {
            match part {
                std::path::Component::ParentDir => drop(whole.pop()),
                part => whole.push(part),
            }
        }
        // git's root is free of symbolic links, so as much of the path as there is has to be.
        let real = whole.ancestors().find_map(|there| {
            let rest = whole.strip_prefix(there).ok()?;
            Some(there.canonicalize().ok()?.join(rest))
        });
        let real = real.unwrap_or(whole);
        let inside = real.strip_prefix(&self.root).map_err(|_| outside())?;
        inside.to_str().map(str::to_owned).ok_or_else(outside)
    }

    /// The commit that a revision names.
    ///
    /// # Errors
    /// It names none.
    pub fn resolve(&self, revision: &str) -> Result<String, GitError> {
        let name = format!("{revision}^{{commit}}");
        let hash = git(&self.root, ["rev-parse", "--verify", "--quiet", "--end-of-options", &name]);
        match hash {
            Ok(hash) => Ok(text(hash).trim().to_owned()),
            Err(_) => Err(GitError(format!(
                "`{revision}` is no revision of {}; a shallow clone has only the newest ones, `git fetch --unshallow` \
                 gets the others",
                self.root.display()
            ))),
        }
    }

    /// Paths of the files below `folder`, relative to the root, in order; none where it is not there.
    ///
    /// # Errors
    /// No such commit.
    pub fn files(&self, commit: &str, folder: &str) -> Result<Vec<String>, GitError> {
        let folder = if folder.is_empty() { "." } else { folder };
        let listed = git(&self.root, ["ls-tree", "-r", "-z", "--name-only", commit, "--", folder])?;
        Ok(text(listed).split_terminator('\0').map(str::to_owned).collect())
    }

    /// A file at a commit; `path` is relative to the root.
    ///
    /// # Errors
    /// No such commit or file.
    pub fn read(&self, commit: &str, path: &str) -> Result<Vec<u8>, GitError> {
        git(&self.root, ["cat-file", "blob", &format!("{commit}:{path}")])
    }

    /// The commits up to `revision` that touched `path`, newest first, renames not followed.
    ///
    /// # Errors
    /// No such revision.
    pub fn touching(&self, revision: &str, path: &str) -> Result<Vec<Commit>, GitError> {
        let commit = self.resolve(revision)?;
        let log = text(git(&self.root, ["log", "-z", "--format=%H%x09%cI%x09%s", &commit, "--", path])?);
        let commit = |line: &str| {
            let mut parts = line.splitn(3, '\t').map(str::to_owned);
            Some(Commit { hash: parts.next()?, at: parts.next()?, subject: parts.next()? })
        };
        Ok(log.split('\0').filter(|line| !line.is_empty()).filter_map(commit).collect())
    }

    /// Checks a commit out into a folder of its own.
    ///
    /// # Errors
    /// No such commit, or no room.
    pub fn worktree(&self, commit: &str) -> Result<Worktree, GitError> {
        // Servers that run as another user may enter it.
        let folder = tempfile::Builder::new()
            .prefix("bench-worktree.")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir()
            .map_err(|error| {
                GitError(format!("no folder for a worktree can be made: {error}; set TMPDIR"))
            })?;
        let path = folder.path().join("tree");
        let remover = remover(&self.root, &path, folder.path())?;
        // Whatever happens from here on, it is the child that removes the folder.
        let _ = folder.keep();
        let worktree = Worktree { path, remover };
        let path = worktree.path.as_os_str();
        git(&self.root, ["worktree".as_ref(), "add".as_ref(), "--detach".as_ref(), path, commit.as_ref()])?;
        Ok(worktree)
    }
}

impl Worktree {
    /// Its topmost folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}

/// Starts the child that removes a worktree and its folder as soon as this process closes the pipe to it,
/// or is gone. It stands in a process group of its own, where Ctrl-C does not reach it.
fn remover(repository: &Path, worktree: &Path, folder: &Path) -> Result<Child, GitError> {
    command("sh")
        .args(["-c", REMOVE, "sh"])
        .args([repository, worktree, folder])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| GitError(format!("`sh`, which removes worktrees, cannot be started: {error}")))
}

/// A program that is `git` or calls it. Inside of a hook git is told of another repository by variables.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    command
}

/// Runs `git` in a folder and returns what it printed.
fn git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(folder: &Path, args: I) -> Result<Vec<u8>, GitError> {
    let mut command = command("git");
    let output =
        command.arg("-C").arg(folder).args(args).env("LC_ALL", "C").output().map_err(|error| {
            GitError(format!("`git` cannot be started: {error}; install it, or name files"))
        })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = text(output.stderr);
    let said = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ");
    Err(GitError(format!("git, in {}: {said}", folder.display())))
}

/// What is still being written when the folder is removed is removed in a later attempt. A folder that
/// `git` no longer finds is forgotten by the repository.
const REMOVE: &str = r#"read -r _
git -C "$1" worktree remove --force "$2"
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$3" && break
    sleep 0.2
done
git -C "$1" worktree prune"#;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
