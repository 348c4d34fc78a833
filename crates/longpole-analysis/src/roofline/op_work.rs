//! The work of operator calls, each distinct kind of call worked out once.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{HostOpId, StrId, Trace};

use super::formulas::{self, WorkFamily};
use super::shapes::{Inputs, RecordedInputs};
use super::work::{UnknownWork, Work};

/// Everything about an operator call that its work follows from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    pub(super) name: StrId,
    pub(super) inputs: [Option<StrId>; 4],
}

/// Works out the work of operator calls, each distinct signature once.
#[derive(Debug)]
pub struct OpWork<'t> {
    trace: &'t Trace,
    known: HashMap<Signature, (Option<WorkFamily>, Result<Work, UnknownWork>), FixedState>,
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signature").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'t> OpWork<'t> {
    /// For the operators of a trace.
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, known: HashMap::with_hasher(FixedState::default()) }
    }

    /// The work of one call, and the formula that was used. `kernel` is the name of a kernel the call launched: for lists of tensors it
    /// alone says the type.
    pub fn of(&mut self, op: HostOpId, kernel: Option<StrId>) -> (Option<WorkFamily>, Result<Work, UnknownWork>) {
        let signature = self.signature(op);
        *self.known.entry(signature).or_insert_with(|| work_of(self.trace, signature, kernel))
    }

    pub(super) fn signature(&self, op: HostOpId) -> Signature {
        let (ops, row) = (&self.trace.host_ops, op.index());
        Signature { name: ops.name[row], inputs: [ops.shapes(row), ops.types(row), ops.strides(row), ops.values(row)] }
    }
}

fn work_of(trace: &Trace, signature: Signature, kernel: Option<StrId>) -> (Option<WorkFamily>, Result<Work, UnknownWork>) {
    let text = |id: Option<StrId>| id.map(|id| trace.strings.get(id));
    let Some(formula) = formulas::formula(trace.strings.get(signature.name)) else { return (None, Err(UnknownWork::NoFormula)) };
    let [shapes, types, strides, values] = signature.inputs.map(text);
    let inputs = Inputs::read(RecordedInputs { shapes, types, strides, values, kernel: text(kernel) });
    (Some(formula.family), inputs.and_then(|inputs| (formula.work)(&inputs)))
}
