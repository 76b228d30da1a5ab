//! Owns what a server prints: drained always, so that it never blocks on a full pipe, kept in a
//! file up to a cap, its last lines at hand for messages.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes kept of the beginning, written as they come.
const HEAD: usize = 512 * 1024;

/// Bytes kept of the end, written when the last process that could print has ended. Between the two
/// stands a line with the number of bytes left out, so that a file holds 1 MiB and that line at most.
const TAIL: usize = 512 * 1024;

/// Bytes of the end that [`Log::tail`] looks at.
const SHOWN: usize = 64 * 1024;

/// Characters of a line that are shown.
const LINE: usize = 500;

/// The most logs of one name in one folder.
const LOGS: u32 = 100_000;

/// The output of one start, on its way to its file.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `None` in place of the file when it could not be written: the rest is lost, the server goes on.
    output: Mutex<Capped<Option<File>>>,
    ended: Condvar,
}

impl Log {
    /// Opens `<folder>/<name>.log`, or `<name>.2.log` and so on when that exists, and starts to
    /// drain the returned end of a pipe into it.
    ///
    /// # Errors
    /// Those of creating the folder, the file, the pipe and the thread.
    pub(super) fn create(folder: &Path, name: &str) -> io::Result<(Self, PipeWriter)> {
        std::fs::create_dir_all(folder)?;
        let (path, file) = new_file(folder, name)?;
        let (reader, writer) = io::pipe()?;
        let shared = Arc::new(Shared { output: Mutex::new(Capped::new(Some(file))), ended: Condvar::new() });
        let drained = Arc::clone(&shared);
        thread::Builder::new().name("log".into()).spawn(move || drain(reader, &drained))?;
        Ok((Self { path, shared }, writer))
    }

    /// Where it is kept.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The last `lines` lines, fit for a terminal.
    pub(super) fn tail(&self, lines: usize) -> Vec<String> {
        self.shared.lock().last_lines(lines)
    }

    /// The last bytes, `limit` at most, as text.
    pub(super) fn text(&self, limit: usize) -> String {
        let mut output = self.shared.lock();
        let bytes = output.last.make_contiguous();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(limit)..]).into_owned()
    }

    /// Waits until every process that could print has ended and all is in the file, `limit` at most:
    /// a process may have handed its output to one that is no descendant.
    pub(super) fn wait_end(&self, limit: Duration) {
        let output = self.shared.lock();
        let waited = self.shared.ended.wait_timeout_while(output, limit, |output| !output.ended);
        drop(waited);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Capped<Option<File>>> {
        // Each change leaves a whole log behind, so that of a panicking thread is as good as any.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_file(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    for number in 1..=LOGS {
        let file = if number == 1 { format!("{name}.log") } else { format!("{name}.{number}.log") };
        let path = folder.join(file);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((path, opened?)),
        }
    }
    Err(io::Error::other(format!("there are {LOGS} logs of {name} in {} already", folder.display())))
}

fn drain(mut from: PipeReader, shared: &Shared) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => shared.lock().push(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    shared.lock().end();
    shared.ended.notify_all();
}

/// The beginning of a stream in `file`, its end in memory until [`Capped::end`].
#[derive(Debug)]
struct Capped<F> {
    file: F,
    /// The last bytes of all that came, `TAIL` at most.
    last: VecDeque<u8>,
    /// Bytes that came.
    total: u64,
    ended: bool,
}

impl<F: Sink> Capped<F> {
    fn new(file: F) -> Self {
        Self { file, last: VecDeque::new(), total: 0, ended: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        let into_head = usize::try_from(self.total).map_or(0, |total| HEAD.saturating_sub(total));
        self.file.put(&bytes[..into_head.min(bytes.len())]);
        self.total = self.total.saturating_add(bytes.len() as u64);
        let kept = &bytes[bytes.len().saturating_sub(TAIL)..];
        let surplus = (self.last.len() + kept.len()).saturating_sub(TAIL);
        self.last.drain(..surplus);
        self.last.extend(kept);
    }

    /// Writes the end, after a line about what is left out.
    fn end(&mut self) {
        let after_head = self.total.saturating_sub(HEAD as u64);
        let kept = usize::try_from(after_head).map_or(self.last.len(), |after| after.min(self.last.len()));
        let left_out = after_head - kept as u64;
        if left_out > 0 {
            self.file.put(format!("\n[... {left_out} bytes left out ...]\n").as_bytes());
        }
        let start = self.last.len() - kept;
        self.file.put(&self.last.make_contiguous()[start..]);
        self.ended = true;
    }

    fn last_lines(&self, lines: usize) -> Vec<String> {
        let start = self.last.len().saturating_sub(SHOWN);
        let bytes: Vec<u8> = self.last.range(start..).copied().collect();
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if text.is_empty() {
            return Vec::new();
        }
        let mut shown: Vec<String> = text.rsplit(|byte| *byte == b'\n').take(lines).map(printable).collect();
        shown.reverse();
        shown
    }
}

/// Where bytes go that may fail to be kept.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Option<File> {
    fn put(&mut self, bytes: &[u8]) {
        // A full disk must not stop the draining.
        if self.as_mut().is_some_and(|file| file.write_all(bytes).is_err()) {
            *self = None;
        }
    }
}

