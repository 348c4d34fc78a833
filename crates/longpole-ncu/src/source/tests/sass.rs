//! Instructions made by compilers, decoded by hand from the layout described in the module.

use crate::source::SmVersion;
use crate::source::sass::{Guard, Instruction, RegisterFile, RegisterRange, Unit};

const HOPPER: SmVersion = SmVersion { major: 9, minor: 0 };
const TURING: SmVersion = SmVersion { major: 7, minor: 5 };

fn decode(low: u64, high: u64, sm: SmVersion) -> Instruction {
    Instruction::decode((u128::from(high) << 64 | u128::from(low)).to_le_bytes(), sm)
}

fn general(first: u8, count: u8) -> RegisterRange {
    RegisterRange { file: RegisterFile::General, first, count }
}

fn uniform(first: u8, count: u8) -> RegisterRange {
    RegisterRange { file: RegisterFile::Uniform, first, count }
}

fn predicate(first: u8) -> RegisterRange {
    RegisterRange { file: RegisterFile::Predicate, first, count: 1 }
}

/// Mnemonic, reads and writes of an instruction.
fn check(low: u64, high: u64, mnemonic: &str, writes: &[RegisterRange], reads: &[RegisterRange]) -> Instruction {
    let instruction = decode(low, high, HOPPER);
    assert_eq!(instruction.mnemonic(), Some(mnemonic));
    let registers = instruction.registers().unwrap();
    assert_eq!(registers.writes, writes, "writes of {mnemonic}");
    assert_eq!(registers.reads, reads, "reads of {mnemonic}");
    instruction
}

#[test]
fn arithmetic_with_a_uniform_register() {
    // IMAD R2, R2, UR4, R21
    let instruction =
        check(0x0000_0004_0202_7c24, 0x001f_e200_0f8e_0215, "IMAD", &[general(2, 1)], &[general(2, 1), uniform(4, 1), general(21, 1)]);
    let control = instruction.control();
    assert_eq!((control.stall_cycles, control.yield_bit, control.wait_mask), (1, true, 1));
    assert_eq!((control.write_scoreboard, control.read_scoreboard), (None, None));
}

#[test]
fn a_special_register_sets_a_scoreboard() {
    // S2R R21, SR_TID.X
    let instruction = check(0x0000_0000_0015_7919, 0x000e_2400_0000_2100, "S2R", &[general(21, 1)], &[]);
    assert_eq!(instruction.control().write_scoreboard, Some(0));
    assert_eq!(instruction.unit(), Some(Unit::SpecialRegister));
}

#[test]
fn a_comparison_writes_predicates() {
    // ISETP.GE.AND P0, PT, R2, UR4, PT
    check(0x0000_0004_0200_7c0c, 0x000f_da00_0bf0_6270, "ISETP", &[predicate(0)], &[general(2, 1), uniform(4, 1)]);
}

#[test]
fn a_guard_is_read() {
    // @P0 EXIT
    let instruction = check(0x0000_0000_0000_094d, 0x000f_ea00_0380_0000, "EXIT", &[], &[predicate(0)]);
    assert_eq!(instruction.guard(), Guard { predicate: Some(0), negated: false });
    assert!(!instruction.ends_block(), "some threads go on");
}

#[test]
fn branch_distance_of_both_layouts() {
    // BRA to itself, as it ends every kernel.
    let hopper = decode(0xffff_fffc_00fc_7947, 0x000f_c000_0383_ffff, HOPPER);
    let turing = decode(0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff, TURING);
    for instruction in [hopper, turing] {
        assert_eq!(instruction.branch_distance(), Some(-16));
        assert!(instruction.ends_block());
    }
    assert_eq!(decode(0x0000_0000_0000_7918, 0, HOPPER).branch_distance(), None);
}

#[test]
fn an_unknown_opcode_is_said_to_be_unknown() {
    let instruction = decode(0x0000_0000_0000_7fff, 0, HOPPER);
    assert_eq!((instruction.mnemonic(), instruction.unit(), instruction.registers()), (None, None, None));
    assert!(!instruction.ends_block());
}

#[test]
fn every_bit_pattern_decodes_without_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for opcode in 0..0x1000_u64 {
        for sm in [HOPPER, TURING, SmVersion { major: 10, minor: 0 }, SmVersion { major: 12, minor: 0 }] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let instruction = decode(state & !0xfff | opcode, state.rotate_left(17), sm);
            if let Some(registers) = instruction.registers() {
                assert!(registers.reads.iter().chain(&registers.writes).all(|range| range.count >= 1 && range.iter().count() >= 1));
            }
            instruction.branch_distance();
            instruction.control();
        }
    }
}
