//! Owns the child process that makes the load: spawned with a plan on its standard input, heard line
//! by line, interrupted, killed and reaped. What its events mean for a cell is decided in `cell`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::interrupt::{Halt, wait};
use crate::clock;
use crate::load::plan::{Event, LoadPlan};
use crate::time::{Instant, Span};

/// How a generator is started: it reads a [`LoadPlan`] from standard input and prints [`Event`]s.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratorCommand {
    /// Program.
    pub program: PathBuf,
    /// Arguments.
    pub args: Vec<OsString>,
}

impl GeneratorCommand {
    /// This program's own generator, `bench load --plan -`.
    pub fn of(exe: PathBuf) -> Self {
        Self { program: exe, args: ["load", "--plan", "-"].map(OsString::from).into() }
    }
}

/// What was heard of a generator.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Heard {
    /// It said this.
    Event(Event),
    /// It printed something that is no event: what is wrong with it.
    Garbage(String),
    /// It ended: its exit status and the last of its standard error.
    Ended(String),
    /// Nothing until the time given.
    Quiet,
    /// The run is to stop, for this reason.
    Halted(String),
}

/// A running generator, as the logic of cells and probes sees it. The clock belongs to it, so that a
/// scripted one can stand anywhere in time.
pub(crate) trait Link {
    /// Monotonic time.
    fn now(&self) -> Instant;

    /// The next thing heard, at `until` at the latest. With `heed_halt`, a reason to stop the run is
    /// heard as well, after what the generator had already said.
    fn hear(&mut self, until: Instant, heed_halt: bool) -> Heard;

    /// Asks it to end its window now and to print what it measured.
    fn interrupt(&mut self);

    /// Ends it: waits a moment for one that has said its last line, and kills any other.
    fn end(&mut self, said_all: bool);
}

/// A generator in a process of its own. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Generator<'a> {
    child: Child,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    lines: Lines,
    complaint: Tail,
    halt: &'a Halt,
}

impl<'a> Generator<'a> {
    /// Starts `command` on `plan`.
    ///
    /// The plan is passed as an unnamed file rather than through a pipe: a child that never reads it
    /// cannot block us. The child gets a process group of its own, so that the terminal's Ctrl-C
    /// reaches it only through [`Link::interrupt`].
    ///
    /// # Errors
    /// Names the program and the cause.
    pub(crate) fn spawn(command: &GeneratorCommand, plan: &LoadPlan, halt: &'a Halt) -> Result<Self, String> {
        let failed = |error: std::io::Error| {
            format!("the generator `{}` could not be started: {error}", command.program.display())
        };
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .stdin(plan_file(plan).map_err(failed)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Self { child, stdout, stderr, lines: Lines::default(), complaint: Tail::default(), halt })
    }

    /// Waits until a pipe has something, the run is to stop, or `until`; then takes what there is.
    fn listen(&mut self, until: Instant, heed_halt: bool) {
        let until = match self.halt.deadline() {
            Some(deadline) if heed_halt => deadline.min(until),
            _ => until,
        };
        let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        let pipe = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = Vec::with_capacity(3);
        fds.extend(self.stdout.as_ref().map(|stdout| pipe(stdout.as_fd())));
        fds.extend(self.stderr.as_ref().map(|stderr| pipe(stderr.as_fd())));
        if heed_halt {
            fds.push(pipe(self.halt.fd()));
        }
        wait(&mut fds, until);
        let mut readable = fds.iter().map(ready).collect::<Vec<_>>().into_iter();
        if self.stdout.is_some() && readable.next() == Some(true) {
            take(&mut self.stdout, |bytes| self.lines.push(bytes));
        }
        if self.stderr.is_some() && readable.next() == Some(true) {
            take(&mut self.stderr, |bytes| self.complaint.push(bytes));
        }
    }

    /// Exit status and last words of a child that closed its standard output.
    fn epitaph(&mut self) -> String {
        self.end(true);
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "unknown exit status".into(),
        };
        match self.complaint.text() {
            text if text.is_empty() => status,
            text => format!("{status}: {text}"),
        }
    }
}

