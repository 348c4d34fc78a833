//! Tests of the source view: hand-made samples always, recorded reports where they are at hand.

mod cubin;
mod dataflow;
mod elf;
mod nvdisasm;
mod recorded;
mod report;
mod sass;
mod view;
