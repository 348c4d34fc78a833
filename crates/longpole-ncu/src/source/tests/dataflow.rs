//! What instructions wait for, on short programs made by hand.

use super::elf::{ADD, END, HOPPER, LOAD, USE, code};
use crate::source::dataflow::{Dependency, Program, Relation};
use crate::source::sass::Unit;

/// Sets the scheduling bits of an instruction: scoreboards set on write and on read, and the mask waited for.
fn scheduled(instruction: [u64; 2], write: u64, read: u64, wait: u64) -> [u64; 2] {
    let cleared = instruction[1] & !(0x7 << 46 | 0x7 << 49 | 0x3f << 52);
    [instruction[0], cleared | write << 46 | read << 49 | wait << 52]
}

/// Makes a branch to the instruction this many away from the next one.
fn branch(instructions: i64) -> [u64; 2] {
    let units = (instructions * 4) as u64;
    let low = units & 0xff;
    let high = units >> 8 & 0xffff_ffff_ffff;
    // Runs under P0, so that it also falls through.
    [0x0947 | low << 16 | high << 34, high >> 30 & 0x3_ffff | 0x000f_c000_0380_0000]
}

fn check(program: &[[u64; 2]], index: usize, expected: &[(usize, Relation, Unit)]) -> Vec<Dependency> {
    let found = Program::new(&code(program), HOPPER).dependencies(index);
    let names: Vec<_> = found.iter().map(|dependency| (dependency.index, dependency.relation, dependency.unit)).collect();
    assert_eq!(names, expected);
    found
}

#[test]
fn a_use_waits_for_its_load() {
    let found = check(&[LOAD, ADD, USE, END], 2, &[(0, Relation::Value, Unit::GlobalMemory)]);
    assert_eq!(found[0].distance, 1);
    check(&[LOAD, ADD, USE, END], 1, &[]);
}

#[test]
fn a_load_already_waited_for_is_not_named_again() {
    // The second use waits for the same scoreboard, which the first has drained.
    check(&[LOAD, USE, USE, END], 2, &[]);
}

#[test]
fn the_last_writer_counts() {
    // FADD R4, R4, R4 without a scoreboard overwrites the loaded value; waiting for it is not what the mask is for.
    let overwrite = [0x0000_0004_0404_7221, 0x000f_e200_0000_0000];
    // The scoreboard alone remains: the load set it.
    check(&[LOAD, overwrite, USE, END], 2, &[(0, Relation::Scoreboard, Unit::GlobalMemory)]);
}

#[test]
fn a_write_under_a_predicate_may_leave_the_older_value() {
    let guarded = [LOAD[0] & !0x7000, LOAD[1]];
    check(&[LOAD, guarded, USE, END], 2, &[(1, Relation::Value, Unit::GlobalMemory), (0, Relation::Value, Unit::GlobalMemory)]);
}

#[test]
fn a_placeholder_that_never_runs_is_passed_over() {
    // @!PT
    let never = [LOAD[0] | 0xf000, LOAD[1]];
    check(&[LOAD, never, USE, END], 2, &[(0, Relation::Value, Unit::GlobalMemory)]);
}

#[test]
fn the_end_of_a_loop_body_leads_to_its_start() {
    // USE at 1 is fed by the load before the loop in the first round, by the load at its end in the others.
    let program = [LOAD, USE, ADD, LOAD, branch(-4), END];
    check(&program, 1, &[(0, Relation::Value, Unit::GlobalMemory), (3, Relation::Value, Unit::GlobalMemory)]);
}

#[test]
fn an_overwritten_operand_is_waited_for() {
    // STG desc[UR8][R2.64], R6 sets scoreboard 1 until it has read R6, which VIADD R6 overwrites.
    let store = scheduled([0x0000_0006_0200_7986, 0x000f_e200_0c10_1908], 7, 1, 0);
    let overwrite = scheduled([0x0000_0001_0706_7836, 0x000f_e200_0000_0000], 7, 7, 1 << 1);
    check(&[store, overwrite, END], 1, &[(0, Relation::OperandsRead, Unit::Store)]);
}

#[test]
fn a_copy_group_is_counted_back() {
    // LDGSTS [R5], [R2.64]; LDGDEPBAR on scoreboard 0; DEPBAR.LE SB0, 1 waits for the latest group but one.
    let copy = [0x0000_0000_0205_7fae, 0x000f_e800_0b98_1a48];
    let group = [0x0000_0000_0000_79af, 0x000e_2200_0000_0000];
    let wait_for_one_left = [0x0000_8040_0000_791a, 0x000f_c800_0000_0000];
    let program = [copy, group, ADD, copy, group, wait_for_one_left, END];
    check(&program, 5, &[(0, Relation::CopyGroup, Unit::AsyncCopy)]);
}

#[test]
fn nothing_is_said_where_nothing_was_begun() {
    check(&[ADD, USE, END], 1, &[]);
    check(&[ADD, USE, END], 99, &[]);
    check(&[], 0, &[]);
}

#[test]
fn a_walk_over_a_large_knot_of_jumps_ends() {
    let mut program = vec![ADD];
    for index in 1..20_000_i64 {
        program.push(branch(-(index % 1000) - 1));
    }
    program.push(USE);
    assert_eq!(Program::new(&code(&program), HOPPER).dependencies(20_000), []);
}
