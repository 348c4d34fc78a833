//! `longpole.doctor/1`: a document about a machine, so it has no source, trust or scope.

use longpole_doctor::{Diagnosis, Fix};
use serde::Serialize;

#[derive(Serialize)]
struct GpuOut<'a> {
    index: u32,
    name: &'a str,
    compute_capability: Option<String>,
    memory_bytes: Option<u64>,
    mig: Option<bool>,
    persistence: Option<bool>,
}

#[derive(Serialize)]
struct MachineOut<'a> {
    system: Option<&'a str>,
    kernel: Option<&'a str>,
    container: Option<&'static str>,
    wsl: Option<u8>,
    driver: Option<String>,
    driver_is_open: Option<bool>,
    cuda: Option<String>,
    gpus: Vec<GpuOut<'a>>,
}

#[derive(Serialize)]
struct WayOut<'a> {
    code: &'static str,
    what: &'static str,
    works: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct VerifyOut<'a> {
    command: &'a str,
    expect: &'a str,
}

#[derive(Serialize)]
struct FixOut<'a> {
    text: &'a str,
    commands: &'a [String],
    verify: Option<VerifyOut<'a>>,
}

#[derive(Serialize)]
struct CheckOut<'a> {
    code: &'static str,
    ok: Option<bool>,
    status: &'static str,
    found: &'a str,
    fix: Option<FixOut<'a>>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: MachineOut<'a>,
    works: Vec<WayOut<'a>>,
    checks: Vec<CheckOut<'a>>,
}

fn fix(fix: &Fix) -> FixOut<'_> {
    let verify = fix.verify.as_ref().map(|verify| VerifyOut { command: &verify.command, expect: &verify.expect });
    FixOut { text: &fix.text, commands: &fix.commands, verify }
}

fn machine(diagnosis: &Diagnosis) -> MachineOut<'_> {
    let facts = &diagnosis.facts;
    let gpus = facts.gpus.iter().map(|gpu| GpuOut {
        index: gpu.index,
        name: &gpu.name,
        compute_capability: gpu.compute.as_ref().map(ToString::to_string),
        memory_bytes: gpu.memory_mib.and_then(|mib| mib.checked_mul(1 << 20)),
        mig: gpu.mig,
        persistence: gpu.persistence,
    });
    MachineOut {
        system: facts.system.name.as_deref(),
        kernel: facts.system.kernel.as_deref(),
        container: facts.system.container.map(longpole_doctor::facts::Container::name),
        wsl: facts.system.wsl,
        driver: facts.driver.version.as_ref().map(ToString::to_string),
        driver_is_open: facts.driver.is_open,
        cuda: facts.driver.cuda.as_ref().map(ToString::to_string),
        gpus: gpus.collect(),
    }
}

/// The document of `longpole doctor`.
pub fn doctor(diagnosis: &Diagnosis) -> impl Serialize + use<'_> {
    let works = diagnosis.ways.iter().map(|way| WayOut { code: way.code, what: way.what, works: way.works.name(), why: &way.why });
    let checks = diagnosis.checks.iter().map(|check| CheckOut {
        code: check.code,
        ok: check.status.ok(),
        status: check.status.name(),
        found: &check.found,
        fix: check.fix.as_ref().map(fix),
    });
    Document { schema: "longpole.doctor/1", machine: machine(diagnosis), works: works.collect(), checks: checks.collect() }
}
