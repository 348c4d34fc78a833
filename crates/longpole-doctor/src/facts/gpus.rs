//! The GPUs, from `nvidia-smi --query-gpu`. Serial numbers and UUIDs are not asked for.

use super::version::Version;
use crate::machine::{Machine, Outcome};

/// What is asked, in the order of the columns. The name comes last, since it may hold a comma.
const FIELDS: [&str; 16] = [
    "index",
    "compute_cap",
    "mig.mode.current",
    "persistence_mode",
    "pstate",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "clocks.max.mem",
    REASONS,
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "memory.total",
    "utilization.gpu",
    "name",
];

const REASONS: &str = "clocks_event_reasons.active";

/// What drivers before 535 call it.
const OLD_REASONS: &str = "clocks_throttle_reasons.active";

/// More GPUs than a machine has.
const MOST_GPUS: usize = 256;

/// One GPU; what it does not say is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub compute: Option<Version>,
    /// Whether it is divided into instances (MIG).
    pub mig: Option<bool>,
    /// Whether the driver stays loaded while nothing uses it.
    pub persistence: Option<bool>,
    /// Performance state, `P0` is the fastest.
    pub pstate: Option<String>,
    /// Clock of the multiprocessors, in MHz.
    pub sm_mhz: Option<u32>,
    /// The highest they can have.
    pub max_sm_mhz: Option<u32>,
    /// Clock of the memory, in MHz.
    pub memory_mhz: Option<u32>,
    /// The highest it can have.
    pub max_memory_mhz: Option<u32>,
    /// Why clocks are below their highest: bits as NVML defines them.
    pub reasons: Option<u64>,
    /// Temperature, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power that it draws, in watts.
    pub power_w: Option<u32>,
    /// Power that it may draw, in watts.
    pub power_limit_w: Option<u32>,
    /// Its memory, in MiB.
    pub memory_mib: Option<u64>,
    /// Share of the last second in which something ran on it, in percent.
    pub utilization_pct: Option<u32>,
}

/// A value of the table; `[N/A]`, `[Not Supported]`, `[Unknown Error]`, `ERR!` and the like are none.
fn value(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !text.starts_with('[') && !text.starts_with("ERR") && text != "N/A").then_some(text)
}

fn number(text: &str) -> Option<u32> {
    // Power has decimals.
    let whole = value(text)?.split(['.', ' ']).next()?;
    whole.parse().ok()
}

fn switch(text: &str) -> Option<bool> {
    match value(text)? {
        "Enabled" => Some(true),
        "Disabled" => Some(false),
        _ => None,
    }
}

/// One line of the table, whose columns are `fields`.
fn parse(line: &str, fields: &[&str]) -> Option<Gpu> {
    let mut gpu = Gpu::default();
    let mut cells = line.splitn(fields.len(), ',');
    for field in fields {
        let cell = cells.next()?;
        match *field {
            "index" => gpu.index = number(cell)?,
            "compute_cap" => gpu.compute = value(cell).and_then(Version::leading),
            "mig.mode.current" => gpu.mig = switch(cell),
            "persistence_mode" => gpu.persistence = switch(cell),
            "pstate" => gpu.pstate = value(cell).map(|text| text.chars().take(4).collect()),
            "clocks.sm" => gpu.sm_mhz = number(cell),
            "clocks.max.sm" => gpu.max_sm_mhz = number(cell),
            "clocks.mem" => gpu.memory_mhz = number(cell),
            "clocks.max.mem" => gpu.max_memory_mhz = number(cell),
            REASONS | OLD_REASONS => {
                gpu.reasons = value(cell).and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
            }
            "temperature.gpu" => gpu.temperature_c = number(cell),
            "power.draw" => gpu.power_w = number(cell),
            "power.limit" => gpu.power_limit_w = number(cell),
            "memory.total" => gpu.memory_mib = number(cell).map(u64::from),
            "utilization.gpu" => gpu.utilization_pct = number(cell),
            _ => gpu.name = value(cell).unwrap_or("NVIDIA GPU").chars().take(80).collect(),
        }
    }
    Some(gpu)
}

/// The field that a driver does not know, out of its complaint.
fn unknown_field<'a>(outcome: &Outcome, fields: &[&'a str]) -> Option<&'a str> {
    let said = outcome.said();
    let line = said.lines().find(|line| line.contains("is not a valid field"))?;
    let named = line.split('"').nth(1)?;
    fields.iter().copied().find(|field| *field == named)
}

