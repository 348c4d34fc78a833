//! The opcode table: bits 0 to 11 of an instruction -> mnemonic, registers, and how its result becomes ready.
//!
//! Bits 0 to 8 name the operation, bits 9 to 11 the form of its operands (which of them is a constant, an immediate, or a uniform
//! register). Facts come from two public sources: the disassembly that NVIDIA's own tools print for real code (some 270,000 different
//! instructions for compute capability 7.5, 8.0, 8.6, 9.0, 10.0 and 12.0 agree with this table in mnemonic and registers), and the
//! Volta and later encoder of Mesa's NAK compiler for the few operations absent there. An opcode or form that neither shows is not in
//! the table: no mnemonic is better than a wrong one. Register counts of wide operands follow the size bits; of matrix operands they are
//! known for the shapes listed in `registers`.
//!
//! To add an operation: one line here, ordered by number; then look at what the test against recorded disassembly says.

use super::Unit;

/// Where a register number stands in an instruction, whether it is read or written, and how many registers it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) written: bool,
    pub(super) kind: FieldKind,
    /// First bit of the register number.
    pub(super) bit: u8,
    pub(super) width: Width,
}

/// Which registers a field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    General,
    Uniform,
    /// A uniform register that is there only if bit 91 is set.
    OptionalUniform,
    Predicate,
    UniformPredicate,
}

/// How many registers in a row a field stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    /// By the size in bits 73 to 75: up to 32 bits one register, 64 bits two, 128 bits four.
    Memory,
    /// Two if bit 72 (a 64-bit address) is set.
    AddressE,
    /// Two if bit 90 (a 64-bit register beside a uniform one) is set.
    AddressWide,
    /// 8x8 matrices, log2 in bits 72 and 73.
    Matrices,
    /// Two if bit 80 is set.
    Bit80,
    /// Two if the size in bits 75 and 76 says 64 bits.
    ConvertedTo,
    /// Two if the size in bits 84 and 85 says 64 bits.
    ConvertedFrom,
    /// By the type of an atomic operation in bits 73 to 76.
    Atomic,
    /// The first two of the texture channels in bits 72 to 75.
    TextureLow,
    /// What remains of the texture channels above two; none at all for up to two.
    TextureHigh,
}

/// Which registers an operation uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// None besides the guard.
    Plain,
    /// Not known: nothing is said about it.
    Unknown,
    /// One destination and up to three sources by the general rule of forms: numbers of registers of each, 0 where it has none.
    Alu { destination: u8, a: u8, b: u8, c: u8 },
    /// The same over uniform registers.
    UniformAlu { destination: u8, a: u8, b: u8, c: u8 },
    /// A comparison: two sources by the general rule, two predicates written.
    Compare { a: u8, b: u8 },
    /// The same over uniform registers.
    UniformCompare,
    /// Fields at fixed places.
    Fields(&'static [Field]),
    /// Shift and add: reads its third source only in the form for the upper half.
    Lea { uniform: bool },
    /// Logic on three sources, with a predicate that says whether the result is not zero.
    Lop { uniform: bool },
    /// Jump: a register is read only where the warp may have split.
    Branch,
    /// Exchange between lanes: lane and mask are registers or immediates by form.
    Shuffle,
    /// Matrix multiply: how many registers each operand takes follows from the modifiers.
    Tensor,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    /// Bits 0 to 8.
    pub(super) number: u16,
    /// Values of bits 9 to 11 that are known to go with this mnemonic, as a bit set.
    pub(super) forms: u8,
    pub(super) mnemonic: &'static str,
    pub(super) unit: Unit,
    pub(super) shape: Shape,
    /// First and last major compute capability on which the number has this meaning.
    pub(super) majors: (u16, u16),
}

impl Operation {
    const fn new(number: u16, in_forms: u8, mnemonic: &'static str, unit: Unit, shape: Shape) -> Self {
        Self { number, forms: in_forms, mnemonic, unit, shape, majors: ANY_MAJOR }
    }

