//! A progress bar on standard error, only when someone is there to see it and only after a second.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use longpole_ingest::Progress;

/// Reading that takes less shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes read, rate and time left.
pub(crate) struct Bar {
    started: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    /// A bar, if standard error is a terminal and the user wants one.
    pub(crate) fn new(quiet: bool) -> Option<Self> {
        (!quiet && io::stderr().is_terminal()).then(|| Self { started: Instant::now(), bar: OnceLock::new() })
    }

    /// Takes it away again.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn draw(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = if total.is_some() {
        "reading {bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} left"
    } else {
        "reading {spinner} {binary_bytes} {binary_bytes_per_sec}"
    };
    // A template that cannot be read leaves the standard bar, which is as good.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl Progress for Bar {
    fn bytes_read(&self, done: u64, total: Option<u64>) {
        if self.started.elapsed() >= PATIENCE {
            self.bar.get_or_init(|| draw(total).with_elapsed(self.started.elapsed())).set_position(done);
        }
    }
}
