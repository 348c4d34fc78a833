//! Clocks, temperature, power and throttle reasons, read through NVML and never changed.

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

use crate::measure::State;

/// NVML's view of one device.
pub(super) struct Monitor {
    nvml: Nvml,
    uuid: String,
}

/// Reasons with the names they are printed by, which are NVML's own in lower case.
const REASONS: [(ThrottleReasons, &str); 9] = [
    (ThrottleReasons::GPU_IDLE, "gpu_idle"),
    (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "applications_clocks_setting"),
    (ThrottleReasons::SW_POWER_CAP, "sw_power_cap"),
    (ThrottleReasons::HW_SLOWDOWN, "hw_slowdown"),
    (ThrottleReasons::SYNC_BOOST, "sync_boost"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "sw_thermal_slowdown"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "hw_thermal_slowdown"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "hw_power_brake_slowdown"),
    (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display_clock_setting"),
];

impl Monitor {
    /// Finds the device; `None` where NVML is not there or does not know it (a part of a card, for example).
    pub(super) fn open(uuid: &str) -> Option<Self> {
        let monitor = Self { nvml: Nvml::init().ok()?, uuid: uuid.to_owned() };
        monitor.nvml.device_by_uuid(uuid).ok()?;
        Some(monitor)
    }

    /// Version of the driver.
    pub(super) fn driver(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    pub(super) fn read(&mut self) -> State {
        let Ok(device) = self.nvml.device_by_uuid(self.uuid.as_str()) else { return State::default() };
        let reasons = device.current_throttle_reasons().ok();
        State {
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_mw: device.power_usage().ok().map(u64::from),
            throttle: reasons.map(names),
        }
    }
}

fn names(reasons: ThrottleReasons) -> Vec<String> {
    REASONS.iter().filter(|(reason, _)| reasons.contains(*reason)).map(|(_, name)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_names_and_only_some_throttle() {
        let state = |reasons| State { throttle: Some(names(reasons)), ..State::default() };
        assert_eq!(state(ThrottleReasons::empty()).throttled(), Some(false));
        assert_eq!(state(ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING).throttled(), Some(false));
        let held = state(ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP);
        assert_eq!(held.throttle.as_deref(), Some(&["gpu_idle".to_owned(), "sw_power_cap".to_owned()][..]));
        assert_eq!(held.throttled(), Some(true));
        assert_eq!(names(ThrottleReasons::all()).len(), REASONS.len());
        assert_eq!(State::default().throttled(), None);
    }
}
