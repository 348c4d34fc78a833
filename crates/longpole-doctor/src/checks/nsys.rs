//! Is Nsight Systems here and on the PATH?

use super::{Finding, Fix, Status, good};
use crate::advice::{Package, install, named, put_on_path};
use crate::facts::Facts;

pub(super) fn check(facts: &Facts) -> Finding {
    let tool = &facts.tools.nsys;
    let Some(best) = tool.best() else {
        if !facts.has_gpu() {
            return (Status::Note, "not found; it is needed where the GPU is".to_owned(), None);
        }
        return (Status::Bad, "not found".to_owned(), Some(install(facts, Package::Nsys)));
    };
    if let Some(trouble) = &best.trouble {
        let fix = Fix::commands("See what it says, and install it anew if need be.", ["nsys --version"]);
        return (Status::Bad, format!("{}: {trouble}", facts.shown(&best.path)), Some(fix));
    }
    match (&tool.on_path, tool.elsewhere.first()) {
        (Some(first), Some(other)) if other.version > first.version => {
            let fix = put_on_path("A newer one is installed; to use it:", facts, other);
            (Status::Note, format!("{}; {} is newer", named(facts, first), named(facts, other)), Some(fix))
        }
        (Some(first), _) => good(named(facts, first)),
        (None, _) => {
            (Status::Bad, format!("{}, not on the PATH", named(facts, best)), Some(put_on_path("Put it on the PATH:", facts, best)))
        }
    }
}
