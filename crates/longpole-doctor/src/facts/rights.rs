//! Who may read the counters: the setting of the loaded driver, what this process may do, and settings that wait for a reboot.

use super::system::System;
use crate::machine::{Machine, configuration_files, join};

/// `CAP_SYS_ADMIN` in the capability masks of `/proc/self/status`.
const CAP_SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON`, since Linux 5.8.
const CAP_PERFMON: u32 = 38;

/// The option of the driver's module.
pub(crate) const OPTION: &str = "NVreg_RestrictProfilingToAdminUsers";

/// A place where the option is set for the next time the module is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file, or the kernel's command line.
    pub place: String,
    /// The module it is set for.
    pub module: String,
    /// Whether it restricts the counters to administrators.
    pub restricts: bool,
}

/// What this process may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether the loaded driver lets only administrators read the counters.
    pub admin_only: Option<bool>,
    /// Whether the effective user is root.
    pub is_root: Option<bool>,
    /// Whether the process has `CAP_SYS_ADMIN`.
    pub sys_admin: Option<bool>,
    /// Whether the process has `CAP_PERFMON`.
    pub perfmon: Option<bool>,
    /// Whether that counts only within a user namespace (rootless containers), which the driver does not take for an administrator.
    pub in_user_namespace: bool,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Option<i32>,
    /// The module that options have to name: `nvidia`, but `nvidia-current` on Debian.
    pub module: String,
    /// Where the option is set.
    pub settings: Vec<Setting>,
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Folders of `modprobe`, the first in force first.
const FOLDERS: [&str; 4] = ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"];

/// The lines of all settings of `modprobe`, with their files. A file hides those of the same name in later folders, as it does for `modprobe`.
fn settings_of_modprobe(machine: &dyn Machine) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for folder in FOLDERS {
        for name in configuration_files(machine, folder) {
            if seen.contains(&name) {
                continue;
            }
            let path = join(folder, &name);
            let text = machine.read(&path).unwrap_or_default();
            lines.extend(text.lines().map(|line| (path.clone(), line.trim().to_owned())));
            seen.push(name);
        }
    }
    lines
}

/// `install nvidia modprobe -i nvidia-current $CMDLINE_OPTS` says that options for `nvidia` reach nothing.
fn real_module(line: &str) -> Option<String> {
    let mut words =
        line.strip_prefix("install nvidia ")?.split_whitespace().skip_while(|word| *word != "-i" && *word != "--ignore-install");
    words.next()?;
    let module = words.next()?;
    module.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')).then(|| module.to_owned())
}

fn option(place: &str, line: &str) -> Option<Setting> {
    let mut words = line.strip_prefix("options ")?.split_whitespace();
    let module = words.next()?.to_owned();
    let value = words.map(|word| word.trim_matches('"')).filter_map(|word| word.strip_prefix(OPTION)?.strip_prefix('=')).next_back()?;
    Some(Setting { place: place.to_owned(), module, restricts: value.trim_matches('"') != "0" })
}

/// `nvidia.NVreg_...=0` on the kernel's command line.
fn option_of_kernel(word: &str) -> Option<Setting> {
    let (module, rest) = word.split_once('.')?;
    let value = rest.strip_prefix(OPTION)?.strip_prefix('=')?;
    Some(Setting { place: "the kernel's command line".to_owned(), module: module.replace('_', "-"), restricts: value != "0" })
}

impl Rights {
    pub(super) fn of(machine: &dyn Machine, system: &System) -> Self {
        let status = machine.read("/proc/self/status").unwrap_or_default();
        let capabilities = field(&status, "CapEff").and_then(|text| u64::from_str_radix(text, 16).ok());
        let has = |bit: u32| capabilities.map(|mask| mask >> bit & 1 == 1);
        let params = machine.read("/proc/driver/nvidia/params");
        let admin_only = params.as_deref().and_then(|text| field(text, "RmProfilingAdminOnly")).and_then(|text| text.parse::<u32>().ok());
        // The map of the first namespace covers all numbers; WSL 1 has none.
        let map = machine.read("/proc/self/uid_map").unwrap_or_default();
        let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
        // Inside of a container these files are the container's own and decide nothing.
        let lines = if system.container.is_some() { Vec::new() } else { settings_of_modprobe(machine) };
        let mut settings: Vec<Setting> = lines.iter().filter_map(|(place, line)| option(place, line)).collect();
        settings.extend(machine.read("/proc/cmdline").unwrap_or_default().split_whitespace().filter_map(option_of_kernel));
        settings.retain(|setting| setting.module.starts_with("nvidia"));
        Self {
            admin_only: admin_only.map(|value| value != 0),
            is_root: field(&status, "Uid").and_then(|text| text.split_whitespace().nth(1)).map(|uid| uid == "0"),
            sys_admin: has(CAP_SYS_ADMIN),
            perfmon: has(CAP_PERFMON),
            in_user_namespace: !map.trim().is_empty() && !is_whole,
            paranoid: machine.read("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.trim().parse().ok()),
            module: lines.iter().find_map(|(_, line)| real_module(line)).unwrap_or_else(|| "nvidia".to_owned()),
            settings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn rights(text: &str) -> Rights {
        let machine = Captured::parse(text).unwrap();
        Rights::of(&machine, &System::of(&machine))
    }

    #[test]
    fn capabilities_are_bits() {
        let of = |mask: &str| {
            let found = rights(&format!("@file /proc/self/status\nName:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t{mask}\n"));
            (found.is_root, found.sys_admin, found.perfmon)
        };
        assert_eq!(of("000001ffffffffff"), (Some(true), Some(true), Some(true)));
        assert_eq!(of("00000000a80425fb"), (Some(true), Some(false), Some(false)));
        assert_eq!(of("0000004000000000"), (Some(true), Some(false), Some(true)));
        assert_eq!(of("zz"), (Some(true), None, None));
        assert_eq!(rights("").is_root, None);
    }

    #[test]
    fn a_user_namespace_shows_itself_by_its_map() {
        let of = |map: &str| rights(&format!("@file /proc/self/uid_map\n{map}\n")).in_user_namespace;
        assert!(!of("         0          0 4294967295"));
        assert!(of("         0       1000          1\n         1     100000      65536"));
        assert!(!rights("").in_user_namespace);
    }

    #[test]
    fn the_setting_of_the_loaded_driver() {
        let of = |value: &str| rights(&format!("@file /proc/driver/nvidia/params\nX: 3\nRmProfilingAdminOnly: {value}\n")).admin_only;
        assert_eq!((of("1"), of("0"), of("x"), rights("").admin_only), (Some(true), Some(false), None, None));
    }

    #[test]
    fn options_are_found_where_they_wait() {
        let found = rights(
            "@file /etc/modprobe.d/a.conf\n# options nvidia NVreg_RestrictProfilingToAdminUsers=0\noptions nvidia NVreg_X=1 NVreg_RestrictProfilingToAdminUsers=0\n@file /usr/lib/modprobe.d/a.conf\noptions nvidia NVreg_RestrictProfilingToAdminUsers=1\n@file /etc/modprobe.d/b.txt\noptions nvidia NVreg_RestrictProfilingToAdminUsers=1\n@file /lib/modprobe.d/c.conf\noptions nvidia \"NVreg_RestrictProfilingToAdminUsers=1\"\noptions amdgpu x=1\n@file /proc/cmdline\nquiet nvidia.NVreg_RestrictProfilingToAdminUsers=0\n",
        );
        let settings: Vec<_> = found.settings.iter().map(|s| (s.place.as_str(), s.restricts)).collect();
        assert_eq!(settings, [("/etc/modprobe.d/a.conf", false), ("/lib/modprobe.d/c.conf", true), ("the kernel's command line", false)]);
        assert_eq!(found.module, "nvidia");
    }

    #[test]
    fn debian_calls_the_module_otherwise() {
        let found = rights(
            "@file /etc/modprobe.d/nvidia.conf\ninstall nvidia modprobe -i nvidia-current $CMDLINE_OPTS\ninstall nvidia-drm modprobe nvidia\n",
        );
        assert_eq!(found.module, "nvidia-current");
        assert_eq!(rights("@file /etc/modprobe.d/n.conf\ninstall nvidia /bin/false\n").module, "nvidia");
        assert_eq!(rights("@file /etc/modprobe.d/n.conf\ninstall nvidia modprobe -i $(reboot)\n").module, "nvidia");
    }

    #[test]
    fn files_of_a_container_decide_nothing() {
        let found = rights("@file /.dockerenv\n@file /etc/modprobe.d/a.conf\noptions nvidia NVreg_RestrictProfilingToAdminUsers=0\n");
        assert_eq!(found.settings, []);
    }
}
