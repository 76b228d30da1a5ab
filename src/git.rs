//! Owns what is asked of `git`: files at a revision, the commits that touched a path, worktrees. Starts
//! the program of that name; reads nothing of a repository by itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// A checkout of one commit in a folder of its own, removed when this is dropped.
#[derive(Debug)]
pub struct Worktree {
    repository: PathBuf,
    path: PathBuf,
    /// Holds the folder that the worktree stands in.
    _folder: tempfile::TempDir,
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
        let folder = tempfile::Builder::new().prefix("bench-worktree.").tempdir().map_err(|error| {
            GitError(format!("no folder for a worktree can be made: {error}; set TMPDIR"))
        })?;
        let path = folder.path().join("tree");
        let add =
            [OsStr::new("worktree"), "add".as_ref(), "--detach".as_ref(), path.as_ref(), commit.as_ref()];
        git(&self.root, add)?;
        Ok(Worktree { repository: self.root.clone(), path, _folder: folder })
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
        // What is left over is forgotten by `git worktree prune`, and the folder goes anyway.
        let remove = [OsStr::new("worktree"), "remove".as_ref(), "--force".as_ref(), self.path.as_ref()];
        let _ = git(&self.repository, remove);
    }
}

/// Runs `git` in a folder and returns what it printed.
fn git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(folder: &Path, args: I) -> Result<Vec<u8>, GitError> {
    let mut command = Command::new("git");
    // Inside of a hook git is told of another repository through these.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
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

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
