//! A progress bar on standard error, only when someone is there to see it and only after a second.
//!
//! Readers store two numbers; a thread of its own draws them. So reading never waits for the terminal, and a stalled pipe
//! still shows how far it came.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use longpole_ingest::Progress;

use crate::exit::complain;
use longpole_report::bytes;

/// Reading that takes less shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two drawings.
const TICK: Duration = Duration::from_millis(100);

/// What readers and the drawing thread share.
#[derive(Default)]
struct Shared {
    done: AtomicU64,
    /// Zero until it is known.
    total: AtomicU64,
    finished: Mutex<bool>,
    wake: Condvar,
}

impl Shared {
    /// Waits until reading is finished, at most `time`; true when it is.
    fn finished_within(&self, time: Duration) -> bool {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        *self.wake.wait_timeout_while(finished, time, |finished| !*finished).unwrap_or_else(PoisonError::into_inner).0
    }

    fn draw(&self) {
        let started = Instant::now();
        if self.finished_within(PATIENCE) {
            return;
        }
        let total = Some(self.total.load(Ordering::Relaxed)).filter(|&total| total > 0);
        let bar = new_bar(total);
        loop {
            let done = self.done.load(Ordering::Relaxed);
            bar.set_position(done);
            bar.set_message(pace(done, total, started.elapsed()));
            bar.tick();
            if self.finished_within(TICK) {
                break;
            }
        }
        bar.finish_and_clear();
    }
}

/// Rate so far and time left at that rate. The bar's own estimate starts when it is first drawn, which is too late.
fn pace(done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64();
    let mut text = format!("{}/s", bytes(rate as i64));
    if let Some(left) = total.filter(|_| done > 0).map(|total| total.saturating_sub(done)) {
        let _ = write!(text, ", {:.0} s left", (left as f64 / rate).ceil());
    }
    text
}

fn new_bar(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = if total.is_some() {
        "reading {bar:30} {binary_bytes}/{binary_total_bytes} {msg}"
    } else {
        "reading {spinner} {binary_bytes} {msg}"
    };
    // A template that cannot be read leaves the standard bar, which is as good.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Bytes read, rate and time left.
pub(crate) struct Bar {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Bar {
    /// A bar, if standard error is a terminal and the user wants one.
    pub(crate) fn new(quiet: bool) -> Option<Self> {
        if quiet || !io::stderr().is_terminal() {
            return None;
        }
        let shared = Arc::new(Shared::default());
        let drawing = Arc::clone(&shared);
        // Without a thread there is no bar, and nothing else is lost.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(move || drawing.draw()).ok()?;
        Some(Self { shared, thread })
    }

    /// Takes it away again.
    pub(crate) fn finish(self) {
        *self.shared.finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        let _ = self.thread.join();
    }
}

impl Progress for Bar {
    fn bytes_read(&self, done: u64, total: Option<u64>) {
        // Several threads report; the farthest counts.
        self.shared.done.fetch_max(done, Ordering::Relaxed);
        self.shared.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }
}

/// The bar, if there is one, and what is to be said beside it.
pub(crate) struct Telling<'b> {
    /// The bar.
    pub(crate) bar: Option<&'b Bar>,
    /// The user wants no notes.
    pub(crate) quiet: bool,
}

impl Progress for Telling<'_> {
    fn bytes_read(&self, done: u64, total: Option<u64>) {
        if let Some(bar) = self.bar {
            bar.bytes_read(done, total);
        }
    }

    fn note(&self, what: &str) {
        if !self.quiet {
            complain(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_is_the_average_so_far() {
        let second = Duration::from_secs(1);
        assert_eq!(pace(300 << 20, Some(900 << 20), second), "300.00 MiB/s, 2 s left");
        assert_eq!(pace(300 << 20, None, second), "300.00 MiB/s");
        assert_eq!(pace(0, Some(9), second), "0 B/s");
    }

    #[test]
    fn a_quick_run_draws_nothing_and_ends_at_once() {
        let shared = Arc::new(Shared::default());
        let drawing = Arc::clone(&shared);
        let thread = std::thread::spawn(move || drawing.draw());
        let started = Instant::now();
        let bar = Bar { shared, thread };
        bar.bytes_read(7, Some(9));
        bar.bytes_read(5, Some(9));
        assert_eq!(bar.shared.done.load(Ordering::Relaxed), 7);
        bar.finish();
        assert!(started.elapsed() < PATIENCE);
    }
}
