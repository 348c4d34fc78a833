//! How the counters of the GPU are opened to this user, on this machine.
//!
//! Lastingly it is an option of the driver's module, in a file of modprobe and, where the module is loaded from it, in the initramfs; it holds
//! from the next time the module is loaded. Once, it is a privilege. Source: NVIDIA's page on `ERR_NVGPUCTRPERM`.

use super::install::shell_word;
use crate::checks::{Fix, takes_perfmon};
use crate::facts::{Container, Facts, Family, OPTION, Setting};

/// The file that is advised.
const FILE: &str = "/etc/modprobe.d/nvidia-profiling.conf";

/// The same, to be read after every other.
const LAST_FILE: &str = "/etc/modprobe.d/zz-nvidia-profiling.conf";

/// Says what the loaded driver does.
const LOOK: &str = "grep RmProfilingAdminOnly /proc/driver/nvidia/params";
const OPEN: &str = "RmProfilingAdminOnly: 0";

const ONCE: &str = "Once, without any change, as root: sudo -E env PATH=\"$PATH\" ncu ...";

/// How to let this user read the counters. Nothing of it is done by this program.
pub fn open_counters(facts: &Facts) -> Fix {
    if facts.system.wsl.is_some() {
        return in_windows();
    }
    match facts.system.container {
        Some(container) => in_container(facts, container),
        None if facts.system.family == Family::Nix => nix(facts),
        None if facts.system.is_image => image(),
        None => lasting(facts),
    }
}

fn in_windows() -> Fix {
    let text = "In Windows, as administrator: NVIDIA Control Panel, Desktop, Enable Developer Settings; then Developer, Manage GPU Performance Counters, Allow access to the GPU performance counters to all users. Restart WSL after it.";
    Fix::commands(text, ["wsl.exe --shutdown"]).verified("ncu --query-metrics", "no ERR_NVGPUCTRPERM")
}

fn in_container(facts: &Facts, container: Container) -> Fix {
    let capability = if takes_perfmon(facts) { "PERFMON" } else { "SYS_ADMIN" };
    let host =
        "Or open the counters on the host to every user, where `longpole doctor` has the commands for it; that holds in containers too.";
    if facts.rights.in_user_namespace || container == Container::Apptainer {
        let text = "Capabilities of a rootless container do not reach the driver: open the counters on the host, where `longpole doctor` has the commands for it.";
        return Fix::text(text).verified(LOOK, OPEN);
    }
    let start = format!("Start the container with the capability. {host}");
    let fix = match container {
        Container::Docker => Fix::commands(start, [format!("docker run --cap-add={capability} --gpus all IMAGE").as_str()]),
        Container::Podman => {
            Fix::commands(start, [format!("sudo podman run --cap-add={capability} --device nvidia.com/gpu=all IMAGE").as_str()])
        }
        Container::Kubernetes => Fix::text(format!(
            "Add the capability to the container of the pod: securityContext: {{capabilities: {{add: [\"{capability}\"]}}}}. {host}"
        )),
        Container::Apptainer | Container::Other => Fix::text(format!("{start} It is CAP_{capability}.")),
    };
    fix.verified("grep CapEff /proc/self/status", if capability == "PERFMON" { "bit 38 is set" } else { "bit 21 is set" })
}

fn nix(facts: &Facts) -> Fix {
    let text = format!(
        "In configuration.nix: boot.extraModprobeConfig = \"options {} {OPTION}=0\"; then build and reboot. {ONCE}",
        facts.rights.module
    );
    Fix::commands(text, ["sudo nixos-rebuild boot", "sudo reboot"]).verified(LOOK, OPEN)
}

/// The image's own initramfs stays as it is; the kernel's command line reaches the module wherever it is loaded.
fn image() -> Fix {
    let option = format!("sudo rpm-ostree kargs --append-if-missing=nvidia.{OPTION}=0");
    Fix::commands(format!("Set the option on the kernel's command line and reboot. {ONCE}"), [option.as_str(), "sudo reboot"])
        .verified(LOOK, OPEN)
}

/// What a setting that is there already means for the advice.
enum Waiting<'a> {
    /// It opens the counters, once the module is loaded anew.
    Ready(&'a Setting),
    /// It names a module that is not loaded.
    WrongModule(&'a Setting),
    /// It closes them.
    Closed(&'a Setting),
    None,
}

fn waiting(facts: &Facts) -> Waiting<'_> {
    let module = &facts.rights.module;
    let same = |setting: &&Setting| setting.module.replace('_', "-") == module.replace('_', "-");
    let settings = || facts.rights.settings.iter();
    if let Some(closed) = settings().filter(same).find(|setting| setting.restricts) {
        Waiting::Closed(closed)
    } else if let Some(ready) = settings().find(|setting| same(setting) && !setting.restricts) {
        Waiting::Ready(ready)
    } else {
        settings().find(|setting| !setting.restricts).map_or(Waiting::None, Waiting::WrongModule)
    }
}

/// The command that builds the initramfs, and what to know about it.
fn rebuild(facts: &Facts) -> (Option<&'static str>, String) {
    let initramfs = facts.initramfs;
    let Some(builder) = initramfs.builder else {
        return (None, "No program that builds an initramfs is installed, so there is none to build.".to_owned());
    };
    let name = builder.name();
    match initramfs.holds_driver {
        Some(false) => (None, format!("The initramfs ({name}) does not hold the driver, so it need not be built anew.")),
        Some(true) => (Some(builder.command()), format!("The driver is loaded from the initramfs, so that has to be built anew ({name}).")),
        None => (Some(builder.command()), format!("The initramfs may hold the driver, so it is built anew ({name}).")),
    }
}

fn lasting(facts: &Facts) -> Fix {
    let module = &facts.rights.module;
    let write = format!("echo 'options {module} {OPTION}=0' | sudo tee {FILE}");
    let (command, about) = rebuild(facts);
    let (first, before) = match waiting(facts) {
        Waiting::Ready(setting) => {
            (None, format!("The option is set already ({}), but the loaded driver was loaded without it. ", setting.place))
        }
        Waiting::WrongModule(setting) => {
            (Some(write), format!("{} sets the option for `{}`, but the module here is `{module}`. ", setting.place, setting.module))
        }
        Waiting::Closed(setting) if setting.place.starts_with("/etc/") => {
            let edit = format!("sudo sed -i 's/{OPTION}=[1-9]/{OPTION}=0/' {}", shell_word(&setting.place));
            (Some(edit), format!("{} restricts the counters. ", setting.place))
        }
        Waiting::Closed(setting) if setting.place.starts_with('/') => {
            // A file of a package would come back with the next update; the value that is read last counts.
            let write = format!("echo 'options {module} {OPTION}=0' | sudo tee {LAST_FILE}");
            (Some(write), format!("{} restricts the counters, and a file that is read after it opens them. ", setting.place))
        }
        Waiting::Closed(_) => {
            (None, format!("The kernel's command line restricts the counters: take {OPTION} out of the boot loader's settings. "))
        }
        Waiting::None => (Some(write), String::new()),
    };
    let commands = first.into_iter().chain(command.map(str::to_owned)).chain(["sudo reboot".to_owned()]).collect();
    Fix { text: format!("{before}This lets every user read them from the next boot on. {about} {ONCE}"), commands, verify: None }
        .verified(LOOK, OPEN)
}
