//! What is compared: samples of a benchmark, process by process.

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of one run of the benchmark, in picoseconds.
    pub time_ps: i64,
    /// Whether the device held its clocks down while it was taken.
    pub throttled: bool,
}

/// One side of a comparison: what each process measured, samples in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(pub Vec<Vec<Sample>>);

impl Runs {
    /// Of one process without throttled samples, for which the times alone are known.
    pub fn of_times(times_ps: &[i64]) -> Self {
        Self(vec![times_ps.iter().map(|&time_ps| Sample { time_ps, throttled: false }).collect()])
    }

    fn all(&self) -> impl Iterator<Item = Sample> + '_ {
        self.0.iter().flatten().copied()
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Number of throttled ones.
    pub fn throttled(&self) -> usize {
        self.all().filter(|sample| sample.throttled).count()
    }

    /// Share of throttled samples, 0..1; 0 without samples.
    pub fn throttled_share(&self) -> f64 {
        self.throttled() as f64 / self.samples().max(1) as f64
    }

    /// The same without throttled samples, and without processes that hold no other.
    #[must_use]
    pub fn without_throttled(&self) -> Self {
        let kept = |run: &Vec<Sample>| run.iter().copied().filter(|sample| !sample.throttled).collect::<Vec<_>>();
        Self(self.0.iter().map(kept).filter(|run| !run.is_empty()).collect())
    }

    /// All times, process after process.
    pub fn times_ps(&self) -> Vec<i64> {
        self.all().map(|sample| sample.time_ps).collect()
    }
}