    /// The same, on some chips only.
    const fn on(mut self, first: u16, last: u16) -> Self {
        self.majors = (first, last);
        self
    }
}

/// No restriction.
const ANY_MAJOR: (u16, u16) = (0, u16::MAX);

/// All forms of the general rule.
const ALU_FORMS: u8 = 0b1111_1110;

const fn read(bit: u8, width: Width) -> Field {
    Field { written: false, kind: FieldKind::General, bit, width }
}
const fn write(bit: u8, width: Width) -> Field {
    Field { written: true, kind: FieldKind::General, bit, width }
}
const fn uniform(bit: u8, width: Width) -> Field {
    Field { written: false, kind: FieldKind::Uniform, bit, width }
}
const fn optional_uniform(bit: u8, width: Width) -> Field {
    Field { written: false, kind: FieldKind::OptionalUniform, bit, width }
}
const fn write_uniform(bit: u8, width: Width) -> Field {
    Field { written: true, kind: FieldKind::Uniform, bit, width }
}
const fn write_predicate(bit: u8) -> Field {
    Field { written: true, kind: FieldKind::Predicate, bit, width: Width::One }
}
const fn write_uniform_predicate(bit: u8) -> Field {
    Field { written: true, kind: FieldKind::UniformPredicate, bit, width: Width::One }
}

/// An arithmetic operation in any form.
const fn alu(number: u16, mnemonic: &'static str, [destination, a, b, c]: [u8; 4]) -> Operation {
    Operation::new(number, ALU_FORMS, mnemonic, Unit::Arithmetic, Shape::Alu { destination, a, b, c })
}
/// The same over uniform registers: the second source is a register or an immediate.
const fn ualu(number: u16, mnemonic: &'static str, [destination, a, b, c]: [u8; 4]) -> Operation {
    let shape = Shape::UniformAlu { destination, a, b, c };
    Operation::new(number, forms(&[1, 2, 4]), mnemonic, Unit::Arithmetic, shape)
}
const fn compare(number: u16, mnemonic: &'static str, a: u8, b: u8) -> Operation {
    Operation::new(number, ALU_FORMS, mnemonic, Unit::Arithmetic, Shape::Compare { a, b })
}
/// A conversion or special function: one source that may be a register, a constant, an immediate or a uniform register.
const fn special(number: u16, mnemonic: &'static str) -> Operation {
    let shape = Shape::Alu { destination: 1, a: 0, b: 1, c: 0 };
    Operation::new(number, ALU_FORMS, mnemonic, Unit::SpecialFunction, shape)
}
/// A conversion between sizes: the source is a register (form 1) or a uniform register (form 6).
const fn convert(number: u16, form: u8, mnemonic: &'static str, fields: &'static [Field]) -> Operation {
    Operation::new(number, forms(&[form]), mnemonic, Unit::SpecialFunction, Shape::Fields(fields))
}
const fn op(number: u16, in_forms: &[u8], mnemonic: &'static str, unit: Unit, fields: &'static [Field]) -> Operation {
    Operation::new(number, forms(in_forms), mnemonic, unit, Shape::Fields(fields))
}
/// An operation whose registers do not matter here: control flow, barriers, fences.
const fn plain(number: u16, in_forms: &[u8], mnemonic: &'static str) -> Operation {
    Operation::new(number, forms(in_forms), mnemonic, Unit::Control, Shape::Plain)
}
const fn unknown(number: u16, in_forms: &[u8], mnemonic: &'static str, unit: Unit) -> Operation {
    Operation::new(number, forms(in_forms), mnemonic, unit, Shape::Unknown)
}

const fn forms(list: &[u8]) -> u8 {
    let mut set = 0;
    let mut index = 0;
    while index < list.len() {
        set |= 1 << list[index];
        index += 1;
    }
    set
}

const CONVERT: &[Field] = &[write(16, Width::ConvertedTo), read(32, Width::ConvertedFrom)];
const CONVERT_UNIFORM: &[Field] = &[write(16, Width::ConvertedTo), uniform(32, Width::ConvertedFrom)];
const TEXTURE_UNIFORM: &[Field] =
    &[write(16, Width::TextureLow), write(64, Width::TextureHigh), read(24, Width::One), read(32, Width::One), uniform(40, Width::One)];
