//! Known structure is found, chance repeats are not.

use proptest::prelude::*;

use super::*;

/// Small deterministic random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn text(symbols: &str) -> Vec<u32> {
    symbols.bytes().map(u32::from).collect()
}

fn shape(blocks: &[Block]) -> Vec<(usize, usize, usize)> {
    blocks.iter().map(|block| (block.start(), block.layers(), block.pattern.len())).collect()
}

#[test]
fn random_sequences_have_no_layers() {
    for seed in 0..1_000 {
        let mut random = Random(seed);
        let alphabet = 2 + seed % 49;
        let length = 200 + random.below(3_000) as usize;
        let symbols: Vec<u32> = (0..length).map(|_| random.below(alphabet) as u32).collect();
        assert_eq!(blocks(&symbols), [], "alphabet {alphabet}, seed {seed}");
    }
}

#[test]
fn plain_repeats_start_at_the_leftmost_place() {
    let symbols = text(&format!("xyzw{}hij", "abcdefg".repeat(8)));
    assert_eq!(shape(&blocks(&symbols)), [(4, 8, 7)]);
}

#[test]
fn alternating_kinds_are_single_layers() {
    let symbols = text(&format!("0123{}456", "abcdefghijklmnopabcdefgQRijklmnop".repeat(6)));
    let found = blocks(&symbols);
    assert_eq!((found.len(), found[0].start(), found[0].layers()), (1, 4, 12));
}

#[test]
fn a_first_layer_in_another_form_is_one() {
    // The first layer begins with another kernel, and lacks one of those that later ones begin with.
    let symbols = text(&format!("0123Defgh{}Jxyz", "ijklmnopqrsJetfghijklmnopqrsJetfguv".repeat(6).strip_suffix("etfguv").unwrap()));
    let found = blocks(&symbols);
    assert_eq!((found.len(), found[0].start(), found[0].layers()), (1, 5, 12));
}

#[test]
fn one_kernel_between_steps_tells_them_apart() {
    let step = format!("0{}", "abcdef".repeat(8));
    let found = blocks(&text(&step.repeat(4)));
    assert_eq!(shape(&found), [(1, 8, 6), (50, 8, 6), (99, 8, 6), (148, 8, 6)]);
}

#[test]
fn steps_stay_apart() {
    let step = format!("0123{}45678", "abcdefghijklmnop".repeat(6));
    let found = blocks(&text(&step.repeat(5)));
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|block| block.layers() == 6 && block.pattern.len() == 16), "{:?}", shape(&found));
}

/// Where kernels are missing, put in, or in place of another one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    None,
    /// Six kernels apart or more, and in each step not near both of its ends.
    Apart,
    /// One kernel in 133, anywhere.
    Anywhere,
}

/// Steps of a prologue, layers and an epilogue.
fn noisy(seed: u64, layers: usize, period: usize, steps: usize, noise: Noise) -> Vec<u32> {
    let mut random = Random(seed);
    let alphabet = 10 + random.below(30);
    let layer: Vec<u32> = (0..period).map(|_| random.below(alphabet) as u32).collect();
    let mut symbols = Vec::new();
    let mut quiet = 0;
    for _ in 0..steps {
        symbols.extend((0..9).map(|at| 1_000 + at));
        let spares_first = random.below(2) == 0;
        for number in 0..layers {
            for (place, &symbol) in layer.iter().enumerate() {
                let is_spared = match noise {
                    Noise::None => true,
                    Noise::Anywhere => false,
                    Noise::Apart if spares_first => quiet < 6 || (number == 0 && place * 2 < period),
                    Noise::Apart => quiet < 6 || (number + 1 == layers && place * 2 >= period),
                };
                quiet += 1;
                match random.below(400) {
                    kind @ 0..3 if !is_spared => {
                        quiet = 0;
                        match kind {
                            0 => {}
                            1 => symbols.extend([symbol, 2_000 + random.below(5) as u32]),
                            _ => symbols.push(3_000),
                        }
                    }
                    _ => symbols.push(symbol),
                }
            }
        }
        symbols.extend((0..7).map(|at| 1_100 + at));
    }
    symbols
}

fn is_recovered(symbols: &[u32], layers: usize, steps: usize) -> bool {
    let found = blocks(symbols);
    found.len() == steps && found.iter().all(|block| block.layers() == layers)
}

#[test]
fn layers_with_noise_anywhere_are_recovered_but_for_one_sequence_in_a_thousand() {
    // What stays: three strangers in a row, which end a row of layers, and a first and a last layer of which so much is hit that less
    // than half of one is left. Of 30,000 sequences four were.
    let lost = (0..2_000).filter(|&seed| {
        let mut random = Random(seed);
        let (layers, period, steps) = (6 + random.below(34) as usize, 12 + random.below(48) as usize, 1 + random.below(5) as usize);
        !is_recovered(&noisy(random.below(u64::MAX), layers, period, steps, Noise::Anywhere), layers, steps)
    });
    let lost: Vec<u64> = lost.collect();
    assert!(lost.len() <= 2, "{lost:?}");
}