impl Link for Generator<'_> {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn hear(&mut self, until: Instant, heed_halt: bool) -> Heard {
        loop {
            match self.lines.next() {
                Some(Ok(line)) => return parse(&line),
                Some(Err(problem)) => return Heard::Garbage(problem),
                None if self.stdout.is_none() => return Heard::Ended(self.epitaph()),
                None => {}
            }
            if heed_halt && let Some(reason) = self.halt.reason() {
                return Heard::Halted(reason);
            }
            if clock::now() >= until {
                return Heard::Quiet;
            }
            self.listen(until, heed_halt);
        }
    }

    fn interrupt(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // An error means that it has ended already.
            let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
        }
    }

    fn end(&mut self, said_all: bool) {
        let patience = if said_all { EXIT_PATIENCE } else { Span::ZERO };
        let until = clock::now() + patience;
        while clock::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            // Its standard error closes when it exits, which ends the wait; one that keeps its pipes
            // closed and lives on is looked at every millisecond.
            if self.stderr.is_some() {
                self.stdout = None;
                self.listen(until, false);
            } else {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        // Killing a child that was reaped is refused by the standard library, not sent to a stranger.
        let _ = self.child.kill();
        let _ = self.child.wait();
        while self.stderr.is_some() && !self.complaint.full() {
            let before = self.complaint.seen;
            self.listen(clock::now(), false);
            if self.complaint.seen == before {
                break;
            }
        }
    }
}

impl Drop for Generator<'_> {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// The plan as an unnamed file, read from its beginning.
fn plan_file(plan: &LoadPlan) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&serde_json::to_vec(plan)?)?;
    file.rewind()?;
    Ok(file)
}

/// Reads once from a pipe that is readable, and closes it at its end or on an error.
fn take<R: Read>(pipe: &mut Option<R>, mut push: impl FnMut(&[u8])) {
    let Some(reader) = pipe else { return };
    let mut buffer = [0; 64 * 1024];
    match reader.read(&mut buffer) {
        Ok(0) => *pipe = None,
        Ok(read) => push(&buffer[..read]),
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
        Err(_) => *pipe = None,
    }
}

fn parse(line: &[u8]) -> Heard {
    match serde_json::from_slice(line) {
        Ok(event) => Heard::Event(event),
        Err(error) => {
            let start: String = String::from_utf8_lossy(line).chars().take(QUOTED).collect();
            Heard::Garbage(format!("`{}` is no event ({error})", start.escape_debug()))
        }
    }
}

/// Splits bytes into lines of bounded length.
#[derive(Debug, Default)]
struct Lines {
    /// Received and not yet taken.
    buffer: Vec<u8>,
    /// Of `buffer`: bytes known to hold no line end.
    searched: usize,
    /// True once a line was too long; nothing more is kept then.
    overlong: bool,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        if self.overlong {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > LONGEST_LINE && memchr::memchr(b'\n', &self.buffer[self.searched..]).is_none()
        {
            self.overlong = true;
            self.buffer = Vec::new();
        }
    }

    fn next(&mut self) -> Option<Result<Vec<u8>, String>> {
        if self.overlong {
            return Some(Err(format!("a line of over {LONGEST_LINE} bytes")));
        }
        let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
        line.pop();
        self.searched = 0;
        Some(Ok(line))
    }
}

