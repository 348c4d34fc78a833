//! A program that is followed line by line: what it prints, how long it is silent, how it ends.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::interrupt::{self, Forwarding};

/// Time between two looks at signals and at the program.
const TICK: Duration = Duration::from_millis(20);
/// How long a program may take to end after it was told to, or after it closed what it prints to.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long what a program printed may be on its way after it ended.
const ON_ITS_WAY: Duration = Duration::from_millis(300);
/// Lines of its complaints that are kept for a message.
const LAST_WORDS: usize = 8;
/// Longest line of them.
const MOST_COLUMNS: u64 = 4096;

/// What came.
#[derive(Debug)]
pub(crate) enum Said<T> {
    /// On standard output, as its reader makes it.
    Output(T),
    /// A line of complaints.
    Complaint(String),
}

/// What happened next.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// It said something.
    Said(Said<T>),
    /// It ended, or closed both of its streams.
    Over,
    /// It has not said anything for too long.
    Silent,
    /// The user wants everything to end.
    Interrupted(i32),
}

/// A program that runs.
pub(crate) struct Running<T> {
    child: Child,
    said: Receiver<Said<T>>,
    last_words: VecDeque<String>,
    /// When it was seen to have ended, or said something after that.
    ended: Option<Instant>,
    _forwarding: Forwarding,
}

/// Lines of a stream, each bounded.
fn lines(stream: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut input = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(MOST_COLUMNS).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == MOST_COLUMNS && input.skip_until(b'\n').is_err() {
            return;
        }
        if !take(String::from_utf8_lossy(line.trim_ascii_end()).into_owned()) {
            return;
        }
    }
}

