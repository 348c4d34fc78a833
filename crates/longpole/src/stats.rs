//! What a run cost, for `--stats`.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::alloc;
use crate::args::StatsFormat;
use crate::exit::complain;
use longpole_report::{bytes, count, time};
use longpole_trace::Ns;

/// Times of one run.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    read: Duration,
    analysed: Option<Duration>,
}

/// What is printed. The benchmark reads the JSON form, so keys are only added.
#[derive(Serialize)]
struct Stats {
    bytes: u64,
    events: u64,
    read_ns: u64,
    analysis_ns: u64,
    output_ns: u64,
    total_ns: u64,
    peak_heap_bytes: u64,
    peak_rss_bytes: Option<u64>,
    threads: usize,
}

impl Stopwatch {
    /// Starts counting.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), read: Duration::ZERO, analysed: None }
    }

    /// The trace is in memory.
    pub(crate) fn has_read(&mut self) {
        self.read = self.started.elapsed();
    }

    /// The result is there; what follows is output.
    pub(crate) fn has_analysed(&mut self) {
        self.analysed = Some(self.started.elapsed());
    }

    /// Prints what it cost on standard error.
    pub(crate) fn report(&self, format: StatsFormat, input_bytes: u64, events: u64) {
        let total = self.started.elapsed();
        let analysed = self.analysed.unwrap_or(total);
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let stats = Stats {
            bytes: input_bytes,
            events,
            read_ns: ns(self.read),
            analysis_ns: ns(analysed.saturating_sub(self.read)),
            output_ns: ns(total.saturating_sub(analysed)),
            total_ns: ns(total),
            peak_heap_bytes: alloc::peak_bytes(),
            peak_rss_bytes: peak_rss_bytes(),
            threads: rayon::current_num_threads(),
        };
        complain(&match format {
            StatsFormat::Json => serde_json::to_string(&stats).unwrap_or_default(),
            StatsFormat::Text => stats.line(),
        });
    }
}

impl Stats {
    fn line(&self) -> String {
        let show = |ns: u64| time(Ns(ns.min(i64::MAX as u64) as i64));
        let size = |n: u64| bytes(n.min(i64::MAX as u64) as i64);
        let rate = if self.read_ns == 0 { 0.0 } else { self.bytes as f64 / self.read_ns as f64 };
        format!(
            "stats: {} and {} events read in {} ({rate:.2} GB/s), analysed in {}, printed in {}; peak heap {}, peak RSS {}; {} threads",
            size(self.bytes),
            count(self.events),
            show(self.read_ns),
            show(self.analysis_ns),
            show(self.output_ns),
            size(self.peak_heap_bytes),
            self.peak_rss_bytes.map_or_else(|| "unknown".to_owned(), size),
            self.threads,
        )
    }
}

/// The most memory the process had resident, where the system tells (Linux).
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
