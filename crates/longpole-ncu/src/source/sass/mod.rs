//! Facts decoded from a 128-bit SASS instruction: mnemonic, guard, registers, scoreboards, target of a jump.
//!
//! ```text
//!   bit 0       9    12   16       24       32        64       72          105          126
//!       | op    |form|grd | dest   | src a  | src b / | src c  | modifiers  | scheduling |
//!       |       |    |    |        |        | imm / c[] |      | predicates |            |
//! ```
//!
//! The scheduling bits: 105-108 stall cycles, 109 yield, 110-112 scoreboard set until the result is written (7: none), 113-115
//! scoreboard set until the operands are read (7: none), 116-121 mask of scoreboards waited for. This layout has been the same since
//! compute capability 7.0. There is no disassembler here: modifiers, immediates and constants are left alone, and what is not known is
//! `None` or absent.

mod opcodes;
mod registers;

use super::cubin::SmVersion;
use opcodes::Operation;

/// The register files that results travel through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegisterFile {
    /// R0 to R254, one value a thread.
    General,
    /// UR0 and up, one value a warp.
    Uniform,
    /// P0 to P6.
    Predicate,
    /// UP0 to UP6.
    UniformPredicate,
}

/// Registers in a row of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterRange {
    /// Which file.
    pub file: RegisterFile,
    /// Number of the first register.
    pub first: u8,
    /// How many.
    pub count: u8,
}

impl RegisterRange {
    /// Whether a register of this file and number is among them.
    pub fn contains(&self, file: RegisterFile, number: u8) -> bool {
        self.file == file && number >= self.first && number - self.first < self.count
    }

    /// The registers one by one.
    pub fn iter(&self) -> impl Iterator<Item = (RegisterFile, u8)> {
        let file = self.file;
        (self.first..self.first.saturating_add(self.count)).map(move |number| (file, number))
    }
}

/// What an instruction reads and writes, the always-zero and always-true registers left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers {
    /// Registers read, the guard predicate included.
    pub reads: Vec<RegisterRange>,
    /// Registers written.
    pub writes: Vec<RegisterRange>,
}

/// The part of the chip an operation runs on, as far as it says why its result is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Integer and floating point pipes with a fixed latency.
    Arithmetic,
    /// Transcendental functions and conversions.
    SpecialFunction,
    /// Tensor cores.
    Tensor,
    /// Loads and atomics through L1 from global or generic addresses.
    GlobalMemory,
    /// Loads from local memory: spilled registers and indexed arrays.
    LocalMemory,
    /// Loads and atomics in shared memory.
    SharedMemory,
    /// Loads from constant memory.
    ConstantMemory,
    /// Texture reads.
    Texture,
    /// Copies from global to shared memory that run beside the warp.
    AsyncCopy,
    /// Exchange between the lanes of a warp.
    Shuffle,
    /// Thread, block and clock numbers.
    SpecialRegister,
    /// Moves between register files, votes and matches, with a variable latency.
    Conversion,
    /// Stores and reductions through L1: nothing comes back, but the operands are read late.
    Store,
    /// Stores to shared memory.
    SharedStore,
    /// Jumps, barriers, fences.
    Control,
}

impl Unit {
    /// Whether waiting for a result of this unit is counted as a long scoreboard stall (memory behind L1) and not a short one.
    ///
    /// After the descriptions of the two stall reasons in NVIDIA's Kernel Profiling Guide: long is an L1TEX operation (global, local,
    /// surface, texture), short a memory input/output operation that is not (shared memory, special functions, dynamic branches).
    pub const fn is_long_scoreboard(self) -> bool {
        matches!(self, Self::GlobalMemory | Self::LocalMemory | Self::Texture | Self::AsyncCopy | Self::Store)
    }

    /// What to call the result in a sentence.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic result",
            Self::SpecialFunction => "special function or conversion",
            Self::Tensor => "tensor core result",
            Self::GlobalMemory => "load from global memory",
            Self::LocalMemory => "load from local memory",
            Self::SharedMemory => "access to shared memory",
            Self::ConstantMemory => "load from constant memory",
            Self::Texture => "texture read",
            Self::AsyncCopy => "asynchronous copy to shared memory",
            Self::Shuffle => "exchange between lanes",
            Self::SpecialRegister => "read of a special register",
            Self::Conversion => "move between register files",
            Self::Store => "store to global or local memory",
            Self::SharedStore => "store to shared memory",
            Self::Control => "control flow",
        }
    }
}

/// The predicate an instruction runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// P0 to P6 (UP0 to UP6 for uniform operations); `None` is always true.
    pub predicate: Option<u8>,
    /// Runs where the predicate is false.
    pub negated: bool,
}

impl Guard {
    /// Runs whatever the predicates say.
    pub const fn is_always(self) -> bool {
        self.predicate.is_none() && !self.negated
    }

    /// Never runs: `@!PT` makes a placeholder of an instruction.
    pub const fn is_never(self) -> bool {
        self.predicate.is_none() && self.negated
    }
}

