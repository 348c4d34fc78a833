//! The progress of measuring, on standard error, where someone is there to see it.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Characters of a foreign line that are shown: whoever prints more than that at once does not mean it to be read.
const MOST_SHOWN: usize = 1000;

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
        let line = printable(&shortened(line)).into_owned();
        match &self.bar {
            Some(bar) => bar.suspend(|| complain(&line)),
            None => complain(&line),
        }
    }
}

/// The beginning of a long line, with how long it is.
fn shortened(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(MOST_SHOWN) {
        None => line.into(),
        Some((end, _)) => format!("{}... ({} bytes)", &line[..end], line.len()).into(),
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_shortened_between_characters() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"ä".repeat(1 << 19)).into_owned();
        assert!(long.chars().count() < MOST_SHOWN + 30 && long.ends_with("ä... (1048576 bytes)"), "{}", long.len());
    }
}