/// The end of what was written to standard error.
#[derive(Debug, Default)]
struct Tail {
    kept: VecDeque<u8>,
    seen: u64,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        self.kept.extend(bytes);
        self.kept.drain(..self.kept.len().saturating_sub(TAIL));
    }

    /// True when so much was written that more would only push it out again.
    fn full(&self) -> bool {
        self.seen > FLOOD
    }

    /// As one line of text.
    fn text(&self) -> String {
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A measurement with its histograms and one entry a second stays well below this, for hours.
const LONGEST_LINE: usize = 16 << 20;

/// Bytes of standard error kept.
const TAIL: usize = 2048;

/// Bytes of standard error after which a dead child's pipe is not read to its end.
const FLOOD: u64 = 1 << 20;

/// Characters of a bad line shown.
const QUOTED: usize = 80;

/// Longest wait for a child that has said its last line to exit: it only has to free its memory.
const EXIT_PATIENCE: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::results::Protocol;
    use crate::run::{fixture, plan};
    use crate::server::Ports;

    /// A generator that is the shell script `script`.
    fn sh<'a>(script: &str, halt: &'a Halt) -> Generator<'a> {
        let command = GeneratorCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] };
        let scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[1]);
        let plan = plan::probe(&scenario, None, Protocol::H1, Ports { http: 1, https: 2 });
        Generator::spawn(&command, &plan, halt).expect("there is a shell")
    }

    fn far() -> Instant {
        clock::now() + Span::from_secs(60)
    }

    #[test]
    fn the_plan_is_on_standard_input_and_events_come_out() {
        let halt = Halt::detached().unwrap();
        let mut child = sh(
            r#"read plan; case "$plan" in *'"protocol":"h1"'*) ;; *) exit 9;; esac
               echo '{"event":"connected","up":1,"of":1,"address":"127.0.0.1:1"}'; echo gone >&2; exit 3"#,
            &halt,
        );
        let connected = Event::Connected { up: 1, of: 1, address: "127.0.0.1:1".into() };
        assert_eq!(child.hear(far(), true), Heard::Event(connected));
        assert_eq!(child.hear(far(), true), Heard::Ended("exit status: 3: gone".into()));
    }

    #[test]
    fn what_is_no_event_is_quoted() {
        let halt = Halt::detached().unwrap();
        let mut child = sh("echo '{\"event\":\"tea\"}'; echo", &halt);
        let Heard::Garbage(text) = child.hear(far(), true) else { panic!("not an event") };
        assert!(text.contains("tea"), "{text}");
        assert!(matches!(child.hear(far(), true), Heard::Garbage(_)));
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let halt = Halt::detached().unwrap();
        let mut child = sh("exec tr '\\0' x </dev/zero", &halt);
        assert_eq!(child.hear(far(), true), Heard::Garbage(format!("a line of over {LONGEST_LINE} bytes")));
    }

    #[test]
    fn a_silent_child_is_quiet_until_it_is_killed() {
        let halt = Halt::detached().unwrap();
        let mut child = sh("exec sleep 3600", &halt);
        assert_eq!(child.hear(clock::now() + Span::from_millis(5), true), Heard::Quiet);
        child.end(false);
        assert!(matches!(child.child.try_wait(), Ok(Some(_))));
    }

    #[test]
    fn an_interrupt_reaches_it_and_it_may_still_speak() {
        let halt = Halt::detached().unwrap();
        let mut child = sh(
            r#"trap 'echo "{\"event\":\"error\",\"message\":\"bye\"}"; exit 0' INT
               echo '{"event":"window_closed","closed_at_ns":1}'
               while :; do sleep 0.01; done"#,
            &halt,
        );
        assert!(matches!(child.hear(far(), true), Heard::Event(Event::WindowClosed { .. })));
        halt.trigger(Signal::SIGINT);
        assert_eq!(child.hear(far(), true), Heard::Halted("interrupted by SIGINT".into()));
        child.interrupt();
        assert_eq!(child.hear(far(), false), Heard::Event(Event::Error { message: "bye".into() }));
        assert_eq!(child.hear(far(), false), Heard::Ended("exit status: 0".into()));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let halt = Halt::detached().unwrap();
        let command = GeneratorCommand::of("/no/such/bench".into());
        let scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[1]);
        let plan = plan::probe(&scenario, None, Protocol::H1, Ports { http: 1, https: 2 });
        let error = Generator::spawn(&command, &plan, &halt).unwrap_err();
        assert!(error.starts_with("the generator `/no/such/bench` could not be started"), "{error}");
    }

    proptest! {
        /// However the bytes arrive, the same lines come out.
        #[test]
        fn lines_do_not_depend_on_how_bytes_arrive(
            lines in prop::collection::vec("[a-z]{0,20}", 0..10),
            cuts in prop::collection::vec(1usize..30, 1..40),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let (mut splitter, mut rest, mut got) = (Lines::default(), text.as_bytes(), Vec::new());
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                splitter.push(now);
                while let Some(line) = splitter.next() {
                    got.push(String::from_utf8(line.unwrap()).unwrap());
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(got, lines);
        }
    }
}