impl<T: Send + 'static> Running<T> {
    /// Starts it. `read` runs on a thread of its own and hands over what it makes of standard output; it ends when that is closed.
    pub(crate) fn start(
        command: &mut Command,
        read: impl FnOnce(BufReader<ChildStdout>, &dyn Fn(T) -> bool) + Send + 'static,
    ) -> std::io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.spawn()?;
        let forwarding = Forwarding::to(child.id());
        let (sender, said) = sync_channel(4096);
        if let Some(stdout) = child.stdout.take() {
            let sender: SyncSender<Said<T>> = sender.clone();
            std::thread::spawn(move || read(BufReader::new(stdout), &|said| sender.send(Said::Output(said)).is_ok()));
        }
        if let Some(stderr) = child.stderr.take() {
            std::thread::spawn(move || lines(stderr, |line| sender.send(Said::Complaint(line)).is_ok()));
        }
        Ok(Self { child, said, last_words: VecDeque::new(), ended: None, _forwarding: forwarding })
    }

    /// Waits for what it says next, at most as long as it may be silent.
    pub(crate) fn next(&mut self, patience: Duration) -> Next<T> {
        let end = Instant::now() + patience;
        loop {
            match self.said.recv_timeout(TICK) {
                Ok(said) => {
                    // As long as something comes, more may be on its way.
                    self.ended = self.ended.map(|_| Instant::now());
                    if let Said::Complaint(line) = &said {
                        if self.last_words.len() == LAST_WORDS {
                            self.last_words.pop_front();
                        }
                        self.last_words.push_back(line.clone());
                    }
                    return Next::Said(said);
                }
                Err(error) => {
                    // Asked before anything else: a program that the signal has ended already did not fail.
                    if let Some(signal) = interrupt::caught() {
                        return Next::Interrupted(signal);
                    }
                    if error == RecvTimeoutError::Disconnected {
                        return Next::Over;
                    }
                }
            }
            // Something that it started may hold its streams open.
            if self.ended.is_none() && self.child.try_wait().is_ok_and(|status| status.is_some()) {
                self.ended = Some(Instant::now());
            }
            if self.ended.is_some_and(|ended| ended.elapsed() > ON_ITS_WAY) {
                return Next::Over;
            }
            if Instant::now() > end {
                return Next::Silent;
            }
        }
    }

    /// Its last complaints, for a message.
    pub(crate) fn last_words(&self) -> Vec<String> {
        self.last_words.iter().filter(|line| !line.is_empty()).cloned().collect()
    }

    /// Waits for its end; a program that goes on without a stream is ended.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        let found = self.wait(FAREWELL);
        if found.is_none() {
            self.stop();
        }
        found
    }

    /// Ends it and what it started: it is asked to first, since a profiler has something to put back.
    pub(crate) fn stop(&mut self) {
        interrupt::end_group(self.child.id());
        self.leave();
    }

    /// Waits for a program that was told to end, and ends it if it does not.
    pub(crate) fn leave(&mut self) {
        let farewell = self.wait(FAREWELL);
        if farewell.is_none() || self.ended.is_none() {
            interrupt::kill_group(self.child.id());
            // It may have ended by itself just now, which is as good.
            let _ = self.child.kill();
            let _ = self.wait(FAREWELL);
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + patience;
        loop {
            // What it still prints is not wanted, and must not keep it from ending.
            while self.said.try_recv().is_ok() {}
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.ended.get_or_insert_with(Instant::now);
                    return Some(status);
                }
                Ok(None) if Instant::now() < end => std::thread::sleep(TICK),
                _ => return None,
            }
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if !self.child.try_wait().is_ok_and(|status| status.is_some()) {
            interrupt::kill_group(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// How a program ended, in words.
pub(crate) fn how(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "was ended, since it did not end by itself".to_owned() };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            libc::SIGSEGV => " (segmentation fault)",
            libc::SIGABRT => " (abort)",
            libc::SIGKILL => " (killed, perhaps for its memory)",
            libc::SIGBUS => " (bus error)",
            _ => "",
        };
        return format!("ended by signal {signal}{name}");
    }
    status.code().map_or_else(|| "ended".to_owned(), |code| format!("ended with status {code}"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> std::io::Result<Running<String>> {
        let read = |stdout: BufReader<ChildStdout>, take: &dyn Fn(String) -> bool| lines(stdout, take);
        Running::start(Command::new("/bin/sh").args(["-c", script]), read)
    }

    fn all(running: &mut Running<String>, patience: Duration) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            match running.next(patience) {
                Next::Said(Said::Output(line)) => said.push(line),
                Next::Said(Said::Complaint(line)) => said.push(format!("!{line}")),
                Next::Over => return said,
                Next::Silent => {
                    said.push("silent".to_owned());
                    return said;
                }
                Next::Interrupted(_) => panic!("nobody interrupts"),
            }
        }
    }

    #[test]
    fn lines_of_both_streams_and_the_status_come() {
        let mut running = shell("echo one; echo two; echo bad >&2; exit 3").unwrap();
        let mut said = all(&mut running, Duration::from_secs(20));
        said.sort();
        assert_eq!(said, ["!bad", "one", "two"]);
        assert_eq!((how(running.status()).as_str(), running.last_words()), ("ended with status 3", vec!["bad".to_owned()]));
    }

    #[test]
    fn silence_is_noticed_and_everything_ends() {
        let mut running = shell("echo one; sleep 60 & sleep 60").unwrap();
        let started = Instant::now();
        assert_eq!(all(&mut running, Duration::from_millis(300)), ["one", "silent"]);
        running.stop();
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        let mut stubborn = shell("trap '' TERM; echo one; while :; do sleep 1; done").unwrap();
        assert_eq!(all(&mut stubborn, Duration::from_millis(300)), ["one", "silent"]);
        drop(stubborn);
    }

    #[test]
    fn a_child_of_the_program_that_keeps_its_streams_is_not_waited_for() {
        let started = Instant::now();
        let mut running = shell("sleep 60 & echo done").unwrap();
        assert_eq!(all(&mut running, Duration::from_secs(50)), ["done"]);
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }

    #[test]
    fn endless_lines_are_bounded() {
        let mut running = shell("head -c 100000 /dev/zero | tr '\\0' x; echo; echo next").unwrap();
        let said = all(&mut running, Duration::from_secs(20));
        assert_eq!((said[0].len() as u64, said[1].as_str()), (MOST_COLUMNS, "next"));
    }
}
