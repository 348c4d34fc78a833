//! Every number that decides, in one table. `longpole explain` prints from it, so what is documented is what is applied.
//!
//! A threshold is a floating number with a unit and is only ever compared with, never added up.

use longpole_trace::Ns;

use crate::phrases::{count, percent_of, time};

/// What a threshold counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share, 0..1.
    Share,
    /// A number of things.
    Count,
    /// Nanoseconds.
    Time,
    /// How many times as much.
    Ratio,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Its name, as the texts of the smells refer to it.
    pub name: &'static str,
    /// Its value, in its unit.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// What it is a limit of.
    pub meaning: &'static str,
}

impl Threshold {
    /// As a number of things.
    pub(crate) const fn count(self) -> u64 {
        self.value as u64
    }

    /// As a time.
    pub(crate) const fn ns(self) -> Ns {
        Ns(self.value as i64)
    }

    /// Whether `part` of `whole` reaches a share.
    pub(crate) fn is_met(self, part: Ns, whole: Ns) -> bool {
        whole > Ns::ZERO && part.get() as f64 >= whole.get() as f64 * self.value
    }

    /// The value with its unit, for people.
    pub fn text(self) -> String {
        match self.unit {
            Unit::Share => percent_of(self.value),
            Unit::Count => count(self.value as u64),
            Unit::Time => time(Ns(self.value as i64)),
            Unit::Ratio => format!("{} times", self.value),
        }
    }
}

macro_rules! thresholds {
    ($($name:ident = $unit:ident $value:expr, $meaning:literal;)*) => {
        $(pub(crate) const $name: Threshold =
            Threshold { name: stringify!($name), value: $value, unit: Unit::$unit, meaning: $meaning };)*

        /// The table.
        pub const THRESHOLDS: &[Threshold] = &[$($name),*];
    };
}

thresholds! {
    // What a recording must have before anything is judged.
    LAUNCHES_TO_JUDGE = Count 20.0, "launch calls needed before missing device work means something";
    CAPTURE_SHARE = Share 0.9, "share of launches without device work that makes a recording of a graph capture";
    MISSING_SHARE = Share 0.5, "share of launches without device work that makes the device times lower bounds";
    FEW_ACTIVITIES = Count 10.0, "pieces of device work below which nothing is judged";
    UNNAMED_CALLS = Count 50.0, "operator or API calls without any named range that are worth naming";
    OVERHEAD_SHARE = Share 0.01, "share of wall taken by the profiler's own work that is worth a line";

    // Start-up.
    RANGED_SHARE = Share 0.5, "share of device time launched or captured inside ranges from which ranges tell who launches what";
    LOADING_PAUSE = Time 20_000_000.0, "how long a host that loads code is between two loads: libraries took up to 15 ms to prepare one in our recordings";
    SHORTEST_START_UP = Time 500_000.0, "nothing is initialised in less";
    LONG_CALL_SHARE = Share 0.02, "share of wall from which a single host call stands out";
    LONG_CALL_RATIO = Ratio 10.0, "how many times the median of its name a single host call must take";
    COLD_SHARE = Share 0.25, "share of wall from which start-up comes before every other experiment";
    COLD_STEP_RATIO = Ratio 2.0, "how many times the median of the others a first step must take";
    COLD_STEP_SHARE = Share 0.5, "share of wall that warming up before the recording can win from which a cold first step comes first";
    LOADING_SHARE = Share 0.005, "share of wall taken by compiling, autotuning or loading that is worth a line";

    // Steps.
    STEP_COVERS = Share 0.05, "share of wall that a repeated range covers to stand for a step";
    STEPS_TO_JUDGE = Count 3.0, "instances of a repeated range needed before one of them is unlike the others";
    SLOW_STEP_RATIO = Ratio 1.5, "how many times the median a slow step takes";
    CHURN_SHARE = Share 0.5, "share of later steps that bring a new input shape of an operator";

    // Waiting.
    COPY_LISTED = Share 0.01, "share of the device span in copies alone on the device that is worth a line";
    COPY_SHARE = Share 0.3, "share of the device span in copies alone on the device that makes them the experiment";
    COMMUNICATION_LISTED = Share 0.05, "share of the device span in collectives alone on the device that is worth a line";
    COMMUNICATION_SHARE = Share 0.2, "share of the device span in collectives alone on the device that makes them the experiment";
    MEMORY_CALLS = Count 10.0, "calls that get or return memory before it is a habit";
    MEMORY_SHARE = Share 0.2, "share of wall in such calls with the device idle that makes them the experiment";
    LOADER_LISTED = Share 0.05, "share of the device span idle behind a data loader that is worth a line";
    LOADER_SHARE = Share 0.2, "share of the device span idle behind a data loader that makes it the experiment";
    SYNC_CALLS = Count 5.0, "waits for the device before it is a habit";
    SYNC_SHARE = Share 0.2, "share of the device span in gaps that begin under a wait that makes it the experiment";
    BLOCKED_LISTED = Share 0.05, "share of wall that one blocking call waits with the device idle that is worth a line";
    BLOCKED_SHARE = Share 0.25, "share of wall that one blocking call waits with the device idle that makes it the experiment";
    STARVED_LISTED = Share 0.2, "share of the device span idle with the next work not launched that is worth a line";
    STARVED_SHARE = Share 0.4, "share of the device span idle with the next work not launched that makes it the experiment";

    // Operators and kernels.
    CHEAP_CALLS = Count 1_000.0, "calls of one operator before their number is the trouble";
    CHEAP_SHARE = Share 0.05, "share of wall that those calls take on the host";
    SMALL_KERNEL = Time 5_000.0, "a kernel shorter than this costs more to launch than to run";
    MANY_KERNELS = Count 1_000.0, "kernels before their number is the trouble";
    SMALL_SHARE = Share 0.3, "share of kernel time in small kernels";
    OPERATOR_SHARE = Share 0.4, "share of device time from which one operator owns the run";
    TRAFFIC_SHARE = Share 0.15, "share of device time in kernels that only move data";
    KERNEL_SHARE = Share 0.25, "share of device time from which one kernel matters";

    // The questions.
    HOST_ALONE_SHARE = Share 0.25, "share of wall that the host works with the device empty, from which they do not line up";
    PACKED_SHARE = Share 0.9, "busy share of its span from which a device is packed";
    CRITICAL_COPY_SHARE = Share 0.05, "share of the device span in copies alone on the device that puts them on the critical path";
    DENSE_SHARE = Share 0.7, "busy share of its span from which a prefill is one dense block";
}
