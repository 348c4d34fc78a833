//! Tests of the source view: hand-made samples always, recorded reports where they are at hand.

mod recorded;
mod report;
mod sass;