/// All GPUs that the driver shows.
pub(super) fn of(machine: &dyn Machine, smi: &str) -> Vec<Gpu> {
    let mut fields: Vec<&str> = FIELDS.to_vec();
    // An old driver refuses the whole question for one field it does not know: each time it is left out, so that this ends.
    while !fields.is_empty() {
        let query = format!("--query-gpu={}", fields.join(","));
        let outcome = machine.run(smi, &[&query, "--format=csv,noheader,nounits"]);
        if let Some(output) = outcome.output() {
            return output.lines().take(MOST_GPUS).filter_map(|line| parse(line, &fields)).collect();
        }
        match unknown_field(&outcome, &fields) {
            Some(REASONS) => fields.iter_mut().filter(|field| **field == REASONS).for_each(|field| *field = OLD_REASONS),
            Some(unknown) => fields.retain(|field| *field != unknown),
            None => break,
        }
    }
    Vec::new()
}

/// MIG instances that CUDA can use, over all GPUs.
pub(super) fn mig_instances(machine: &dyn Machine, smi: &str) -> Option<usize> {
    let outcome = machine.run(smi, &["-L"]);
    Some(outcome.output()?.lines().filter(|line| line.trim_start().starts_with("MIG ") && line.starts_with(' ')).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    const H200: &str =
        "0, 9.0, Disabled, Enabled, P0, 1980, 1980, 3201, 3201, 0x0000000000000001, 31, 76.21, 700.00, 143771, 0, NVIDIA H200";

    fn query(fields: &[&str]) -> String {
        format!("@run nvidia-smi --query-gpu={} --format=csv,noheader,nounits\n", fields.join(","))
    }

    fn gpus(runs: &str) -> Vec<Gpu> {
        let text = format!("@program /usr/bin/nvidia-smi\n{runs}");
        of(&Captured::parse(&text).unwrap(), "/usr/bin/nvidia-smi")
    }

    #[test]
    fn every_column_is_read() {
        let found = gpus(&format!("{}{H200}\n", query(&FIELDS)));
        let [gpu] = &found[..] else { panic!("{found:?}") };
        assert_eq!((gpu.name.as_str(), gpu.compute.clone(), gpu.reasons), ("NVIDIA H200", Some(Version::of(&[9, 0])), Some(1)));
        assert_eq!((gpu.mig, gpu.persistence, gpu.sm_mhz, gpu.power_w), (Some(false), Some(true), Some(1980), Some(76)));
        assert_eq!((gpu.memory_mib, gpu.utilization_pct, gpu.pstate.as_deref()), (Some(143_771), Some(0), Some("P0")));
    }

    #[test]
    fn what_a_gpu_does_not_say_is_absent() {
        let line =
            "1, 12.0, [N/A], [Not Supported], ERR!, N/A, [Unknown Error], , 99999999999, 0xzz, [N/A], [N/A], [N/A], [N/A], [N/A], Odd, GPU";
        let found = gpus(&format!("{}{line}\nnonsense\n\n", query(&FIELDS)));
        let [gpu] = &found[..] else { panic!("{found:?}") };
        let expected = Gpu { index: 1, name: "Odd, GPU".to_owned(), compute: Some(Version::of(&[12, 0])), ..Gpu::default() };
        assert_eq!(*gpu, expected);
    }

    #[test]
    fn fields_that_a_driver_does_not_know_are_left_out() {
        let refuse = |field: &str| format!("Field \"{field}\" is not a valid field to query.\n\n@exit 2\n");
        let renamed: Vec<&str> = FIELDS.iter().map(|field| if *field == REASONS { OLD_REASONS } else { field }).collect();
        let shorter: Vec<&str> = renamed.iter().copied().filter(|field| *field != "compute_cap").collect();
        let runs =
            [query(&FIELDS), refuse(REASONS), query(&renamed), refuse("compute_cap"), query(&shorter), H200.replacen(" 9.0,", "", 1)];
        let found = gpus(&runs.concat());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].compute.clone(), found[0].reasons, found[0].sm_mhz), (None, Some(1), Some(1980)));
        assert_eq!(gpus(&[query(&FIELDS), refuse("made_up")].concat()), [], "a complaint about what was not asked ends it");
        assert_eq!(gpus(&[query(&FIELDS), "@hangs\n".to_owned()].concat()), []);
    }

    #[test]
    fn instances_are_counted() {
        let text = "@program /s\n@run s -L\nGPU 0: NVIDIA A100 (UUID: GPU-0)\n  MIG 3g.20gb     Device  0: (UUID: MIG-0)\n  MIG 3g.20gb     Device  1: (UUID: MIG-1)\n";
        assert_eq!(mig_instances(&Captured::parse(text).unwrap(), "/s"), Some(2));
    }
}
