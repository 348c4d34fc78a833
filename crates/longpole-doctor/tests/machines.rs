//! The doctor on machines written down as text: the advice that matters most, said apart from the snapshots of the whole pages, which are
//! in `longpole-report`; and machines that are out to harm.

#![expect(clippy::expect_used, reason = "a helper that cannot go on fails its test")]

use std::fmt::Write as _;
use std::time::Instant;

use longpole_doctor::{Captured, Check, Diagnosis, Status, Works, examine};

fn text(name: &str) -> String {
    let path = format!("{}/tests/machines/{name}.machine", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn diagnosis(name: &str) -> Diagnosis {
    examine(&Captured::parse(&text(name)).expect("a captured machine"))
}

fn check<'a>(diagnosis: &'a Diagnosis, code: &str) -> &'a Check {
    diagnosis.checks.iter().find(|check| check.code == code).expect("a check of this code")
}

/// The commands that open the counters, without what each machine is told.
fn opening(name: &str) -> Vec<String> {
    let diagnosis = diagnosis(name);
    let counters = check(&diagnosis, "counters");
    assert_eq!(counters.status, Status::Bad, "{name}: {counters:?}");
    counters.fix.clone().expect("a fix").commands
}

const WRITE: &str = "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf";

#[test]
fn the_counters_are_opened_as_each_distribution_does_it() {
    let reboot = "sudo reboot";
    assert_eq!(opening("ubuntu_admin_only"), [WRITE, "sudo update-initramfs -u -k all", reboot]);
    let debian = WRITE.replace("options nvidia ", "options nvidia-current ");
    assert_eq!(opening("debian"), [debian.as_str(), "sudo update-initramfs -u -k all", reboot]);
    assert_eq!(opening("fedora"), [reboot], "the option is set, and dracut leaves the driver out");
    assert_eq!(opening("arch_limine"), [WRITE, "sudo limine-mkinitcpio", reboot]);
    assert_eq!(opening("arch_mkinitcpio"), [WRITE, reboot], "the driver is not in the image");
    let edit =
        "sudo sed -i 's/NVreg_RestrictProfilingToAdminUsers=[1-9]/NVreg_RestrictProfilingToAdminUsers=0/' /etc/modprobe.d/50-nvidia.conf";
    assert_eq!(opening("opensuse"), [edit, "sudo dracut --regenerate-all --force", reboot]);
    let last = WRITE.replace("/nvidia-", "/zz-nvidia-");
    assert_eq!(opening("blackwell_old_tools"), [last.as_str(), "sudo update-initramfs -u -k all", reboot]);
    assert_eq!(opening("docker"), ["docker run --cap-add=SYS_ADMIN --gpus all IMAGE"]);
    assert_eq!(opening("podman_rootless"), [""; 0], "nothing inside of it helps");
    let newer = text("docker").replace("550.163.01", "570.195.03");
    let newer = examine(&Captured::parse(&newer).expect("a captured machine"));
    let fix = check(&newer, "counters").fix.clone().expect("a fix");
    assert_eq!(fix.commands, ["docker run --cap-add=PERFMON --gpus all IMAGE"], "since driver 565 the smaller capability is enough");
}

#[test]
fn distributions_that_have_another_way() {
    let with = |lines: &str| {
        let machine = format!("{}{lines}", text("ubuntu_admin_only"));
        check(&examine(&Captured::parse(&machine).expect("a captured machine")), "counters").fix.clone().expect("a fix")
    };
    let image = with("@file /run/ostree-booted\n");
    assert_eq!(image.commands[0], "sudo rpm-ostree kargs --append-if-missing=nvidia.NVreg_RestrictProfilingToAdminUsers=0");
    let nix = with("@file /etc/os-release\nID=nixos\n");
    assert!(nix.commands[0] == "sudo nixos-rebuild boot" && nix.text.contains("boot.extraModprobeConfig"), "{nix:?}");
    let kernel = with("@file /proc/cmdline\nquiet nvidia.NVreg_RestrictProfilingToAdminUsers=1\n");
    assert!(kernel.text.contains("take NVreg_RestrictProfilingToAdminUsers out of the boot loader"), "{kernel:?}");
    let none = text("ubuntu_admin_only").replace("@program /usr/sbin/update-initramfs\n", "");
    let none = examine(&Captured::parse(&none).expect("a captured machine"));
    let fix = check(&none, "counters").fix.clone().expect("a fix");
    assert_eq!(fix.commands, [WRITE, "sudo reboot"]);
    assert!(fix.text.contains("there is none to build"), "{}", fix.text);
}

#[test]
fn privileges_let_a_process_through() {
    let with = |from: &str, to: &str| {
        let text = text("ubuntu_admin_only");
        assert!(text.contains(from), "{from}");
        check(&examine(&Captured::parse(&text.replace(from, to)).expect("a captured machine")), "counters").clone()
    };
    let none = "CapEff:\t0000000000000000";
    assert_eq!(with(none, "CapEff:\t0000000000200000").status, Status::Good, "CAP_SYS_ADMIN");
    assert_eq!(with(none, "CapEff:\t0000004000000000").status, Status::Good, "CAP_PERFMON with a driver of 565 or later");
    assert_eq!(with(none, "CapEff:\t0000000000100000").status, Status::Bad, "another capability");
    assert_eq!(with("RmProfilingAdminOnly: 1", "RmProfilingAdminOnly: 0").status, Status::Good);
    assert_eq!(with("RmProfilingAdminOnly: 1\n", "").status, Status::Unknown);
}