/// The scheduling bits the compiler wrote into an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Cycles to wait before the next instruction of the warp.
    pub stall_cycles: u8,
    /// Bit 109, which the compiler uses to steer the choice of the next warp.
    pub yield_bit: bool,
    /// Scoreboard that stays set until the result is written.
    pub write_scoreboard: Option<u8>,
    /// Scoreboard that stays set until the operands are read.
    pub read_scoreboard: Option<u8>,
    /// Scoreboards 0 to 5 that must be clear before this instruction issues, as a bit set.
    pub wait_mask: u8,
}

/// One instruction of a chip of compute capability 7.0 or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    bits: u128,
    sm: SmVersion,
    operation: Option<&'static Operation>,
}

impl Instruction {
    /// Looks an instruction up. It never fails: what is unknown stays unknown.
    pub fn decode(bytes: [u8; 16], sm: SmVersion) -> Self {
        let bits = u128::from_le_bytes(bytes);
        Self { bits, sm, operation: opcodes::find((bits & 0xfff) as u16, sm.major) }
    }

    /// Bits 0 to 11.
    pub fn opcode(&self) -> u16 {
        self.field(0, 12) as u16
    }

    /// Base mnemonic, without modifiers. `None` where the opcode is not known.
    pub fn mnemonic(&self) -> Option<&'static str> {
        let mnemonic = self.operation?.mnemonic;
        // The same operation was called RED up to compute capability 8.9.
        Some(if mnemonic == "REDG" && self.sm.major < 9 { "RED" } else { mnemonic })
    }

    /// Where the result comes from. `None` where the opcode is not known.
    pub fn unit(&self) -> Option<Unit> {
        self.operation.map(|operation| operation.unit)
    }

    /// The predicate in bits 12 to 15.
    pub fn guard(&self) -> Guard {
        let number = self.field(12, 3) as u8;
        Guard { predicate: (number != 7).then_some(number), negated: self.bit(15) }
    }

    /// The scheduling bits.
    pub fn control(&self) -> Control {
        let scoreboard = |first: u32| Some(self.field(first, 3) as u8).filter(|&number| number < 6);
        Control {
            stall_cycles: self.field(105, 4) as u8,
            yield_bit: self.bit(109),
            write_scoreboard: scoreboard(110),
            read_scoreboard: scoreboard(113),
            wait_mask: self.field(116, 6) as u8,
        }
    }

    /// Whether the next instruction can only be reached by a jump.
    pub fn ends_block(&self) -> bool {
        let Some(operation) = self.operation else { return false };
        // A second predicate in bits 87 to 90 can hold a jump or exit back just as the guard does.
        let always = self.guard().is_always() && self.field(87, 4) == 7;
        match operation.mnemonic {
            "BRA" => always && self.field(9, 3) == 4 && self.field(32, 2) == 0,
            "EXIT" | "BRX" | "RET" | "KILL" => always,
            _ => false,
        }
    }

    /// Distance in bytes from the end of this instruction to where it may jump. `None` for all but direct branches.
    ///
    /// Compute capability 9.0 and later splits the distance, counted in units of four bytes: the lowest eight bits stand in bits 16 to
    /// 23, the others from bit 34 on. Before, bits 34 to 81 hold all of it.
    pub fn branch_distance(&self) -> Option<i64> {
        if self.operation?.mnemonic != "BRA" {
            return None;
        }
        let high = self.field(34, 48) as i64;
        let high = if high >> 47 & 1 == 1 { high - (1 << 48) } else { high };
        let units = if self.sm.major >= 9 { (high << 8) | (self.field(16, 8) as i64) } else { high };
        Some(units << 2)
    }

    /// Registers read and written. `None` where the operation is not known well enough.
    pub fn registers(&self) -> Option<Registers> {
        registers::of(self, self.operation?)
    }

    /// `DEPBAR.LE SBn, count`: the scoreboard it waits on, and how many operations may be left when it goes on.
    pub fn waits_for_scoreboard_count(&self) -> Option<(u8, u8)> {
        // Bit 47 is set for "at most"; nothing else has been seen.
        let counts = self.operation?.mnemonic == "DEPBAR" && self.bit(47);
        counts.then(|| (self.field(44, 3) as u8, self.field(38, 6) as u8)).filter(|&(scoreboard, _)| scoreboard < 6)
    }

    /// `BRA.DIV`, taken only when the warp has split: bits 32 and 33 hold a condition on the warp, 0 for none.
    fn is_divergence_branch(&self) -> bool {
        self.field(32, 2) == 2
    }

    fn field(&self, first: u32, width: u32) -> u64 {
        (self.bits >> first) as u64 & ((1_u64 << width) - 1)
    }

    fn bit(&self, number: u32) -> bool {
        self.field(number, 1) == 1
    }
}

/// The instructions of a function, 16 bytes each; a remainder is left out.
pub fn decode_all(code: &[u8], sm: SmVersion) -> Vec<Instruction> {
    if !sm.has_wide_instructions() {
        return Vec::new();
    }
    code.as_chunks::<16>().0.iter().map(|&bytes| Instruction::decode(bytes, sm)).collect()
}
