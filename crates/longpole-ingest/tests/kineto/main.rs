//! The Kineto importer on whole documents: layouts, containers, damage, eras.

mod containers;
mod damage;
mod eras;
mod layouts;
mod support;
