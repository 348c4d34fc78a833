//! May this user sample CPUs? Nsight Systems does, beside the CUDA trace, and goes on without.

use super::{Finding, Fix, Status, good};
use crate::facts::{Container, Facts};

/// The highest `kernel.perf_event_paranoid` at which a user may sample his own programs. Debian and Ubuntu have higher ones of their own.
pub(crate) const MOST_PARANOID: i32 = 2;

/// Whether a container keeps `perf_event_open` away, as Docker's and Podman's filter of system calls does without a capability.
fn is_filtered(facts: &Facts) -> bool {
    let rights = &facts.rights;
    facts.system.container.is_some() && rights.sys_admin == Some(false) && rights.perfmon == Some(false)
}

/// How a container is started with the capability.
fn start_with_capability(facts: &Facts) -> Fix {
    let way = if facts.system.container == Some(Container::Kubernetes) {
        "Add a capability to the container of the pod: securityContext: {capabilities: {add: [\"PERFMON\"]}} (or SYS_ADMIN)."
    } else {
        "Start the container with --cap-add=PERFMON (or SYS_ADMIN)."
    };
    Fix::text(format!("{way} CUDA and NVTX traces need none of it: nsys profile --sample=none."))
}

pub(super) fn check(facts: &Facts) -> Finding {
    let (status, found, fix) = judge(facts);
    // Where neither a GPU nor nsys is, nobody is going to sample.
    let has_gpu = facts.has_gpu() || facts.driver.devices_on_bus > 0 || facts.driver.version.is_some();
    let is_of_use = has_gpu || facts.tools.nsys.best().is_some();
    (status, found, fix.filter(|_| is_of_use))
}

fn judge(facts: &Facts) -> Finding {
    let rights = &facts.rights;
    let Some(level) = rights.paranoid else {
        return (Status::Unknown, "kernel.perf_event_paranoid is not visible".to_owned(), None);
    };
    let may_always = !rights.in_user_namespace && (rights.sys_admin == Some(true) || rights.perfmon == Some(true));
    if is_filtered(facts) {
        let found = "the container keeps perf events away: nsys takes no CPU samples".to_owned();
        return (Status::Note, found, Some(start_with_capability(facts)));
    }
    if level <= MOST_PARANOID || may_always {
        return good(format!(
            "kernel.perf_event_paranoid is {level}{}",
            if level > MOST_PARANOID { ", and this process may all the same" } else { "" }
        ));
    }
    let text = "To have CPU samples in nsys until the next boot (CUDA and NVTX traces need none of it: nsys profile --sample=none):";
    let command = format!("sudo sysctl kernel.perf_event_paranoid={MOST_PARANOID}");
    let fix = Fix::commands(text, [command.as_str()]).verified("cat /proc/sys/kernel/perf_event_paranoid", "2");
    (Status::Note, format!("kernel.perf_event_paranoid is {level}: nsys takes no CPU samples"), Some(fix))
}
