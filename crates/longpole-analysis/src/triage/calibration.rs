//! How much of what is said of the host is the profiler's own, once a step was timed without it.

use longpole_trace::Ns;

use super::Tables;
use crate::phrases::{percent_of, time};
use crate::smells::{Evidence, Facts, host};
use crate::steps::{Instance, Steps, median, median_length};

/// A step timed without a profiler against the same step in the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The range that stands for a step.
    pub step: String,
    /// How many there are, a cold first one left out.
    pub steps: u64,
    /// A step in the trace: the median from start to start, or the median duration of fewer than three.
    pub profiled_step_ns: Ns,
    /// A step without a profiler, as given.
    pub unprofiled_step_ns: Ns,
    /// The first over the second.
    pub inflation: f64,
    /// Device time of a step, the median; the mean over the devices that a rank uses.
    pub busy_per_step_ns: Option<Ns>,
    /// The same over the unprofiled step: how busy the device is without the profiler.
    pub busy_fraction: Option<f64>,
}

/// What is to be said about host times.
#[derive(Clone, Debug, PartialEq)]
pub struct HostClock {
    /// One sentence.
    pub note: String,
    /// The numbers, if the trace has steps.
    pub calibration: Option<Calibration>,
}

/// Says something if a step was timed.
pub(super) fn host_clock(facts: &Facts<'_, '_>, unprofiled: Option<Ns>) -> Option<HostClock> {
    unprofiled.filter(|&step| step > Ns::ZERO)?;
    Some(match &facts.calibration {
        Some(calibration) => HostClock { note: told(facts, calibration), calibration: Some(calibration.clone()) },
        None => HostClock {
            note: "cannot calibrate: no range repeats here, so no step can be compared with the time given".to_owned(),
            calibration: None,
        },
    })
}

impl Calibration {
    /// Compares the steps of a trace with one that was timed.
    pub(crate) fn of(tables: &Tables<'_, '_>, evidence: &Evidence, steps: &Steps, unprofiled: Ns) -> Option<Self> {
        let is_cold = Steps::cold_first(&steps.instances, &evidence.profiler).is_some();
        let instances = &steps.instances[usize::from(is_cold)..];
        let profiled = match instances.len() {
            0..3 => median_length(instances),
            _ => median(instances.windows(2).map(|pair| pair[1].1.start - pair[0].1.start))?,
        };
        let rank = tables.index.trace().thread_rank(steps.thread) as usize;
        let devices = evidence.pace.devices.iter().filter(|device| device.rank == rank).count().max(1);
        let busy = |&(range, _): &Instance| tables.range_work.get(range.index()).and_then(|work| work.busy_ns).unwrap_or_default();
        let busy = median(instances.iter().map(busy)).filter(|&busy| busy > Ns::ZERO && !tables.is_cut);
        let busy_per_step_ns = busy.map(|busy| Ns(busy.get() / devices as i64));
        let ratio = |part: Ns| part.get() as f64 / unprofiled.get() as f64;
        Some(Self {
            step: steps.name.clone(),
            steps: instances.len() as u64,
            profiled_step_ns: profiled,
            unprofiled_step_ns: unprofiled,
            inflation: ratio(profiled),
            busy_per_step_ns,
            busy_fraction: busy_per_step_ns.map(ratio),
        })
    }

    /// The part of a step's idle time that is left without the profiler; `None` where the time given cannot be that of the step.
    pub(crate) fn idle_left(&self) -> Option<f64> {
        let busy = self.busy_per_step_ns?;
        let (profiled, unprofiled) = (self.profiled_step_ns - busy, self.unprofiled_step_ns - busy);
        let is_possible = Ns::ZERO <= unprofiled && unprofiled <= profiled && Ns::ZERO < profiled;
        is_possible.then(|| unprofiled.get() as f64 / profiled.get() as f64)
    }
}

fn told(facts: &Facts<'_, '_>, calibration: &Calibration) -> String {
    let Calibration { step, profiled_step_ns, unprofiled_step_ns, inflation, busy_per_step_ns, busy_fraction, .. } = calibration;
    let head =
        format!("one {} takes {} under the profiler and {} without", facts.clip(step), time(*profiled_step_ns), time(*unprofiled_step_ns));
    if unprofiled_step_ns > profiled_step_ns {
        return format!("{head}: a profiler makes no step faster, so the time given is not that of this step");
    }
    let head = format!("{head}: inflated {inflation:.2} times");
    match (busy_per_step_ns, busy_fraction) {
        (Some(busy), Some(fraction)) if *fraction > 1.0 => {
            format!("{head}; but its GPU work alone takes {}, so the time given is not that of this step", time(*busy))
        }
        (Some(busy), Some(fraction)) => format!(
            "{head}; its {} of GPU work fill {} of the unprofiled step, so the GPU idles {} of it, and what the suspects could win is restated by that{}",
            time(*busy),
            percent_of(*fraction),
            percent_of(1.0 - fraction),
            if host::is_profilers(facts) { " (host_bound is not listed: the idle time is the profiler's)" } else { "" }
        ),
        _ => head,
    }
}
