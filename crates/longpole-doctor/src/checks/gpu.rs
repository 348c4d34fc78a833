//! Is there a GPU that programs can use?

use super::{Finding, Fix, Status, good, size};
use crate::facts::{Container, Facts, Gpu, Smi};

/// `NVIDIA H200 (compute capability 9.0, 140.4 GiB)`.
fn described(gpu: &Gpu) -> String {
    let compute = gpu.compute.as_ref().map(|compute| format!("compute capability {compute}"));
    let memory = gpu.memory_mib.map(|mib| size(mib.saturating_mul(1 << 20)));
    let aside: Vec<String> = compute.into_iter().chain(memory).collect();
    if aside.is_empty() { gpu.name.clone() } else { format!("{} ({})", gpu.name, aside.join(", ")) }
}

/// Equal GPUs once, with how many there are.
fn list(gpus: &[Gpu]) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for gpu in gpus {
        let kind = described(gpu);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let parts = kinds.into_iter().map(|(kind, count)| if count > 1 { format!("{count} × {kind}") } else { kind });
    parts.collect::<Vec<_>>().join("; ")
}

fn give_to_container(container: Container) -> Fix {
    match container {
        Container::Docker => Fix::commands(
            "Start the container with the GPUs (needs nvidia-container-toolkit on the host).",
            ["docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE"],
        ),
        Container::Podman => Fix::commands(
            "Start the container with the GPUs (needs a CDI description: nvidia-ctk cdi generate).",
            ["podman run --device nvidia.com/gpu=all IMAGE"],
        ),
        Container::Kubernetes => Fix::text("Ask for a GPU in the pod: resources.limits: {nvidia.com/gpu: 1}."),
        Container::Apptainer => Fix::commands("Start the container with the GPUs.", ["apptainer run --nv IMAGE"]),
        Container::Other => Fix::text("Give the container the devices /dev/nvidia* and the driver's libraries."),
    }
}

pub(super) fn check(facts: &Facts) -> Finding {
    if facts.has_gpu() {
        return good(list(&facts.gpus));
    }
    let driver = &facts.driver;
    if driver.smi == Smi::Works {
        return (Status::Unknown, "the driver answers, but does not list its GPUs".to_owned(), None);
    }
    if driver.smi == Smi::NoDevices {
        let fix = "A GPU may be held by a virtual machine, powered off or broken: look for Xid in the kernel's log.";
        let fix = Fix::commands(fix, ["sudo dmesg | grep -iE 'nvrm|xid'"]);
        return (Status::Bad, "the driver runs and finds no GPU".to_owned(), Some(fix));
    }
    if driver.devices_on_bus > 0 || driver.version.is_some() {
        let count = driver.devices_on_bus;
        let seen = if count > 0 { format!("{count} on the PCI bus") } else { "the driver is loaded".to_owned() };
        return (Status::Bad, format!("{seen}, but programs cannot use it"), Some(Fix::text("See `driver`.")));
    }
    if let Some(container) = facts.system.container {
        return (Status::Bad, format!("none is visible in this {}", container.name()), Some(give_to_container(container)));
    }
    match facts.system.wsl {
        Some(1) => {
            let fix = Fix::commands(
                "WSL 1 has no GPUs: in Windows, change this distribution to WSL 2.",
                ["wsl.exe --set-version DISTRIBUTION 2"],
            );
            (Status::Bad, "WSL 1 has no GPUs".to_owned(), Some(fix))
        }
        Some(_) => {
            let fix = "Install NVIDIA's driver in Windows (none in WSL), then restart WSL.";
            (Status::Bad, "WSL shows no NVIDIA GPU".to_owned(), Some(Fix::commands(fix, ["wsl.exe --shutdown"])))
        }
        None => {
            let fix = "Nothing to mend: record where the GPU is, and read the traces and reports here.";
            (Status::Bad, "no NVIDIA GPU in this machine".to_owned(), Some(Fix::text(fix)))
        }
    }
}
