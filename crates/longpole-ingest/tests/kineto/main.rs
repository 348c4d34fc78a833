//! The Kineto importer on whole documents: layouts, containers, damage, eras.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod containers;
mod damage;
mod eras;
mod layouts;
mod support;
