//! Importers.
mod json;
