//! What builds the initramfs here, and whether the driver is loaded from it.
//!
//! An option of a module that is loaded from the initramfs is read from the copy of `/etc/modprobe.d` inside of it, so that image has to be
//! built anew. Where the driver is loaded later, the option is read from the disk and nothing has to be built.

use crate::machine::{Machine, configuration_files, join};

/// What builds the initramfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builder {
    /// mkinitcpio with Limine's hook, which writes the boot entries with the checksums of the images too.
    LimineMkinitcpio,
    /// mkinitcpio.
    Mkinitcpio,
    /// kernel-install for dracut, of EndeavourOS.
    ReinstallKernels,
    /// dracut by a script of EndeavourOS.
    DracutRebuild,
    /// initramfs-tools, or what stands in for it.
    UpdateInitramfs,
    /// dracut.
    Dracut,
    /// mkinitfs, of Alpine.
    Mkinitfs,
}

/// In the order in which they are looked for: what wraps another comes before it.
const BUILDERS: [(Builder, &str); 7] = [
    (Builder::LimineMkinitcpio, "limine-mkinitcpio"),
    (Builder::Mkinitcpio, "mkinitcpio"),
    (Builder::ReinstallKernels, "reinstall-kernels"),
    (Builder::DracutRebuild, "dracut-rebuild"),
    (Builder::UpdateInitramfs, "update-initramfs"),
    (Builder::Dracut, "dracut"),
    (Builder::Mkinitfs, "mkinitfs"),
];

impl Builder {
    /// The command that builds the images of all installed kernels.
    pub const fn command(self) -> &'static str {
        match self {
            Self::LimineMkinitcpio => "sudo limine-mkinitcpio",
            Self::Mkinitcpio => "sudo mkinitcpio -P",
            Self::ReinstallKernels => "sudo reinstall-kernels",
            Self::DracutRebuild => "sudo dracut-rebuild",
            Self::UpdateInitramfs => "sudo update-initramfs -u -k all",
            Self::Dracut => "sudo dracut --regenerate-all --force",
            Self::Mkinitfs => "sudo mkinitfs",
        }
    }

    /// What to call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LimineMkinitcpio => "mkinitcpio with Limine's hook",
            Self::Mkinitcpio => "mkinitcpio",
            Self::ReinstallKernels => "dracut with kernel-install",
            Self::DracutRebuild | Self::Dracut => "dracut",
            Self::UpdateInitramfs => "update-initramfs",
            Self::Mkinitfs => "mkinitfs",
        }
    }
}

/// The initramfs of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initramfs {
    /// What builds it; none where no such program is installed.
    pub builder: Option<Builder>,
    /// Whether the driver is in it, where the configuration says so.
    pub holds_driver: Option<bool>,
}

/// Folders of programs for administrators, which an ordinary user's PATH may lack.
const PROGRAM_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/bin"];

/// The text of a configuration file and of the pieces beside it.
fn configuration(machine: &dyn Machine, files: &[&str], folders: &[&str]) -> String {
    let mut text: String = files.iter().filter_map(|file| machine.read(file)).collect();
    for folder in folders {
        for name in configuration_files(machine, folder) {
            text.push('\n');
            text.push_str(&machine.read(&join(folder, &name)).unwrap_or_default());
        }
    }
    text
}

fn names_driver(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).any(|word| word.starts_with("nvidia"))
}

/// Whether a line `KEY...` with one of these keys names the driver.
fn is_named(text: &str, keys: &[&str]) -> bool {
    let lines = text.lines().map(str::trim).filter(|line| keys.iter().any(|key| line.starts_with(key)));
    lines.into_iter().any(|line| names_driver(line.split('#').next().unwrap_or_default()))
}

