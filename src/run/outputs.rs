//! Owns the files a run leaves, and that only one run at a time writes them. They are opened before
//! anything is built or measured: a long run must not end in a path error.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::RunError;

/// The output folder of one report, held against other runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
    report: String,
    /// Dropped first, so that the file it locks is gone before another run can have it.
    _lock: Lock,
}

impl Outputs {
    /// Makes `folder` where needed and takes the report named `report` in it.
    ///
    /// # Errors
    /// A folder that cannot be made or written, or another run that holds the report.
    pub(crate) fn open(folder: &Path, report: &str) -> Result<Self, RunError> {
        let refused = |error: io::Error| {
            RunError(format!(
                "{}: reports cannot be written there: {error}; name another folder with --out",
                folder.display()
            ))
        };
        fs::create_dir_all(folder).map_err(refused)?;
        let folder = folder.canonicalize().map_err(refused)?;
        let path = folder.join(format!(".{report}.lock"));
        let lock = Lock::take(&path).map_err(refused)?.ok_or_else(|| {
            RunError(format!(
                "another run is writing {report} in {}; wait for it, or name another folder with --out",
                folder.display()
            ))
        })?;
        Ok(Self { folder, report: report.into(), _lock: lock })
    }

    /// The results file.
    pub(crate) fn results(&self) -> PathBuf {
        self.named("json")
    }

    /// The report.
    pub(crate) fn markdown(&self) -> PathBuf {
        self.named("md")
    }

    /// The journal of a run that is not finished.
    pub(crate) fn journal(&self) -> PathBuf {
        self.named("journal")
    }

    /// The journal of an unfinished run that was started over.
    pub(crate) fn old_journal(&self) -> PathBuf {
        self.named("journal.old")
    }

    /// The folder of the servers' logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.named("logs")
    }

    fn named(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}.{suffix}", self.report))
    }
}

/// The folder reports go to unless told otherwise: `reports` beside the folder `scenarios` that the
/// scenario stands in, else `reports` in the working directory.
pub(crate) fn default_folder(scenario: &Path) -> PathBuf {
    let absolute = scenario.canonicalize().unwrap_or_else(|_| scenario.to_owned());
    let scenarios = absolute.ancestors().skip(1).find(|folder| folder.ends_with("scenarios"));
    scenarios.and_then(Path::parent).map_or_else(|| PathBuf::from("reports"), |root| root.join("reports"))
}

/// A lock file: locked (flock(2)) while held, which ends with the process however that ends, and
/// removed when dropped.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: Flock<File>,
}

impl Lock {
    /// Takes the lock; `None` when somebody else holds it.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, errno)) => return Err(errno.into()),
            };
            // Its last holder may have removed the file between the two calls, and a lock on a file
            // that has no name holds off nobody.
            let held = file.metadata()?;
            match fs::metadata(path) {
                Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => {
                    return Ok(Some(Self { path: path.to_owned(), _file: file }));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Left behind it does no harm: the next run locks the same file.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time_writes_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let first = Outputs::open(folder.path(), "A").unwrap();
        let error = Outputs::open(folder.path(), "A").unwrap_err().0;
        assert!(error.contains("another run is writing A"), "{error}");
        Outputs::open(folder.path(), "B").expect("another report is free");
        drop(first);
        Outputs::open(folder.path(), "A").expect("it was given back");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no lock file stays");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Outputs::open(&file.join("reports"), "A").unwrap_err().0;
        assert!(error.contains("file/reports") && error.contains("--out"), "{error}");
    }

    #[test]
    fn reports_stand_beside_the_scenarios() {
        let root = tempfile::tempdir().unwrap();
        let scenario = root.path().join("scenarios/deep/http.toml");
        fs::create_dir_all(scenario.parent().unwrap()).unwrap();
        fs::write(&scenario, "").unwrap();
        let root = root.path().canonicalize().unwrap();
        assert_eq!(default_folder(&scenario), root.join("reports"));
        assert_eq!(default_folder(Path::new("/no/such/http.toml")), Path::new("reports"));
    }
}