/// A layer of one of several kinds that take turns: others have an attention kernel of their own, and kernels before it.
fn layer_of_kind(kind: u32) -> Vec<u32> {
    let mut layer: Vec<u32> = (1..=13).collect();
    if kind > 0 {
        layer[3] = 40 + kind;
        (0..kind).for_each(|more| layer.insert(3, 50 + more));
    }
    layer
}

/// A step of 24 layers, and as many kernels before and behind them.
fn step_of_kinds(kinds: u32, around: u32) -> Vec<u32> {
    let layers = (0..24).flat_map(|layer| layer_of_kind(layer % kinds));
    (900..900 + around).chain(layers).chain(950..950 + around).collect()
}

/// The symbols, one in 133 missing, with one put in before it, or another one.
fn hit(symbols: &[u32], random: &mut Random) -> Vec<u32> {
    let mut noisy = Vec::with_capacity(symbols.len());
    for &symbol in symbols {
        let kind = random.below(399);
        if kind == 1 || kind == 2 {
            noisy.push(2_000 + random.below(4) as u32);
        }
        if kind != 0 && kind != 2 {
            noisy.push(symbol);
        }
    }
    noisy
}

#[test]
fn layers_of_several_kinds_with_noise_are_recovered_but_for_few() {
    // Measured over 10,000 sequences: 0.15 %, 0.15 % and 0.7 %.
    for (kinds, most) in [(1, 8), (2, 8), (3, 24)] {
        let lost: Vec<u64> = (0..2_000)
            .filter(|&seed| {
                let mut random = Random(seed * 8 + u64::from(kinds));
                let symbols = hit(&step_of_kinds(kinds, 3).repeat(4), &mut random);
                !is_recovered(&symbols, 24, 4)
            })
            .collect();
        assert!(lost.len() <= most, "{kinds} kinds: {} lost, {lost:?}", lost.len());
    }
}

#[test]
fn layers_of_any_length_and_several_kinds_with_noise_are_recovered_but_for_few() {
    // Measured over 10,000 sequences: 0.15 % and 1.4 %.
    for (kinds, most) in [(2, 8), (3, 40)] {
        let lost: Vec<u64> = (0..2_000)
            .filter(|&seed| {
                let mut random = Random(seed * 8 + kinds);
                let (layers, period, steps) = (6 + random.below(34), 12 + random.below(48), 1 + random.below(5) as usize);
                let alphabet = 10 + random.below(30);
                let base: Vec<u32> = (0..period).map(|_| random.below(alphabet) as u32).collect();
                let mut forms = vec![base; kinds as usize];
                for (kind, form) in forms.iter_mut().enumerate().skip(1) {
                    form[random.below(period) as usize] = 500 + kind as u32;
                    (0..kind).for_each(|more| form.insert(random.below(period) as usize, 600 + more as u32));
                }
                let mut symbols = Vec::new();
                for _ in 0..steps {
                    symbols.extend(1_000..1_009);
                    for layer in 0..layers {
                        symbols.extend(hit(&forms[(layer % kinds) as usize], &mut random));
                    }
                    symbols.extend(1_100..1_107);
                }
                !is_recovered(&symbols, layers as usize, steps)
            })
            .collect();
        assert!(lost.len() <= most, "{kinds} kinds: {} lost, {lost:?}", lost.len());
    }
}

#[test]
fn one_kernel_that_is_hit_loses_no_layer() {
    for kinds in 1..=3 {
        let step = step_of_kinds(kinds, 8);
        for at in 0..step.len() {
            let (mut missing, mut other, mut more) = (step.clone(), step.clone(), step.clone());
            missing.remove(at);
            other[at] = 2_000;
            more.insert(at, 2_000);
            for symbols in [missing, other, more] {
                assert!(is_recovered(&symbols, 24, 1), "{kinds} kinds, hit at {at}: {:?}", shape(&blocks(&symbols)));
            }
        }
    }
}

#[test]
fn a_few_kernels_between_short_steps_are_no_kind_of_layer() {
    // The first layer of each step lacks a kernel, and three stand before it.
    let step: Vec<u32> = (900..903).chain(1..12).chain((0..3).flat_map(|_| 0..12)).collect();
    assert_eq!(shape(&blocks(&step.repeat(6))).iter().map(|block| block.1).collect::<Vec<_>>(), [4; 6]);
}

proptest! {
    #[test]
    fn layers_with_noise_are_recovered(
        seed in any::<u64>(), layers in 6_usize..40, period in 12_usize..60, steps in 1_usize..6, noise in any::<bool>()
    ) {
        let symbols = noisy(seed, layers, period, steps, if noise { Noise::Apart } else { Noise::None });
        prop_assert!(is_recovered(&symbols, layers, steps), "{:?}", shape(&blocks(&symbols)));
    }
}

#[test]
fn repeats_everywhere_without_an_end_to_them_take_bounded_work() {
    let sequence: Vec<u32> = (0..100_000_u32).map(|at| at.count_ones() % 2).collect();
    let Dense { symbols, names } = Dense::new(&sequence);
    let mut scratch = Scratch::new(names.len());
    let _ = dense_blocks(&symbols, &mut scratch);
    // A few passes over the sequence for each of the periods, however deep the attempts go; the last one may overshoot.
    assert!(scratch.looked_at < 30 * PERIODS as u64 * symbols.len() as u64, "{}", scratch.looked_at);
}
