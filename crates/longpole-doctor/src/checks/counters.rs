//! May this process read the counters of the GPU? Nsight Compute and the GPU metrics of Nsight Systems need them; traces do not.

use super::{Finding, Fix, Status, good, no_gpu};
use crate::advice::open_counters;
use crate::facts::{Facts, Version};

/// The first driver that takes `CAP_PERFMON` for enough.
pub(crate) const PERFMON_SINCE: u32 = 565;

pub(crate) fn takes_perfmon(facts: &Facts) -> bool {
    facts.driver.version.as_ref().map(Version::major).is_some_and(|major| major >= PERFMON_SINCE)
}

/// Why a restricting driver lets this process through, if it does.
fn privilege(facts: &Facts) -> Option<&'static str> {
    let rights = &facts.rights;
    if rights.in_user_namespace {
        return None;
    }
    match (rights.sys_admin, rights.is_root) {
        (Some(true), Some(true)) => Some("this is root"),
        (Some(true), _) => Some("this process has CAP_SYS_ADMIN"),
        _ if rights.perfmon == Some(true) && takes_perfmon(facts) => Some("this process has CAP_PERFMON"),
        _ => None,
    }
}

fn denied(facts: &Facts) -> &'static str {
    let rights = &facts.rights;
    if rights.in_user_namespace && rights.sys_admin == Some(true) {
        "and the capabilities of a user namespace (rootless container) do not count"
    } else if rights.is_root == Some(true) {
        "and this root lacks CAP_SYS_ADMIN"
    } else if rights.perfmon == Some(true) {
        "and this driver is too old to take CAP_PERFMON"
    } else {
        "and this user is none"
    }
}

pub(super) fn check(facts: &Facts) -> Finding {
    if !facts.has_gpu() && facts.rights.admin_only.is_none() {
        return no_gpu();
    }
    match (facts.rights.admin_only, privilege(facts)) {
        (Some(false), _) => good("every user may read them (RmProfilingAdminOnly: 0)"),
        (Some(true), Some(why)) => good(format!("only administrators may (RmProfilingAdminOnly: 1), and {why}")),
        (Some(true), None) => {
            (Status::Bad, format!("only administrators may (RmProfilingAdminOnly: 1), {}", denied(facts)), Some(open_counters(facts)))
        }
        (None, _) if facts.system.wsl.is_some() => {
            (Status::Unknown, "the Windows driver decides, and does not show its setting here".to_owned(), Some(open_counters(facts)))
        }
        (None, _) => {
            let fix = Fix::commands("Ask ncu, which tries.", ["ncu --query-metrics"]);
            let found = "the driver's setting is not visible (/proc/driver/nvidia/params)".to_owned();
            (Status::Unknown, found, Some(fix.verified("ncu --query-metrics", "no ERR_NVGPUCTRPERM")))
        }
    }
}
