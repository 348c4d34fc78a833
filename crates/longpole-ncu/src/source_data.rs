//! What a kernel was built from: its cubin, the source files packed into the report, and where its functions were loaded.

use crate::container::wire::{Field, Fields, Malformed};

/// Most source files of one module, and most functions; real ones have a few hundred and a few thousand.
const MOST_FILES: usize = 1 << 16;
const MOST_FUNCTIONS: usize = 1 << 20;

/// A source file that ncu packed into the report (`--import-source yes`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path where the kernel was built.
    pub path: String,
    /// Its text, if it is there.
    pub text: Option<String>,
}

/// A function and the address it was loaded at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFunction {
    /// Its mangled name.
    pub symbol: String,
    /// The GPU virtual address of its first instruction.
    pub address: u64,
}

/// Source data under one reference, merged from all the pieces in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceData {
    /// The ELF file with the machine code.
    pub cubin: Option<Vec<u8>>,
    /// The architecture's revision, e.g. `0x90000` for compute capability 9.0.
    pub sm_revision: Option<u64>,
    /// Source files.
    pub files: Vec<SourceFile>,
    /// Where functions were loaded.
    pub functions: Vec<LoadedFunction>,
}

impl SourceData {
    /// Adds what one piece says to what the earlier ones said.
    pub(crate) fn merge(&mut self, message: &[u8]) -> Result<(), Malformed> {
        for field in Fields::of(message) {
            match field? {
                (4, Field::Bytes(cubin)) if !cubin.is_empty() && self.cubin.is_none() => self.cubin = Some(cubin.to_vec()),
                (6, Field::Varint(revision)) => self.sm_revision = Some(revision),
                (8, Field::Bytes(files)) => {
                    for file in Fields::of(files) {
                        if let (1, Field::Bytes(file)) = file? {
                            if self.files.len() >= MOST_FILES {
                                return Err(Malformed);
                            }
                            self.files.push(decode_file(file)?);
                        }
                    }
                }
                (9, Field::Bytes(relocations)) => {
                    for function in Fields::of(relocations) {
                        if let (1, Field::Bytes(function)) = function? {
                            if self.functions.len() >= MOST_FUNCTIONS {
                                return Err(Malformed);
                            }
                            self.functions.extend(decode_function(function)?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where a function was loaded; of several the last that was recorded.
    pub fn address_of(&self, mangled: &str) -> Option<u64> {
        self.functions.iter().rev().find(|function| function.symbol == mangled).map(|function| function.address)
    }
}

fn decode_file(message: &[u8]) -> Result<SourceFile, Malformed> {
    let mut file = SourceFile { path: String::new(), text: None };
    for field in Fields::of(message) {
        match field? {
            (1, Field::Bytes(path)) => file.path = String::from_utf8_lossy(path).into_owned(),
            (2, Field::Bytes(text)) => file.text = Some(String::from_utf8_lossy(text).into_owned()),
            _ => {}
        }
    }
    Ok(file)
}

fn decode_function(message: &[u8]) -> Result<Option<LoadedFunction>, Malformed> {
    let (mut symbol, mut address) = (None, None);
    for field in Fields::of(message) {
        match field? {
            (1, Field::Bytes(name)) => symbol = Some(String::from_utf8_lossy(name).into_owned()),
            (2, Field::Varint(value)) => address = Some(value),
            _ => {}
        }
    }
    Ok(symbol.zip(address).map(|(symbol, address)| LoadedFunction { symbol, address }))
}