const ATOMIC_WIDE: &[Field] =
    &[write(16, Width::Atomic), read(24, Width::AddressE), read(32, Width::Atomic), optional_uniform(64, Width::Two), write_predicate(81)];
const ATOMIC: &[Field] = &[write(16, Width::Atomic), read(24, Width::AddressE), read(32, Width::Atomic), write_predicate(81)];
const ATOMIC_COMPARED: &[Field] =
    &[write(16, Width::Atomic), read(24, Width::AddressE), read(32, Width::Atomic), read(64, Width::Atomic), write_predicate(81)];
const TEXTURE: &[Field] = &[write(16, Width::TextureLow), write(64, Width::TextureHigh), read(24, Width::One), read(32, Width::One)];
const NONE: &[Field] = &[];

/// Every known operation, ordered by number (ties: forms apart).
pub(super) const OPERATIONS: &[Operation] = &[
    plain(0x001, &[4], "PMTRIG"),
    alu(0x002, "MOV", [1, 0, 1, 0]),
    op(0x003, &[4], "P2R", Unit::Arithmetic, &[write(16, Width::One), read(24, Width::One)]),
    op(0x004, &[4], "R2P", Unit::Arithmetic, &[read(24, Width::One)]),
    op(0x005, &[4], "CS2R", Unit::Arithmetic, &[write(16, Width::Bit80)]),
    op(0x006, &[4], "VOTE", Unit::Arithmetic, &[write(16, Width::One), write_predicate(81)]),
    alu(0x007, "SEL", [1, 1, 1, 0]),
    alu(0x008, "FSEL", [1, 1, 1, 0]),
    alu(0x009, "FMNMX", [1, 1, 1, 0]),
    alu(0x00a, "FSET", [1, 1, 1, 0]),
    compare(0x00b, "FSETP", 1, 1),
    compare(0x00c, "ISETP", 1, 1),
    alu(0x00f, "VIMNMX3", [1, 1, 1, 1]),
    alu(0x010, "IADD3", [1, 1, 1, 1]),
    Operation::new(0x011, ALU_FORMS, "LEA", Unit::Arithmetic, Shape::Lea { uniform: false }),
    Operation::new(0x012, ALU_FORMS, "LOP3", Unit::Arithmetic, Shape::Lop { uniform: false }),
    alu(0x013, "IABS", [1, 0, 1, 0]),
    alu(0x014, "VABSDIFF", [1, 1, 1, 1]),
    alu(0x015, "VABSDIFF4", [1, 1, 1, 1]),
    alu(0x016, "PRMT", [1, 1, 1, 1]),
    alu(0x017, "IMNMX", [1, 1, 1, 0]),
    alu(0x019, "SHF", [1, 1, 1, 1]),
    alu(0x01a, "SGXT", [1, 1, 1, 0]),
    alu(0x01b, "BMSK", [1, 1, 1, 0]),
    op(0x01c, &[4], "PLOP3", Unit::Arithmetic, &[write_predicate(81), write_predicate(84)]),
    alu(0x020, "FMUL", [1, 1, 1, 0]),
    alu(0x021, "FADD", [1, 1, 1, 0]),
    op(0x022, &[4], "FSWZADD", Unit::Arithmetic, &[write(16, Width::One), read(24, Width::One), read(64, Width::One)]),
    alu(0x023, "FFMA", [1, 1, 1, 1]),
    alu(0x024, "IMAD", [1, 1, 1, 1]),
    alu(0x025, "IMAD", [2, 1, 1, 2]),
    alu(0x026, "IDP", [1, 1, 1, 1]),
    alu(0x027, "IMAD", [1, 1, 1, 2]),
    alu(0x028, "DMUL", [2, 2, 2, 0]),
    alu(0x029, "DADD", [2, 2, 0, 2]),
    compare(0x02a, "DSETP", 2, 2),
    alu(0x02b, "DFMA", [2, 2, 2, 2]),
    plain(0x02d, &[4], "PREEXIT"),
    plain(0x02e, &[4], "ACQBULK"),
    op(0x02f, &[4], "ELECT", Unit::Arithmetic, &[write_uniform(16, Width::One), write_predicate(81)]),
    alu(0x030, "HADD2", [1, 1, 1, 0]),
    alu(0x031, "HFMA2", [1, 1, 1, 1]),
    alu(0x032, "HMUL2", [1, 1, 1, 0]),
    alu(0x033, "HSET2", [1, 1, 1, 0]),
    compare(0x034, "HSETP2", 1, 1),
    alu(0x035, "HFMA2", [1, 1, 1, 1]).on(7, 9),
    alu(0x035, "IADD", [1, 1, 1, 0]).on(12, u16::MAX),
    Operation::new(0x036, forms(&[1, 4, 5, 6]), "VIADD", Unit::Arithmetic, Shape::Alu { destination: 1, a: 1, b: 1, c: 0 }),
    Operation::new(0x037, forms(&[1]), "IMMA", Unit::Tensor, Shape::Tensor),
    op(0x03b, &[4], "LDSM", Unit::SharedMemory, &[write(16, Width::Matrices), read(24, Width::One), optional_uniform(32, Width::One)]),
    Operation::new(0x03c, forms(&[1]), "HMMA", Unit::Tensor, Shape::Tensor),
    alu(0x03e, "F2FP", [1, 1, 1, 1]),
    alu(0x040, "HMNMX2", [1, 1, 1, 0]),
    op(0x044, &[4], "STSM", Unit::SharedStore, &[read(24, Width::One), read(32, Width::Matrices), optional_uniform(64, Width::One)]),
    alu(0x045, "I2FP", [1, 0, 1, 0]),
    alu(0x046, "VIADDMNMX", [1, 1, 1, 1]),
    alu(0x048, "VIMNMX", [1, 1, 1, 0]),
    alu(0x049, "FFMA2", [2, 2, 2, 2]),
    alu(0x04a, "FMUL2", [2, 2, 2, 0]),
    alu(0x04b, "FADD2", [2, 2, 2, 0]),
    plain(0x04c, &[4], "UVIRTCOUNT"),
    alu(0x076, "FMNMX3", [1, 1, 1, 1]),
    op(0x082, &[4], "UMOV", Unit::Arithmetic, &[write_uniform(16, Width::One)]),
    op(0x082, &[6], "UMOV", Unit::Arithmetic, &[write_uniform(16, Width::One), uniform(32, Width::One)]),
    op(0x082, &[2], "UMOV", Unit::Arithmetic, &[write_uniform(16, Width::Two)]).on(12, u16::MAX),
    op(0x086, &[4], "VOTEU", Unit::Arithmetic, &[write_uniform(16, Width::One), write_uniform_predicate(81)]),
    ualu(0x087, "USEL", [1, 1, 1, 0]),
    Operation::new(0x08c, forms(&[1, 4]), "UISETP", Unit::Arithmetic, Shape::UniformCompare),
    ualu(0x090, "UIADD3", [1, 1, 1, 1]),
    Operation::new(0x091, forms(&[1, 2, 4]), "ULEA", Unit::Arithmetic, Shape::Lea { uniform: true }),
    Operation::new(0x092, forms(&[1, 2, 4]), "ULOP3", Unit::Arithmetic, Shape::Lop { uniform: true }),
    ualu(0x096, "UPRMT", [1, 1, 1, 1]),
    ualu(0x097, "UIADD3", [2, 2, 2, 2]),
    ualu(0x099, "USHF", [1, 1, 1, 1]),
    ualu(0x09b, "UBMSK", [1, 1, 1, 0]),
    op(0x09c, &[4], "UPLOP3", Unit::Arithmetic, &[write_uniform_predicate(81), write_uniform_predicate(84)]),
    ualu(0x0a4, "UIMAD", [1, 1, 1, 1]),
    ualu(0x0a5, "UIMAD", [2, 1, 1, 2]),
    op(0x0b9, &[5], "ULDC", Unit::ConstantMemory, &[write_uniform(16, Width::Memory)]),
    op(0x0bb, &[5], "ULDC", Unit::ConstantMemory, &[write_uniform(16, Width::Memory), uniform(24, Width::One)]),
    ualu(0x0bd, "UFLO", [1, 0, 1, 0]),
    ualu(0x0be, "UBREV", [1, 0, 1, 0]),
    ualu(0x0bf, "UPOPC", [1, 0, 1, 0]),
    op(0x0ca, &[1], "R2UR", Unit::Conversion, &[write_uniform(16, Width::One), read(24, Width::One), write_predicate(81)]),
    op(0x0cb, &[4], "CS2UR", Unit::Arithmetic, &[write_uniform(16, Width::Bit80)]),
    op(0x0cc, &[1], "CREDUX", Unit::Conversion, &[write_uniform(16, Width::One), read(24, Width::One)]),
    special(0x100, "FLO"),
    special(0x101, "BREV"),
    op(0x102, &[1], "FCHK", Unit::SpecialFunction, &[write_predicate(81), read(24, Width::One), read(32, Width::One)]),
    op(0x102, &[4, 5], "FCHK", Unit::SpecialFunction, &[write_predicate(81), read(24, Width::One)]),
    op(0x102, &[6], "FCHK", Unit::SpecialFunction, &[write_predicate(81), read(24, Width::One), uniform(32, Width::One)]),
    convert(0x104, 1, "F2F", CONVERT),
    convert(0x104, 6, "F2F", CONVERT_UNIFORM),
    special(0x105, "F2I"),
    special(0x106, "I2F"),
    special(0x107, "FRND"),
    special(0x108, "MUFU"),
    special(0x109, "POPC"),
    convert(0x110, 1, "F2F", CONVERT),
    convert(0x110, 6, "F2F", CONVERT_UNIFORM),
    convert(0x111, 1, "F2I", CONVERT),
    convert(0x111, 6, "F2I", CONVERT_UNIFORM),
    convert(0x112, 1, "I2F", CONVERT),
    convert(0x112, 6, "I2F", CONVERT_UNIFORM),
    convert(0x113, 1, "FRND", CONVERT),
    convert(0x113, 6, "FRND", CONVERT_UNIFORM),
    plain(0x118, &[4], "NOP"),
    op(0x119, &[4], "S2R", Unit::SpecialRegister, &[write(16, Width::One)]),
    plain(0x11a, &[4], "DEPBAR"),
    plain(0x11b, &[4], "ENDCOLLECTIVE"),
    op(0x11c, &[1], "B2R", Unit::Conversion, &[write(16, Width::One), write_predicate(81)]),
    plain(0x11d, &[5], "BAR"),
    plain(0x141, &[4], "BSYNC"),
    plain(0x142, &[4], "BREAK"),
    op(0x143, &[1], "CALL", Unit::Control, &[read(24, Width::Two)]),
    plain(0x144, &[4], "CALL"),
    op(0x144, &[1], "CALL", Unit::Control, &[read(24, Width::Two)]),
    plain(0x145, &[4], "BSSY"),
    plain(0x146, &[4], "YIELD"),
    plain(0x147, &[2], "BRA"),
    Operation::new(0x147, forms(&[4]), "BRA", Unit::Control, Shape::Branch),
    op(0x148, &[1], "WARPSYNC", Unit::Control, &[read(24, Width::One)]),
    plain(0x148, &[4], "WARPSYNC"),
    op(0x149, &[4], "BRX", Unit::Control, &[read(24, Width::Two)]),
    plain(0x14d, &[4], "EXIT"),
    op(0x14e, &[1, 4], "LEPC", Unit::Control, &[write(16, Width::Two)]),
    op(0x150, &[4], "RET", Unit::Control, &[read(24, Width::Two)]),
    op(0x155, &[1], "BMOV", Unit::Control, &[write(16, Width::One)]),
    op(0x156, &[1], "BMOV", Unit::Control, &[read(32, Width::One)]),
    plain(0x15b, &[4], "KILL"),
    plain(0x15c, &[4], "BPT"),
    plain(0x15d, &[4], "NANOSLEEP"),
    op(0x160, &[5], "TEX", Unit::Texture, TEXTURE),
    op(0x160, &[7], "TEX", Unit::Texture, TEXTURE_UNIFORM),
    op(0x161, &[1, 6], "TEX", Unit::Texture, TEXTURE),
    op(0x163, &[5], "TLD4", Unit::Texture, TEXTURE),
    op(0x163, &[7], "TLD4", Unit::Texture, TEXTURE_UNIFORM),
    op(0x164, &[1, 6], "TLD4", Unit::Texture, TEXTURE),
    op(0x166, &[5], "TLD", Unit::Texture, TEXTURE),
    op(0x166, &[7], "TLD", Unit::Texture, TEXTURE_UNIFORM),
    op(0x167, &[1, 6], "TLD", Unit::Texture, TEXTURE),
    op(0x169, &[5], "TMML", Unit::Texture, TEXTURE),
    op(0x16a, &[1], "TMML", Unit::Texture, TEXTURE),
    op(0x16c, &[5], "TXD", Unit::Texture, TEXTURE),
    op(0x16d, &[1, 6], "TXD", Unit::Texture, TEXTURE),
    op(0x180, &[4], "LD", Unit::GlobalMemory, &[write(16, Width::Memory), read(24, Width::AddressWide), optional_uniform(32, Width::Two)]),
    op(0x181, &[1], "LDG", Unit::GlobalMemory, &[write(16, Width::Memory), read(24, Width::AddressE)]),
    op(0x181, &[4], "LDG", Unit::GlobalMemory, &[write(16, Width::Memory), read(24, Width::AddressWide), optional_uniform(32, Width::Two)]),
    op(0x182, &[5], "LDC", Unit::ConstantMemory, &[write(16, Width::Memory), read(24, Width::One)]),
    op(0x182, &[2], "LDC", Unit::ConstantMemory, &[write(16, Width::Memory), uniform(24, Width::One), read(64, Width::One)]),
    op(0x183, &[4], "LDL", Unit::LocalMemory, &[write(16, Width::Memory), read(24, Width::One), optional_uniform(32, Width::One)]),
    op(0x184, &[4], "LDS", Unit::SharedMemory, &[write(16, Width::Memory), read(24, Width::One), optional_uniform(32, Width::One)]),
    op(0x185, &[4], "ST", Unit::Store, &[read(24, Width::AddressWide), read(32, Width::Memory), optional_uniform(64, Width::Two)]),
    op(0x185, &[1], "ST", Unit::Store, &[read(24, Width::AddressE), read(64, Width::Memory)]),
    op(0x186, &[1], "STG", Unit::Store, &[read(24, Width::AddressE), read(32, Width::Memory)]),
    op(0x186, &[4], "STG", Unit::Store, &[read(24, Width::AddressWide), read(32, Width::Memory), optional_uniform(64, Width::Two)]),
    op(0x187, &[1], "STL", Unit::Store, &[read(24, Width::One), read(32, Width::Memory)]),
    op(0x187, &[4], "STL", Unit::Store, &[read(24, Width::One), read(32, Width::Memory), optional_uniform(64, Width::One)]),
    op(0x188, &[1], "STS", Unit::SharedStore, &[read(24, Width::One), read(32, Width::Memory)]),
    op(0x188, &[4], "STS", Unit::SharedStore, &[read(24, Width::One), read(32, Width::Memory), optional_uniform(64, Width::One)]),
    Operation::new(0x189, forms(&[1, 2, 4, 7]), "SHFL", Unit::Shuffle, Shape::Shuffle),
    op(0x18a, &[4], "ATOM", Unit::GlobalMemory, ATOMIC_WIDE),
    op(0x18b, &[1], "ATOM", Unit::GlobalMemory, ATOMIC_COMPARED),
    op(0x18c, &[1], "ATOMS", Unit::SharedMemory, &[write(16, Width::Atomic), read(24, Width::One), read(32, Width::Atomic)]),
    op(0x18c, &[7], "ATOMS", Unit::SharedMemory, &[write(16, Width::One), read(24, Width::One), optional_uniform(64, Width::One)]),
    op(
        0x18c,
        &[4],
        "ATOMS",
        Unit::SharedMemory,
        &[write(16, Width::Atomic), read(24, Width::One), read(32, Width::Atomic), optional_uniform(64, Width::One)],
    ),
    op(
        0x18d,
        &[1],
        "ATOMS",
        Unit::SharedMemory,
        &[write(16, Width::Atomic), read(24, Width::One), read(32, Width::Atomic), read(64, Width::Atomic)],
    ),
    op(0x18d, &[2], "ATOMS", Unit::SharedMemory, &[write_predicate(81), read(24, Width::One), read(32, Width::One), read(64, Width::One)]),
    op(0x18e, &[4], "REDG", Unit::Store, &[read(24, Width::AddressE), read(32, Width::Atomic), optional_uniform(64, Width::Two)]),
    op(0x18f, &[4], "CCTL", Unit::Control, &[read(24, Width::AddressE)]),
    plain(0x192, &[4], "MEMBAR"),
    op(0x199, &[5], "SULD", Unit::Texture, &[write(16, Width::Memory), read(24, Width::One)]),
    op(0x199, &[7], "SULD", Unit::Texture, &[write(16, Width::Memory), read(24, Width::One), uniform(40, Width::One)]),
    op(0x19d, &[5], "SUST", Unit::Store, &[read(24, Width::One), read(32, Width::Memory)]),
    op(0x19d, &[7], "SUST", Unit::Store, &[read(24, Width::One), read(32, Width::Memory), uniform(40, Width::One)]),
    op(0x1a1, &[1], "MATCH", Unit::Conversion, &[write(16, Width::One), read(24, Width::One), write_predicate(81)]),
    op(0x1a2, &[4], "ATOM", Unit::GlobalMemory, ATOMIC_WIDE),
    op(0x1a3, &[1], "ATOMG", Unit::GlobalMemory, ATOMIC),
    op(0x1a3, &[4], "ATOMG", Unit::GlobalMemory, ATOMIC_WIDE),
    op(0x1a5, &[4], "LDGMC", Unit::GlobalMemory, &[write(16, Width::Memory), read(24, Width::Two), optional_uniform(64, Width::Two)]),
    op(0x1a6, &[4], "REDG", Unit::Store, &[read(24, Width::AddressE), read(32, Width::Atomic), optional_uniform(64, Width::Two)]),
    op(
        0x1a7,
        &[2],
        "SYNCS",
        Unit::SharedMemory,
        &[write_predicate(81), read(24, Width::One), read(32, Width::One), optional_uniform(64, Width::One)],
    ),
    unknown(0x1a7, &[4], "SYNCS", Unit::SharedMemory),
    op(0x1a8, &[1], "ATOMG", Unit::GlobalMemory, ATOMIC),
    op(0x1a8, &[4], "ATOMG", Unit::GlobalMemory, ATOMIC_WIDE),
    op(0x1a9, &[1], "ATOMG", Unit::GlobalMemory, ATOMIC_COMPARED),
    op(0x1aa, &[1], "QSPC", Unit::Conversion, &[write_predicate(81), write(16, Width::One), read(24, Width::AddressE)]),
    op(
        0x1aa,
        &[4],
        "QSPC",
        Unit::Conversion,
        &[write_predicate(81), write(16, Width::One), read(24, Width::AddressE), optional_uniform(32, Width::Two)],
    ),
    plain(0x1ab, &[2], "CGAERRBAR"),
    plain(0x1ab, &[4], "ERRBAR"),
    op(0x1ac, &[3], "LDCU", Unit::ConstantMemory, &[write_uniform(16, Width::Memory), uniform(24, Width::One)]),
    op(0x1ae, &[6, 7], "LDGSTS", Unit::AsyncCopy, &[read(16, Width::One), read(24, Width::Two), optional_uniform(64, Width::Two)]),
    plain(0x1af, &[4], "LDGDEPBAR"),
    unknown(0x1b2, &[2], "SYNCS", Unit::SharedMemory),
    unknown(0x1b4, &[1, 2], "UTMALDG", Unit::AsyncCopy),
    unknown(0x1b5, &[1], "UTMASTG", Unit::Store),
    plain(0x1b7, &[4], "UTMACMDFLUSH"),
    unknown(0x1b9, &[4], "UTMACCTL", Unit::Control),
    unknown(0x1ba, &[1], "UBLKCP", Unit::AsyncCopy),
    unknown(0x1bb, &[1], "UBLKRED", Unit::AsyncCopy),
    op(0x1bd, &[6], "STAS", Unit::SharedStore, &[read(24, Width::Two), read(32, Width::Memory)]),
    op(0x1be, &[6], "REDAS", Unit::SharedStore, &[read(24, Width::Two), read(32, Width::One)]),
    op(0x1c2, &[1], "R2UR", Unit::Conversion, &[write_uniform(16, Width::One), read(24, Width::One), write_predicate(81)]),
    op(0x1c3, &[4], "S2UR", Unit::SpecialRegister, &[write_uniform(16, Width::One)]),
    op(0x1c4, &[1], "REDUX", Unit::Conversion, &[write_uniform(16, Width::One), read(24, Width::One)]),
    plain(0x1c5, &[4], "WARPGROUP"),
    op(0x1c6, &[1], "FENCE", Unit::Control, NONE),
    plain(0x1c7, &[4], "UCGABAR_ARV"),
    plain(0x1c7, &[6], "UCGABAR_WAIT"),
    unknown(0x1e3, &[2, 4], "UTCATOMSWS", Unit::Tensor).on(10, 11),
    unknown(0x1e6, &[4], "UTCSHIFT", Unit::Tensor).on(10, 11),
    unknown(0x1e7, &[4], "UTCCP", Unit::Tensor).on(10, 11),
    unknown(0x1e9, &[1], "UTCBAR", Unit::Tensor).on(10, 11),
    unknown(0x1ed, &[4], "STTM", Unit::Tensor).on(10, 11),
    unknown(0x1ee, &[4], "LDTM", Unit::Tensor).on(10, 11),
    unknown(0x1f0, &[4], "HGMMA", Unit::Tensor).on(9, 9),
    unknown(0x1f1, &[4], "IGMMA", Unit::Tensor).on(9, 9),
    unknown(0x1f3, &[4], "QGMMA", Unit::Tensor).on(9, 9),
];

/// The operation of an instruction by its bits 0 to 11 and the chip's major compute capability.
pub(super) fn find(opcode: u16, major: u16) -> Option<&'static Operation> {
    let number = opcode & 0x1ff;
    let form = (opcode >> 9) & 7;
    let first = OPERATIONS.partition_point(|operation| operation.number < number);
    OPERATIONS
        .get(first..)?
        .iter()
        .take_while(|operation| operation.number == number)
        .find(|operation| operation.forms >> form & 1 == 1 && (operation.majors.0..=operation.majors.1).contains(&major))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_ordered_and_unambiguous() {
        for (index, operation) in OPERATIONS.iter().enumerate() {
            for later in &OPERATIONS[index + 1..] {
                assert!(operation.number <= later.number, "{} stands before {}", operation.mnemonic, later.mnemonic);
                let overlap = operation.majors.0 <= later.majors.1 && later.majors.0 <= operation.majors.1;
                assert!(
                    operation.number != later.number || operation.forms & later.forms == 0 || !overlap,
                    "{:#x} is ambiguous",
                    operation.number
                );
            }
        }
        assert!(OPERATIONS.iter().all(|operation| operation.number < 0x200 && operation.forms != 0));
    }
}