fn holds_driver(machine: &dyn Machine, builder: Builder) -> Option<bool> {
    match builder {
        Builder::LimineMkinitcpio | Builder::Mkinitcpio => {
            let text = configuration(machine, &["/etc/mkinitcpio.conf"], &["/etc/mkinitcpio.conf.d"]);
            (!text.is_empty()).then(|| is_named(&text, &["MODULES"]))
        }
        Builder::Dracut | Builder::DracutRebuild | Builder::ReinstallKernels => {
            let folders = ["/usr/lib/dracut/dracut.conf.d", "/etc/dracut.conf.d"];
            let text = configuration(machine, &["/etc/dracut.conf"], &folders);
            if is_named(&text, &["add_drivers", "force_drivers"]) {
                Some(true)
            } else {
                is_named(&text, &["omit_drivers"]).then_some(false)
            }
        }
        Builder::UpdateInitramfs | Builder::Mkinitfs => None,
    }
}

impl Initramfs {
    pub(super) fn of(machine: &dyn Machine) -> Self {
        let is_there = |name: &str| machine.on_path(name).is_some() || PROGRAM_FOLDERS.iter().any(|at| machine.is_program(&join(at, name)));
        let builder = BUILDERS.into_iter().find(|(_, name)| is_there(name)).map(|(builder, _)| builder);
        Self { builder, holds_driver: builder.and_then(|builder| holds_driver(machine, builder)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn initramfs(text: &str) -> Initramfs {
        Initramfs::of(&Captured::parse(text).unwrap())
    }

    #[test]
    fn the_wrapper_comes_before_what_it_wraps() {
        let of = |programs: &[&str]| {
            let lines: Vec<String> = programs.iter().map(|name| format!("@program /usr/bin/{name}")).collect();
            initramfs(&lines.join("\n")).builder.map(Builder::command)
        };
        assert_eq!(of(&["mkinitcpio", "limine-mkinitcpio"]), Some("sudo limine-mkinitcpio"));
        assert_eq!(of(&["mkinitcpio"]), Some("sudo mkinitcpio -P"));
        assert_eq!(of(&["dracut", "dracut-rebuild"]), Some("sudo dracut-rebuild"));
        assert_eq!(of(&["dracut", "update-initramfs"]), Some("sudo update-initramfs -u -k all"));
        assert_eq!(of(&["dracut"]), Some("sudo dracut --regenerate-all --force"));
        assert_eq!(of(&[]), None);
        assert_eq!(initramfs("@env PATH=/usr/bin\n@program /usr/sbin/update-initramfs").builder, Some(Builder::UpdateInitramfs));
    }

    #[test]
    fn configurations_say_whether_the_driver_is_inside() {
        let arch = |modules: &str| {
            initramfs(&format!(
                "@program /usr/bin/mkinitcpio\n@file /etc/mkinitcpio.conf\n# MODULES=(nvidia)\nMODULES=({modules})\nHOOKS=(base modconf)\n"
            ))
            .holds_driver
        };
        assert_eq!(arch("nvidia nvidia_modeset nvidia_uvm nvidia_drm"), Some(true));
        assert_eq!(arch("btrfs"), Some(false));
        assert_eq!(initramfs("@program /usr/bin/mkinitcpio").holds_driver, None);
        let piece = "@program /usr/bin/mkinitcpio\n@file /etc/mkinitcpio.conf\nMODULES=()\n@file /etc/mkinitcpio.conf.d/n.conf\nMODULES+=(nvidia nvidia_drm)\n";
        assert_eq!(initramfs(piece).holds_driver, Some(true));
        let dracut = |line: &str| {
            initramfs(&format!("@program /usr/bin/dracut\n@file /usr/lib/dracut/dracut.conf.d/99-nvidia.conf\n{line}\n")).holds_driver
        };
        assert_eq!(dracut("omit_drivers+=\" nvidia nvidia-drm \""), Some(false));
        assert_eq!(dracut("force_drivers+=\" nvidia \""), Some(true));
        assert_eq!(dracut("compress=zstd # nvidia"), None);
    }
}
