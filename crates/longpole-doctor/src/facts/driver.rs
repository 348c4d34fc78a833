//! The kernel module of the driver, and how far `nvidia-smi` gets with it.

use super::version::Version;
use crate::machine::{Machine, Outcome};

/// How `nvidia-smi` fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Smi {
    /// It is not installed.
    Missing,
    /// It answers.
    Works,
    /// The libraries are of another version than the loaded module.
    Mismatch,
    /// The driver runs and finds no GPU.
    NoDevices,
    /// It finds no driver to talk to.
    NoDriver,
    /// It did not answer in time.
    TimedOut,
    /// Something else, in its own words.
    Failed(String),
}

/// The driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Version of the loaded module, or as `nvidia-smi` says where there is none to see (WSL).
    pub version: Option<Version>,
    /// Version of the libraries that `nvidia-smi` uses, where it complains about them.
    pub library: Option<Version>,
    /// Whether the module is the open one.
    pub is_open: Option<bool>,
    /// The newest CUDA that the driver runs.
    pub cuda: Option<Version>,
    /// How `nvidia-smi` fares.
    pub smi: Smi,
    /// Where it is.
    pub smi_path: Option<String>,
    /// NVIDIA display and compute devices on the PCI bus.
    pub devices_on_bus: usize,
    /// Whether nouveau, the driver that runs no CUDA, is loaded.
    pub nouveau: bool,
}

/// The part of a complaint that fits a line.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing");
    line.chars().take(160).collect()
}

fn judge(outcome: &Outcome) -> Smi {
    let said = match outcome {
        Outcome::Missing => return Smi::Missing,
        Outcome::TimedOut => return Smi::TimedOut,
        Outcome::NotStarted(why) => return Smi::Failed(first_line(why)),
        Outcome::Ended { .. } => outcome.said(),
    };
    if said.contains("version mismatch") {
        Smi::Mismatch
    } else if said.contains("No devices were found") {
        Smi::NoDevices
    } else if said.contains("communicate with the NVIDIA driver") || said.contains("Driver Not Loaded") {
        Smi::NoDriver
    } else if outcome.output().is_some() {
        Smi::Works
    } else {
        Smi::Failed(first_line(&said))
    }
}

/// The value behind a label of `nvidia-smi -q`.
fn labelled(text: &str, is_label: impl Fn(&str) -> bool) -> Option<&str> {
    let pairs = text.lines().filter_map(|line| line.split_once(" : "));
    pairs.into_iter().find(|(label, _)| is_label(label.trim())).map(|(_, value)| value.trim())
}

fn devices_on_bus(machine: &dyn Machine) -> usize {
    let folder = "/sys/bus/pci/devices";
    let of = |device: &String, file: &str| machine.read(&format!("{folder}/{device}/{file}")).unwrap_or_default();
    // 0x10de is NVIDIA, class 0x03 a display or 3D controller.
    machine.list(folder).iter().filter(|d| of(d, "vendor").trim() == "0x10de" && of(d, "class").starts_with("0x03")).count()
}

/// Where a system keeps the program, when it is not on the PATH.
const SMI_PLACES: [&str; 3] = ["/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi"];

impl Driver {
    pub(super) fn of(machine: &dyn Machine) -> Self {
        let smi_path = machine.on_path("nvidia-smi").or_else(|| SMI_PLACES.map(str::to_owned).into_iter().find(|p| machine.is_program(p)));
        // The log of one short topic has the versions, and no process of anybody.
        let outcome = smi_path.as_ref().map_or(Outcome::Missing, |path| machine.run(path, &["-q", "-d", "COMPUTE"]));
        let smi = judge(&outcome);
        let said = outcome.said();
        let log = if smi == Smi::Works { said.as_str() } else { "" };
        let module = machine.read("/proc/driver/nvidia/version");
        let line = module.as_deref().and_then(|text| text.lines().find(|line| line.contains("NVRM"))).unwrap_or_default();
        let loaded = Version::find(line, 2).or_else(|| Version::leading(machine.read("/sys/module/nvidia/version")?.trim()));
        let cuda = labelled(log, |label| label.starts_with("CUDA") && label.ends_with("Version"));
        let modules = machine.read("/proc/modules").unwrap_or_default();
        Self {
            version: loaded.or_else(|| Version::leading(labelled(log, |label| label == "Driver Version")?)),
            library: said
                .lines()
                .find_map(|line| line.trim().strip_prefix("NVML library version:"))
                .and_then(|v| Version::leading(v.trim())),
            is_open: module.is_some().then(|| line.contains("Open Kernel Module")),
            cuda: cuda.and_then(Version::leading),
            smi,
            smi_path,
            devices_on_bus: devices_on_bus(machine),
            nouveau: modules.lines().any(|line| line.starts_with("nouveau ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn driver(run: &str) -> Driver {
        let text = format!("@env PATH=/usr/bin\n@program /usr/bin/nvidia-smi\n@run nvidia-smi -q -d COMPUTE\n{run}");
        Driver::of(&Captured::parse(&text).unwrap())
    }

    #[test]
    fn versions_come_from_the_module_and_the_log() {
        let log = "Driver Version     : 580.95.05\nCUDA Version       : 13.0\n";
        let works = driver(log);
        assert_eq!((works.smi, works.version.unwrap().to_string().as_str()), (Smi::Works, "580.95.05"));
        assert_eq!(works.cuda, Some(Version::of(&[13, 0])));
        let module = "@file /proc/driver/nvidia/version\nNVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build\nGCC version: 13.2.0\n";
        let both = driver(&format!("{log}{module}"));
        assert_eq!((both.version.unwrap().to_string().as_str(), both.is_open), ("575.57.08", Some(true)));
        let newer = driver("KMD Version        : 595.10\nCUDA UMD Version   : 13.2\n");
        assert_eq!(newer.cuda, Some(Version::of(&[13, 2])));
        assert_eq!(driver("CUDA Version : Not Found\n").cuda, None);
    }

    #[test]
    fn troubles_are_told_apart() {
        let mismatch = driver("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n@exit 18\n");
        assert_eq!((mismatch.smi, mismatch.library), (Smi::Mismatch, Some(Version::of(&[580, 95]))));
        assert_eq!(driver("No devices were found\n@exit 6\n").smi, Smi::NoDevices);
        let lost = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that ...\n@exit 9\n";
        assert_eq!(driver(lost).smi, Smi::NoDriver);
        assert_eq!(driver("@hangs\n").smi, Smi::TimedOut);
        assert_eq!(driver("@exit 1\n@stderr\nsegmented\nfault\n").smi, Smi::Failed("segmented".to_owned()));
        assert_eq!(Driver::of(&Captured::default()).smi, Smi::Missing);
    }

    #[test]
    fn the_bus_is_counted_by_vendor_and_class() {
        let bus = "@file /sys/bus/pci/devices/0000:01:00.0/vendor\n0x10de\n@file /sys/bus/pci/devices/0000:01:00.0/class\n0x030200\n@file /sys/bus/pci/devices/0000:01:00.1/vendor\n0x10de\n@file /sys/bus/pci/devices/0000:01:00.1/class\n0x040300\n";
        assert_eq!(driver(bus).devices_on_bus, 1);
    }
}