/// A line fit for a terminal and a report: UTF-8, no escape sequences (ECMA-48 section 5.4), no
/// control characters, 500 characters at most.
pub(super) fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::new();
    let mut shown = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_escape(&mut chars);
            continue;
        }
        if c.is_control() && c != '\t' {
            continue;
        }
        if shown == LINE {
            out.push('…');
            break;
        }
        out.push(if c == '\t' { ' ' } else { c });
        shown += 1;
    }
    out
}

/// Skips what follows an ESC when it is a control sequence: `[`, parameter and intermediate bytes,
/// one final byte.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if chars.next_if_eq(&'[').is_some() {
        while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
        let _ = chars.next_if(|c| ('@'..='~').contains(c));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Sink for Vec<u8> {
        fn put(&mut self, bytes: &[u8]) {
            self.extend_from_slice(bytes);
        }
    }

    proptest! {
        #[test]
        fn a_log_keeps_the_beginning_and_the_end_and_counts_the_rest(
            // Up to four times the cap, in pieces of any size.
            pieces in prop::collection::vec(0usize..700_000, 0..6),
        ) {
            let mut log = Capped::new(Vec::new());
            let mut all = Vec::new();
            for (number, length) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..length).map(|i| b'a' + ((i / 7 + number) % 26) as u8).collect();
                log.push(&piece);
                all.extend(piece);
            }
            log.end();
            if all.len() <= HEAD + TAIL {
                prop_assert!(log.file == all);
            } else {
                let marker = format!("\n[... {} bytes left out ...]\n", all.len() - HEAD - TAIL);
                prop_assert_eq!(log.file.len(), HEAD + TAIL + marker.len());
                prop_assert!(log.file[..HEAD] == all[..HEAD]);
                prop_assert_eq!(&log.file[HEAD..HEAD + marker.len()], marker.as_bytes());
                prop_assert!(log.file[HEAD + marker.len()..] == all[all.len() - TAIL..]);
            }
        }

        #[test]
        fn what_is_shown_holds_no_control_character(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let shown = printable(&bytes);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert!(shown.chars().count() <= LINE + 1);
        }
    }

    #[test]
    fn last_lines_are_whole_and_in_order() {
        for (text, lines, shown) in [
            ("", 5, &[][..]),
            ("\n", 5, &[]),
            ("a", 5, &["a"]),
            ("a\nb\n", 5, &["a", "b"]),
            ("a\nb\nc", 2, &["b", "c"]),
            ("a\n\nc\n", 2, &["", "c"]),
            ("a\n", 0, &[]),
        ] {
            let mut log = Capped::new(Vec::new());
            log.push(text.as_bytes());
            assert_eq!(log.last_lines(lines), shown, "{text:?}");
        }
    }

    #[test]
    fn colours_and_control_characters_are_left_out() {
        for (line, shown) in [
            (&b"\x1b[31;1mred\x1b[0m"[..], "red"),
            (b"\x1b[2K\rdone\x07", "done"),
            (b"a\tb\x1b", "a b"),
            (b"\xff\x1b[", "\u{fffd}"),
        ] {
            assert_eq!(printable(line), shown);
        }
        assert_eq!(printable(&[b'x'; 501]), "x".repeat(500) + "…");
    }

    #[test]
    fn each_start_has_a_file_of_its_own_that_is_complete_when_the_writers_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["s.log", "s.2.log", "s.3.log"] {
            let (log, mut writer) = Log::create(&dir.path().join("logs"), "s").unwrap();
            writeln!(writer, "{name}").unwrap();
            drop(writer);
            log.wait_end(Duration::from_secs(60));
            assert_eq!(log.path().file_name().unwrap(), name);
            assert_eq!(std::fs::read_to_string(log.path()).unwrap(), format!("{name}\n"));
            assert_eq!(log.tail(20), [name]);
        }
    }
}
