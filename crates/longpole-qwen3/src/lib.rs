//! A small decoder for Qwen3 on one NVIDIA device, whose every kernel is ours: the workload that longpole's loop is proven on, and an example of what
//! its users build. Not a serving product: one sequence at a time.
//!
//! What needs no device is tested without one: [`files`], [`config`], [`weights`], [`safetensors`], [`tokenizer`], [`hub`], [`rope`] and [`layout`] come from
//! files and arithmetic, [`ops`] and [`plan`] say which kernels a step launches on which addresses, [`generate`](mod@generate) drives any decoder. [`engine`]
//! puts them on a device, [`suite`] measures them, [`workload`](mod@workload) runs them in windows for a recorder, [`check`](mod@check) holds them against [`reference`](mod@reference), the model on the host in 64 bits.

pub mod check;
pub mod cli;
pub mod config;
pub mod engine;
pub mod error;
pub mod executor;
pub mod files;
pub mod gemv;
pub mod generate;
pub mod hub;
pub mod kernels;
pub mod layout;
pub mod models;
pub mod nvtx;
pub mod ops;
pub mod plan;
mod prepared;
pub mod random;
pub mod reference;
pub mod rope;
pub mod safetensors;
pub mod suite;
pub mod tokenizer;
pub mod weights;
pub mod workload;
