//! What is said of benchmarks: plain data, made by the command line, shown by [`views`](crate::views) and [`wire`](crate::wire).
//!
//! Times are picoseconds of one run: whole nanoseconds would round a kernel of two microseconds by as much as a verdict may hang on.

/// Where, when and of what benchmarks were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchSource {
    /// Name of the suite.
    pub suite: String,
    /// Its version.
    pub suite_version: Option<String>,
    /// Name of the device.
    pub device: Option<String>,
    /// Version of the driver.
    pub driver: Option<String>,
    /// Version of CUDA.
    pub cuda: Option<String>,
    /// Median, lowest and highest clock of the multiprocessors over all samples, in MHz.
    pub sm_clock_mhz: Option<(u32, u32, u32)>,
    /// Median clock of the memory, in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// When it was begun, UTC.
    pub date: String,
    /// The commit.
    pub revision: Option<String>,
    /// Whether files differed from it.
    pub dirty: Option<bool>,
    /// Where the results are kept.
    pub path: Option<String>,
    /// Whether everything that was asked for was tried.
    pub complete: bool,
}

/// A share of what the device was measured to reach.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchShare {
    /// 0..1; a little above 1 where the peak was measured on a worse day.
    pub fraction: f64,
    /// Of what: `memory`, or a type of numbers such as `bf16`.
    pub of: String,
}

/// One benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchRow {
    /// Its key.
    pub key: String,
    /// Median time of one run.
    pub median_ps: Option<i64>,
    /// Distance between the quartiles over the median.
    pub spread_fraction: Option<f64>,
    /// Samples.
    pub samples: u64,
    /// Processes that took them.
    pub processes: u64,
    /// Throttled samples; absent where nobody looked.
    pub throttled: Option<u64>,
    /// Bytes that a run has to move.
    pub bytes: Option<u64>,
    /// Operations of a run.
    pub flops: Option<u64>,
    /// Bytes over the median.
    pub bytes_per_s: Option<f64>,
    /// Operations over the median.
    pub flops_per_s: Option<f64>,
    /// The larger of its shares of the measured peaks.
    pub peak: Option<BenchShare>,
    /// `events` or `graph`.
    pub method: Option<&'static str>,
    /// `cold` or `warm`.
    pub l2: Option<&'static str>,
    /// Whether its result was right.
    pub correct: Option<bool>,
    /// Why no more samples were taken.
    pub stopped_by: Option<&'static str>,
    /// Median clock of the multiprocessors, in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Why it could not be measured.
    pub failed: Option<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A run of benchmarks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchReport {
    /// Where and with what.
    pub source: BenchSource,
    /// Benchmarks, in the order of measuring.
    pub rows: Vec<BenchRow>,
    /// The file of measured peaks that shares are of.
    pub peaks: Option<String>,
    /// What is to be said besides.
    pub notes: Vec<String>,
}

/// A benchmark that a suite can measure.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchListed {
    /// Its key.
    pub key: String,
    /// The model.
    pub model: String,
    /// The operation.
    pub op: String,
    /// The phase.
    pub phase: Option<String>,
    /// Sizes by name.
    pub shape: Option<Vec<(String, u64)>>,
    /// Bytes that a run has to move.
    pub bytes: Option<u64>,
    /// Operations of a run.
    pub flops: Option<u64>,
}

/// What a suite can measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchList {
    /// Name of the suite.
    pub suite: String,
    /// Its version.
    pub suite_version: Option<String>,
    /// The chosen benchmarks.
    pub rows: Vec<BenchListed>,
    /// How many there are in all.
    pub total: u64,
}

/// One side of a compared benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BenchSide {
    /// Median time of one run.
    pub median_ps: i64,
    /// Samples compared.
    pub samples: u64,
    /// Processes that took them.
    pub processes: u64,
    /// Throttled samples among those taken.
    pub throttled: u64,
    /// Median clock of the multiprocessors, in MHz.
    pub sm_clock_mhz: Option<u32>,
}

/// A benchmark compared.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchCompared {
    /// Its key.
    pub key: String,
    /// The first build.
    pub before: BenchSide,
    /// The second.
    pub after: BenchSide,
    /// The second over the first.
    pub ratio: Option<f64>,
    /// The interval of the ratio of the two builds, with what two processes of one build may differ by.
    pub interval: Option<(f64, f64)>,
    /// The two processes that were measured differ, by no more than two processes of the same build may.
    pub within_processes: bool,
    /// The smallest increase and decrease that the data could show, as shares.
    pub smallest_effect: Option<(f64, f64)>,
    /// Rounds of processes that took turns; 0 where they did not.
    pub rounds: u64,
    /// The verdict.
    pub verdict: &'static str,
    /// Why there is none, as a code.
    pub doubt: Option<&'static str>,
    /// What else differs.
    pub notes: Vec<String>,
}

/// A benchmark that only one side has, or that failed on one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchUnpaired {
    /// Its key.
    pub key: String,
    /// Whether the first side has it.
    pub in_before: bool,
    /// Whether the second has it.
    pub in_after: bool,
    /// Why one has it not, where that is known.
    pub why: Option<String>,
}

/// Two runs compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchComparison {
    /// The first.
    pub before: BenchSource,
    /// The second.
    pub after: BenchSource,
    /// Benchmarks of both, in the order of the second.
    pub rows: Vec<BenchCompared>,
    /// Benchmarks of one.
    pub unpaired: Vec<BenchUnpaired>,
    /// What else differs between the two, in sentences.
    pub flags: Vec<String>,
    /// Benchmarks of the second that failed or had a wrong result, in whichever of its processes.
    pub failed: Vec<String>,
    /// Benchmarks that were measured again, and how often at most.
    pub again: Option<(u64, u64)>,
}

impl BenchComparison {
    /// Number of benchmarks with a verdict.
    pub fn count_of(&self, verdict: &str) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }
}

/// A measured peak.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchPeak {
    /// `copy_bytes_per_s` or `flops_per_s`.
    pub kind: &'static str,
    /// Type of the numbers.
    pub dtype: Option<String>,
    /// The rate, per second.
    pub value: f64,
}

/// The peaks of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchPeaks {
    /// The device.
    pub device: Option<String>,
    /// Version of the driver.
    pub driver: Option<String>,
    /// Bytes of its second-level cache.
    pub cache_bytes: Option<u64>,
    /// What was measured.
    pub rows: Vec<BenchPeak>,
    /// The file that `--peaks` takes.
    pub path: Option<String>,
    /// Whether it lies where `bench run` looks by itself.
    pub is_usual: bool,
}
