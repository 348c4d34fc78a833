//! Which registers an instruction reads and writes.
//!
//! The general rule of arithmetic operations: source a stands in bits 24 to 31. By form (bits 9 to 11), b and c are
//! 1: registers b in 32-39, c in 64-71. 2: c immediate. 3: c constant. 4: b immediate. 5: b constant. 6: b uniform register.
//! 7: c uniform register. Where c takes bits 32 to 63 (forms 2, 3 and 7), b moves to 64-71. A two-source operation in such a form takes
//! its second source from bits 32 to 63 all the same.

use super::opcodes::{Field, FieldKind, Operation, Shape, Width};
use super::{Instruction, RegisterFile, RegisterRange, Registers};

/// Number of the general register that reads as zero.
const RZ: u8 = 255;

/// Number of the predicate that is always true.
const PT: u8 = 7;

pub(super) fn of(instruction: &Instruction, operation: &Operation) -> Option<Registers> {
    let mut collected = Collected { instruction, registers: Registers::default() };
    let is_uniform = match operation.shape {
        Shape::Unknown => return None,
        Shape::Plain => false,
        Shape::Alu { destination, a, b, c } => {
            let factor = if is_wide(instruction, operation) { 2 } else { 1 };
            collected.alu(RegisterFile::General, [destination, a, b, c].map(|count| count * factor));
            false
        }
        Shape::UniformAlu { destination, a, b, c } => {
            collected.alu(RegisterFile::Uniform, [destination, a, b, c]);
            true
        }
        Shape::Compare { a, b } => {
            let factor = if is_wide(instruction, operation) { 2 } else { 1 };
            collected.alu(RegisterFile::General, [0, a * factor, b * factor, 0]);
            collected.write(RegisterFile::Predicate, 81, 1);
            collected.write(RegisterFile::Predicate, 84, 1);
            false
        }
        Shape::UniformCompare => {
            collected.alu(RegisterFile::Uniform, [0, 1, 1, 0]);
            collected.write(RegisterFile::UniformPredicate, 81, 1);
            collected.write(RegisterFile::UniformPredicate, 84, 1);
            true
        }
        Shape::Lea { uniform } => {
            let third = u8::from(instruction.bit(80));
            collected.alu(if uniform { RegisterFile::Uniform } else { RegisterFile::General }, [1, 1, 1, third]);
            uniform
        }
        Shape::Lop { uniform } => {
            let (file, predicates) = if uniform {
                (RegisterFile::Uniform, RegisterFile::UniformPredicate)
            } else {
                (RegisterFile::General, RegisterFile::Predicate)
            };
            collected.alu(file, [1, 1, 1, 1]);
            collected.write(predicates, 81, 1);
            uniform
        }
        Shape::Branch => {
            if instruction.is_divergence_branch() {
                collected.read(RegisterFile::Uniform, 24, 1);
            }
            false
        }
        Shape::Shuffle => {
            collected.shuffle();
            false
        }
        Shape::Tensor => {
            let [accumulator, a, b] = tensor_registers(instruction, operation);
            collected.write(RegisterFile::General, 16, accumulator);
            collected.read(RegisterFile::General, 24, a);
            collected.read(RegisterFile::General, 32, b);
            collected.read(RegisterFile::General, 64, accumulator);
            false
        }
        Shape::Fields(fields) => {
            for field in fields {
                collected.field(*field);
            }
            // Uniform operations run under a uniform predicate; moves into the uniform file from elsewhere do not.
            fields.iter().any(|field| field.written && field.kind == FieldKind::Uniform)
                && (operation.mnemonic.starts_with('U') || operation.mnemonic == "LDCU")
        }
    };
    if let Some(number) = instruction.guard().predicate {
        let file = if is_uniform { RegisterFile::UniformPredicate } else { RegisterFile::Predicate };
        collected.registers.reads.push(RegisterRange { file, first: number, count: 1 });
    }
    Some(collected.registers)
}

/// Registers a thread gives for accumulator, a and b of a matrix multiply. One each for shapes that were not checked.
fn tensor_registers(instruction: &Instruction, operation: &Operation) -> [u8; 3] {
    let modifiers = instruction.field(72, 8);
    if operation.mnemonic == "IMMA" {
        // Bit 86 tells the shapes of compute capability 8.0 and later from the older ones.
        return match (modifiers, instruction.bit(86)) {
            (0x5c, true) => [4, 4, 2],
            (0x54, true) => [4, 2, 1],
            (0x54, false) => [2, 1, 1],
            _ => [1, 1, 1],
        };
    }
    match modifiers {
        // 16x8x16 with accumulators of 32 and of 16 bits.
        0x18 => [4, 4, 2],
        0x08 => [2, 4, 2],
        // 16x8x8: with TF32 values (bit 83) an element takes a whole register.
        0x10 if instruction.bit(83) => [4, 4, 2],
        0x10 => [4, 2, 1],
        _ => [1, 1, 1],
    }
}

