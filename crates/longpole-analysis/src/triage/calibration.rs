//! How much of a host-bound verdict is the profiler's own: the caveat, and the numbers once an unprofiled step was timed.

use longpole_trace::Ns;

use crate::phrases::{clip, percent_of, time};
use crate::smells::{Facts, Smell};

/// A step timed without a profiler against the same step in the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The range that stands for a step.
    pub step: String,
    /// How many there are.
    pub steps: u64,
    /// A step in the trace: the median from start to start, or the median duration of fewer than three.
    pub profiled_step_ns: Ns,
    /// A step without a profiler, as given.
    pub unprofiled_step_ns: Ns,
    /// The first over the second.
    pub inflation: f64,
    /// Device time of a step, the mean.
    pub busy_per_step_ns: Option<Ns>,
    /// The same over the unprofiled step: how busy the device is without the profiler.
    pub busy_fraction: Option<f64>,
}

/// What is to be said about host times.
#[derive(Clone, Debug, PartialEq)]
pub struct HostClock {
    /// One sentence.
    pub note: String,
    /// The numbers, if a step was timed and the trace has steps.
    pub calibration: Option<Calibration>,
}

/// Says something if the run is host-bound or a step was timed.
pub(super) fn host_clock(facts: &Facts<'_, '_>, smells: &[Smell], unprofiled: Option<Ns>) -> Option<HostClock> {
    let is_host_bound = smells.iter().any(|smell| smell.code == "host_bound");
    match unprofiled.filter(|&step| step > Ns::ZERO) {
        Some(step) => Some(match calibrate(facts, step) {
            Some(calibration) => HostClock { note: told(&calibration), calibration: Some(calibration) },
            None => HostClock {
                note: "cannot calibrate: no range repeats here, so no step can be compared with the time given".to_owned(),
                calibration: None,
            },
        }),
        None if is_host_bound => {
            let step = facts.steps.as_ref().map_or_else(|| "step".to_owned(), |steps| clip(&steps.name));
            let note = format!(
                "profiling inflates host time, typically 1.2 to 3 times (measured on our own decoding), so the GPU idles less in a plain run: \
                 time one {step} without a profiler and pass --unprofiled-step-ms MS"
            );
            Some(HostClock { note, calibration: None })
        }
        None => None,
    }
}

fn calibrate(facts: &Facts<'_, '_>, unprofiled: Ns) -> Option<Calibration> {
    let steps = facts.steps.as_ref()?;
    let mut lengths: Vec<Ns> = match steps.instances.len() {
        0..3 => steps.instances.iter().map(|(_, interval)| interval.len()).collect(),
        _ => steps.instances.windows(2).map(|pair| pair[1].1.start - pair[0].1.start).collect(),
    };
    lengths.sort_unstable();
    let profiled = *lengths.get(lengths.len().checked_sub(1)? / 2)?;
    let rows = facts.tables.ranges.iter().filter(|row| row.name == steps.name);
    let busy: Option<Ns> = rows.clone().filter_map(|row| row.gpu_busy_ns).reduce(|a, b| a + b);
    let calls: u64 = rows.map(|row| row.calls).sum();
    let busy_per_step_ns = busy.filter(|_| calls > 0 && !facts.tables.is_cut).map(|busy| Ns(busy.get() / calls as i64));
    let ratio = |part: Ns| part.get() as f64 / unprofiled.get() as f64;
    Some(Calibration {
        step: steps.name.clone(),
        steps: steps.instances.len() as u64,
        profiled_step_ns: profiled,
        unprofiled_step_ns: unprofiled,
        inflation: ratio(profiled),
        busy_per_step_ns,
        busy_fraction: busy_per_step_ns.map(ratio),
    })
}

fn told(calibration: &Calibration) -> String {
    let Calibration { step, profiled_step_ns, unprofiled_step_ns, inflation, busy_per_step_ns, busy_fraction, .. } = calibration;
    let head = format!(
        "one {} takes {} under the profiler and {} without: inflated {inflation:.2} times",
        clip(step),
        time(*profiled_step_ns),
        time(*unprofiled_step_ns)
    );
    match (busy_per_step_ns, busy_fraction) {
        (Some(busy), Some(fraction)) if *fraction > 1.0 => {
            format!("{head}; but its GPU work alone takes {}, so the time given is not that of this step", time(*busy))
        }
        (Some(busy), Some(fraction)) => format!(
            "{head}; its {} of GPU work fill {} of the unprofiled step, so the GPU idles {} of it",
            time(*busy),
            percent_of(*fraction),
            percent_of(1.0 - fraction)
        ),
        _ => head,
    }
}
