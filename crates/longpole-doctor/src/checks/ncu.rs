//! Is Nsight Compute here, on the PATH, and new enough for the GPU?

use super::{Finding, Fix, Status, good};
use crate::advice::{Package, Support, install, named, needed, put_on_path};
use crate::facts::{Facts, Found, Version};

/// The first version without GPUs older than Volta, as its release notes say.
const WITHOUT_PASCAL: [u32; 2] = [2020, 1];

fn suits(found: &Found, least: Option<&Version>) -> bool {
    least.is_none_or(|least| found.version.as_ref().is_none_or(|version| version >= least))
}

pub(super) fn check(facts: &Facts) -> Finding {
    let tool = &facts.tools.ncu;
    let compute = facts.newest_compute();
    let least = compute.and_then(needed).map(Support::ncu);
    let Some(best) = tool.best() else {
        if !facts.has_gpu() {
            return (Status::Note, "not found; it is needed where the GPU is".to_owned(), None);
        }
        return (Status::Bad, "not found".to_owned(), Some(install(facts, Package::Ncu)));
    };
    if let Some(trouble) = &best.trouble {
        let fix = Fix::commands("See what it says, and install it anew if need be.", ["ncu --version"]);
        return (Status::Bad, format!("{}: {trouble}", facts.shown(&best.path)), Some(fix));
    }
    let too_old = || {
        least
            .as_ref()
            .zip(compute)
            .map_or_else(String::new, |(least, compute)| format!(" is too old for compute capability {compute}, which needs {least}"))
    };
    match &tool.on_path {
        Some(first) if suits(first, least.as_ref()) => {
            let is_pascal = compute.is_some_and(|compute| *compute < Version::of(&[7, 0]));
            if is_pascal && first.version.as_ref().is_some_and(|version| *version >= Version::of(&WITHOUT_PASCAL)) {
                let fix = Fix::text("Take Nsight Compute 2019.5, the last one for Pascal.");
                return (Status::Bad, format!("{} does not know GPUs older than Volta", named(facts, first)), Some(fix));
            }
            match tool.elsewhere.first().filter(|other| other.version > first.version) {
                Some(other) => {
                    let fix = put_on_path("A newer one is installed; to use it:", facts, other);
                    (Status::Note, format!("{}; {} is newer", named(facts, first), named(facts, other)), Some(fix))
                }
                None => good(named(facts, first)),
            }
        }
        first => match tool.elsewhere.iter().find(|other| suits(other, least.as_ref())) {
            Some(other) if first.is_some() => {
                let old = first.as_ref().map_or_else(String::new, |first| named(facts, first) + &too_old());
                (Status::Bad, old, Some(put_on_path("A newer one is installed; put it first on the PATH:", facts, other)))
            }
            Some(other) => {
                (Status::Bad, format!("{}, not on the PATH", named(facts, other)), Some(put_on_path("Put it on the PATH:", facts, other)))
            }
            None => (Status::Bad, named(facts, best) + &too_old(), Some(install(facts, Package::Ncu))),
        },
    }
}
