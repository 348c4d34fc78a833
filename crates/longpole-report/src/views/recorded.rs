//! What a program did that was run and recorded for a report: which stretch of it the report is of.

use longpole_trace::Ns;

use crate::blocks::Block;
use crate::units::{plural, time};

/// A run that was recorded for a report.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The program, as the user named it.
    pub program: &'a str,
    /// The status that it ended with; 128 and the signal's number where one ended it.
    pub status: i32,
    /// What switched recording on and off: `profiler` or `nvtx:NAME`; absent where time did.
    pub range: Option<&'a str>,
    /// Windows that were recorded, where they can be counted.
    pub windows: Option<usize>,
    /// Untraced running before recording began, from when CUDA started; absent where nothing was waited for.
    pub delay: Option<Ns>,
    /// How long was recorded; absent where there was no limit.
    pub window: Option<Ns>,
    /// The recording, where it was kept.
    pub path: Option<&'a str>,
}

impl Recorded<'_> {
    /// The windows, in words.
    fn stretch(&self) -> String {
        let begin =
            self.delay.map_or_else(|| "from when CUDA started".to_owned(), |delay| format!("from {} after CUDA started", time(delay)));
        let length = self.window.map_or_else(|| "to the end".to_owned(), |window| format!("for {}", time(window)));
        let of_time = if self.delay.is_some() || self.window.is_some() { format!("; all of it {begin}, {length}") } else { String::new() };
        match (self.range, self.windows) {
            (Some("profiler"), _) => format!("from cudaProfilerStart to cudaProfilerStop{of_time}"),
            (Some(range), windows) => {
                let name = range.strip_prefix("nvtx:").unwrap_or(range);
                let windows = windows.map_or_else(|| "the ranges".to_owned(), |windows| plural(windows as u64, "range", "ranges"));
                format!("{windows} `{name}`, each a window{of_time}")
            }
            (None, _) => format!("{begin}, {length}"),
        }
    }

    /// Which stretch the report is of, and what of it is shown.
    pub(super) fn blocks(&self, last_half: bool) -> [Block; 2] {
        let each = if self.windows.is_some_and(|windows| windows > 1) { "each window" } else { "the window" };
        let shown = if last_half {
            format!("the second half of each group's steps in {each}; of the first half busy alone, in `halves`")
        } else {
            "all steps".to_owned()
        };
        let kept = self.path.map_or_else(|| "not kept (-o FILE keeps it)".to_owned(), |path| format!("kept in {path}"));
        let status = if self.status == 0 { String::new() } else { format!("ended with status {}", self.status) };
        let facts = vec![("window", self.stretch()), ("reported", shown), ("recording", kept)];
        [Block::Heading(format!("Recorded {}", self.program), status), Block::Facts(facts)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_said_in_words() {
        let time = Recorded {
            program: "engine",
            status: 0,
            range: None,
            windows: None,
            delay: Some(Ns(1_000_000_000)),
            window: Some(Ns(2_000_000_000)),
            path: None,
        };
        assert_eq!(time.stretch(), "from 1.000 s after CUDA started, for 2.000 s");
        assert_eq!(Recorded { delay: None, window: None, ..time }.stretch(), "from when CUDA started, to the end");
        let ranges = Recorded { range: Some("nvtx:window"), windows: Some(4), delay: None, window: None, ..time };
        assert_eq!(ranges.stretch(), "4 ranges `window`, each a window");
        assert_eq!(
            Recorded { delay: Some(Ns(500_000_000)), windows: None, ..ranges }.stretch(),
            "the ranges `window`, each a window; all of it from 500.000 ms after CUDA started, to the end"
        );
        assert_eq!(Recorded { range: Some("profiler"), ..ranges }.stretch(), "from cudaProfilerStart to cudaProfilerStop");
    }
}