/// Whether an operation that is 32 bits wide elsewhere works on register pairs, as some can from compute capability 12.0 on.
fn is_wide(instruction: &Instruction, operation: &Operation) -> bool {
    instruction.sm.major >= 12
        && match operation.mnemonic {
            "MOV" => instruction.bit(80) || instruction.field(9, 3) == 2,
            "ISETP" => instruction.bit(80),
            "IADD" => instruction.bit(73),
            "SEL" => instruction.field(9, 3) == 3,
            _ => false,
        }
}

struct Collected<'a> {
    instruction: &'a Instruction,
    registers: Registers,
}

impl Collected<'_> {
    fn alu(&mut self, file: RegisterFile, [destination, a, b, c]: [u8; 4]) {
        self.write(file, 16, destination);
        self.read(file, 24, a);
        let form = self.instruction.field(9, 3);
        // In these forms bits 32 to 63 are the last source and the other one moves up.
        let swapped = matches!(form, 2 | 3 | 7);
        let (middle, last) = match (swapped, c) {
            (true, 0) => (b, 0),
            (true, c) => (c, b),
            (false, c) => (b, c),
        };
        match form {
            1 => self.read(file, 32, middle),
            // Constants are no operands from compute capability 12.0 on: this form of SEL is the one for pairs.
            3 if self.instruction.sm.major >= 12 => self.read(file, 32, middle),
            6 | 7 => self.read(RegisterFile::Uniform, 32, middle),
            _ => {}
        }
        self.read(file, 64, last);
    }

    fn shuffle(&mut self) {
        self.write(RegisterFile::General, 16, 1);
        self.write(RegisterFile::Predicate, 81, 1);
        self.read(RegisterFile::General, 24, 1);
        let form = self.instruction.field(9, 3);
        if matches!(form, 1 | 2) {
            self.read(RegisterFile::General, 32, 1);
        }
        if matches!(form, 1 | 4) {
            self.read(RegisterFile::General, 64, 1);
        }
    }

    fn field(&mut self, field: Field) {
        let file = match field.kind {
            FieldKind::General => RegisterFile::General,
            FieldKind::Uniform => RegisterFile::Uniform,
            FieldKind::OptionalUniform if self.instruction.bit(91) => RegisterFile::Uniform,
            FieldKind::OptionalUniform => return,
            FieldKind::Predicate => RegisterFile::Predicate,
            FieldKind::UniformPredicate => RegisterFile::UniformPredicate,
        };
        let count = self.count(field.width);
        if field.written { self.write(file, field.bit, count) } else { self.read(file, field.bit, count) }
    }

    /// How many registers a field stands for.
    fn count(&self, width: Width) -> u8 {
        let two_if = |condition: bool| if condition { 2 } else { 1 };
        let instruction = self.instruction;
        match width {
            Width::One => 1,
            Width::Two => 2,
            Width::Memory => match instruction.field(73, 3) {
                5 => 2,
                6 => 4,
                _ => 1,
            },
            Width::AddressE => two_if(instruction.bit(72)),
            Width::AddressWide => two_if(instruction.bit(90)),
            Width::Matrices => match instruction.field(72, 2) {
                0 => 1,
                1 => 2,
                _ => 4,
            },
            Width::Bit80 => two_if(instruction.bit(80)),
            Width::ConvertedTo => two_if(instruction.field(75, 2) == 3),
            Width::ConvertedFrom => two_if(instruction.field(84, 2) == 3),
            Width::Atomic if instruction.sm.major >= 9 => two_if(matches!(instruction.field(73, 4), 2 | 3 | 15)),
            Width::Atomic => two_if(matches!(instruction.field(73, 3), 2 | 5 | 6)),
            Width::TextureLow => (instruction.field(72, 4).count_ones() as u8).min(2),
            Width::TextureHigh => (instruction.field(72, 4).count_ones() as u8).saturating_sub(2),
        }
    }

    fn read(&mut self, file: RegisterFile, bit: u8, count: u8) {
        let range = self.range(file, bit, count);
        self.registers.reads.extend(range);
    }

    fn write(&mut self, file: RegisterFile, bit: u8, count: u8) {
        let range = self.range(file, bit, count);
        self.registers.writes.extend(range);
    }

    /// The registers a field names, unless it is the one that is always zero or true.
    fn range(&self, file: RegisterFile, bit: u8, count: u8) -> Option<RegisterRange> {
        // Compute capability 10.0 widened the uniform file from 64 to 256 registers, the last of which reads as zero.
        let (width, constant) = match file {
            RegisterFile::General => (8, RZ),
            RegisterFile::Uniform if self.instruction.sm.major >= 10 => (8, 255),
            RegisterFile::Uniform => (6, 63),
            RegisterFile::Predicate | RegisterFile::UniformPredicate => (3, PT),
        };
        let first = self.instruction.field(u32::from(bit), width) as u8;
        (count > 0 && first != constant).then_some(RegisterRange { file, first, count })
    }
}