#[test]
fn what_works_follows_from_the_checks() {
    use Works::{No, Partly, Unknown, Yes};
    for (name, expected) in [
        ("counters_free", [Yes, Yes, Yes, Yes]),
        ("ubuntu_admin_only", [Yes, Yes, No, Partly]),
        ("debian", [Yes, Yes, No, No]),
        ("blackwell_old_tools", [Yes, No, No, Partly]),
        ("opensuse", [Yes, No, No, Partly]),
        ("wsl2", [Yes, Yes, Unknown, Partly]),
        ("mig", [Yes, Yes, Partly, Partly]),
        ("dcgm", [Yes, Yes, Partly, Partly]),
        ("driver_mismatch", [Yes, No, No, No]),
        ("no_gpu", [Yes, No, No, No]),
        ("kubernetes_no_gpu", [Yes, No, No, No]),
    ] {
        let works: Vec<Works> = diagnosis(name).ways.iter().map(|way| way.works).collect();
        assert_eq!(works, expected, "{name}");
    }
    let fitting = format!("{}@file /usr/lib64/libcupti.so.12\n", text("opensuse"));
    let fitting = examine(&Captured::parse(&fitting).expect("a captured machine"));
    assert_eq!(fitting.ways[1].works, Partly, "a library of the driver's CUDA is there, but torch is too new");
}

#[test]
fn who_may_hold_the_counters_is_said_of_nsys() {
    for name in ["mig", "dcgm"] {
        let check = if name == "mig" { "mig" } else { "monitors" };
        let diagnosis = diagnosis(name);
        let why = &diagnosis.ways[3].why;
        assert!(why.contains(&format!("without GPU metrics, perhaps (see `{check}`)")), "{name}: {why}");
    }
}

#[test]
fn cpu_samples_in_a_container() {
    let advice = |machine: &str| check(&examine(&Captured::parse(machine).expect("a captured machine")), "cpu_sampling").fix.clone();
    assert!(advice(&text("docker")).expect("advice").text.contains("--cap-add=PERFMON"));
    let pod = text("docker") + "@env KUBERNETES_SERVICE_HOST=set\n";
    let pod = advice(&pod).expect("advice").text;
    assert!(pod.contains("securityContext: {capabilities: {add: [\"PERFMON\"]}}") && !pod.contains("--cap-add"), "{pod}");
    assert_eq!(advice(&text("kubernetes_no_gpu")), None, "neither a GPU nor nsys");
    assert_eq!(advice(&text("no_gpu")), None, "neither a GPU nor nsys");
    assert!(advice(&text("nouveau")).is_some(), "a GPU that waits for its driver");
}

#[test]
fn a_machine_where_all_is_well_fails_nothing() {
    assert_eq!(diagnosis("counters_free").failed(), [""; 0]);
    assert_eq!(diagnosis("no_gpu").failed(), ["gpu"]);
    assert_eq!(diagnosis("driver_mismatch").failed(), ["gpu", "driver", "counters"]);
    let old = diagnosis("blackwell_old_tools");
    assert_eq!(old.failed(), ["cuda", "counters", "ncu", "cupti"]);
    assert!(check(&old, "ncu").found.contains("too old for compute capability 12.0, which needs 2025.1"), "{:?}", check(&old, "ncu"));
}

#[test]
fn an_old_driver_answers_what_it_knows() {
    let old = diagnosis("dcgm");
    assert_eq!((old.facts.gpus.len(), old.facts.gpus[0].compute.clone(), old.facts.gpus[0].reasons), (1, None, Some(0x84)));
    assert_eq!(check(&old, "throttling").status, Status::Bad);
    assert_eq!(check(&old, "disk").status, Status::Bad);
}

#[test]
fn floods_end_soon() {
    let flood = "RmProfilingAdminOnly nvidia = : , ( \" MODULES options install -i GPU 0 \u{202e}\u{1b}[2J\n".repeat(40_000);
    let mut machine = text("ubuntu_admin_only");
    for path in [
        "/etc/os-release",
        "/proc/self/status",
        "/proc/driver/nvidia/params",
        "/proc/driver/nvidia/version",
        "/proc/modules",
        "/etc/modprobe.d/a.conf",
        "/etc/modprobe.d/b.conf",
        "/etc/mkinitcpio.conf",
        "/proc/1/cgroup",
        "/proc/cmdline",
        "/usr/local/cuda-13.0/version.json",
    ] {
        let _ = writeln!(machine, "@file {path}\n{flood}");
    }
    for run in ["nvidia-smi -q -d COMPUTE", "/usr/local/cuda-13.0/bin/ncu --version", "nvidia-smi -L"] {
        let _ = writeln!(machine, "@run {run}\n{flood}");
    }
    for process in 0..30_000 {
        let _ = writeln!(machine, "@file /proc/{process}/comm\nnoise");
    }
    let machine = Captured::parse(&machine).expect("a captured machine");
    let started = Instant::now();
    let diagnosis = examine(&machine);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert!(diagnosis.checks.iter().all(|check| check.found.len() < 4_000), "what is said stays short");
}
