//! Is the disassembler here? `longpole ncu --source` shows whole instructions with it, mnemonics without.

use super::{Finding, Status, good};
use crate::advice::{Package, install, named, put_on_path};
use crate::facts::Facts;

pub(super) fn check(facts: &Facts) -> Finding {
    let tool = &facts.tools.nvdisasm;
    match (&tool.on_path, tool.best()) {
        (Some(first), _) => good(named(facts, first)),
        (None, Some(other)) => {
            let fix = put_on_path("`longpole ncu` shows whole instructions once it is on the PATH:", facts, other);
            (Status::Note, format!("{}, not on the PATH", named(facts, other)), Some(fix))
        }
        (None, None) => {
            (Status::Note, "not found: `longpole ncu` shows mnemonics without it".to_owned(), Some(install(facts, Package::Nvdisasm)))
        }
    }
}
