//! Why one kernel takes its time: launch, speed, verdict, stalls, suggestions.

mod types;

pub use types::{KernelSummary, Launch, Missing, OccupancyLimit, Speed, Stall, Suggestion, Symptom, Verdict, VerdictKind};
