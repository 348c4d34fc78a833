//! Is the driver loaded, and of one version with its libraries?

use super::{Finding, Fix, Status, good, no_gpu};
use crate::facts::{Facts, Family, Smi};

fn loaded(facts: &Facts) -> String {
    let driver = &facts.driver;
    let mut parts: Vec<String> = driver.version.iter().map(ToString::to_string).collect();
    parts.extend(driver.is_open.map(|is_open| if is_open { "open kernel module" } else { "proprietary kernel module" }.to_owned()));
    parts.extend(driver.cuda.as_ref().map(|cuda| format!("runs CUDA up to {cuda}")));
    if parts.is_empty() { "loaded, version not known".to_owned() } else { parts.join(", ") }
}

/// The libraries were updated below a running module, or a container was started before that.
fn mismatch(facts: &Facts) -> Finding {
    let version = |version: Option<&crate::facts::Version>| version.map_or_else(|| "?".to_owned(), ToString::to_string);
    let (module, library) = (version(facts.driver.version.as_ref()), version(facts.driver.library.as_ref()));
    let found = format!("the loaded module is {module}, its libraries are {library}: no program can use the GPU");
    let fix = if facts.system.container.is_some() {
        Fix::text("The host's driver was updated after this container was started: start it again.")
    } else {
        let text = "The driver was updated below the running one: reboot (or unload and load the module, when nothing uses the GPU).";
        Fix::commands(text, ["sudo reboot"]).verified("nvidia-smi", "it lists the GPUs")
    };
    (Status::Bad, found, Some(fix))
}

fn not_loaded(facts: &Facts) -> Finding {
    let kernel = facts.system.kernel.as_deref().unwrap_or("this kernel");
    if facts.driver.nouveau {
        let text = "nouveau holds the GPU and runs no CUDA: install NVIDIA's driver, which shuts nouveau out, and reboot.";
        return (Status::Bad, "nouveau is loaded instead of NVIDIA's driver".to_owned(), Some(install(facts, text)));
    }
    if facts.driver.smi == Smi::Missing {
        return (Status::Bad, "NVIDIA's driver is not installed".to_owned(), Some(install(facts, "Install NVIDIA's driver and reboot.")));
    }
    let text = format!(
        "Load the module. If that fails it was not built for {kernel} (build it with dkms, with that kernel's headers installed), or Secure Boot refuses it because it is not signed."
    );
    let fix = Fix::commands(text, ["sudo modprobe nvidia", "sudo dkms autoinstall && sudo modprobe nvidia"]);
    (Status::Bad, "the driver's module is not loaded".to_owned(), Some(fix.verified("nvidia-smi", "it lists the GPUs")))
}

/// Distributions differ in packages and repositories; the two that have one command for it are given it.
fn install(facts: &Facts, text: &str) -> Fix {
    match facts.system.family {
        Family::Arch => Fix::commands(text, ["sudo pacman -S nvidia-open nvidia-utils", "sudo reboot"]),
        Family::Debian if facts.system.name.as_deref().is_some_and(|name| name.contains("Ubuntu")) => {
            Fix::commands(text, ["sudo ubuntu-drivers install --gpgpu", "sudo reboot"])
        }
        _ => Fix::text(format!(
            "{text} https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/ has the steps for each distribution."
        )),
    }
}

pub(super) fn check(facts: &Facts) -> Finding {
    let driver = &facts.driver;
    match &driver.smi {
        Smi::Works | Smi::NoDevices => good(loaded(facts)),
        Smi::Mismatch => mismatch(facts),
        Smi::TimedOut => {
            let text = "A GPU may have fallen off the bus: look for Xid in the kernel's log, then reboot.";
            let fix = Fix::commands(text, ["sudo dmesg | grep -iE 'nvrm|xid'"]);
            (Status::Bad, format!("{}; nvidia-smi does not answer", loaded(facts)), Some(fix))
        }
        Smi::Failed(said) => (Status::Bad, format!("nvidia-smi fails: {said}"), Some(Fix::commands("See what it says.", ["nvidia-smi"]))),
        Smi::Missing if driver.version.is_some() => {
            let text = if facts.system.container.is_some() {
                "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, which brings nvidia-smi."
            } else {
                "Install the driver's utilities (the package that has nvidia-smi), of the same version as the module."
            };
            (Status::Bad, format!("{}; nvidia-smi is missing, so the GPUs were not looked at", loaded(facts)), Some(Fix::text(text)))
        }
        Smi::Missing | Smi::NoDriver if driver.devices_on_bus > 0 => not_loaded(facts),
        Smi::Missing | Smi::NoDriver => no_gpu(),
    }
}
