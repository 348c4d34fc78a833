//! Steps: where the time of a whole prefill or decode step goes.

mod cyclic;
mod repeats;
mod sequence;
mod types;

pub use types::{
    Culprit, FoundBy, LayerKind, LayerStructure, LeftOut, Part, RoleSource, SlowStep, Step, StepGroup, StepLayer, StepNote, StepOptions, StepRow,
    StepTable, StripLayer, Why,
};
