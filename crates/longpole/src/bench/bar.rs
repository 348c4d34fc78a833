//! The progress of measuring, on standard error, where someone is there to see it.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::exit::complain;
use longpole_report::printable;

/// A bar, or nothing where nobody looks.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Bar {
    /// Of so many steps.
    pub(crate) fn new(steps: usize, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self { bar: None, quiet };
        }
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        // A template that cannot be read leaves the standard bar, which is as good.
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar: Some(bar), quiet }
    }

    /// What goes on.
    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(printable(what).into_owned());
        }
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// There are more steps than was thought.
    pub(crate) fn more(&self, steps: usize) {
        if let Some(bar) = &self.bar {
            bar.inc_length(steps as u64);
        }
    }

    /// A line of a foreign program, which cannot act on the terminal.
    pub(crate) fn line(&self, line: &str) {
        if self.quiet || line.is_empty() {
            return;
        }
        let line = printable(line);
        match &self.bar {
            Some(bar) => bar.suspend(|| complain(&line)),
            None => complain(&line),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
