//! Seeded weights and test data: numbers that the host, a kernel (`kernels/random.cu`) and other frameworks make exactly alike.

/// How the numbers of a tensor are made: evenly spread around `middle` by `half` to each side, rounded to bfloat16, which is what
/// models are published in, and then to half precision, as kernels read them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Which numbers.
    pub seed: u32,
    /// Their middle.
    pub middle: f32,
    /// How far they reach to each side.
    pub half: f32,
}

impl Spread {
    /// Numbers with this standard deviation around 0: an even spread reaches the square root of three times as far.
    pub fn deviation(seed: u32, deviation: f32) -> Self {
        Self { seed, middle: 0.0, half: deviation * 1.732_050_8 }
    }

    /// What a weight of this name is filled with: norms lie around 1, all else has the deviation of 0.02 that training of such models begins with.
    pub fn of_weight(name: &str) -> Self {
        let seed = name_hash(name);
        if name.ends_with("norm.weight") { Self { seed, middle: 1.0, half: 0.25 } } else { Self::deviation(seed, 0.02) }
    }

    /// Number `at`.
    pub fn at(&self, at: u64) -> f32 {
        let bits = mixed((at as u32).wrapping_add(self.seed.wrapping_mul(0x9E37_79B1)));
        let even = (bits >> 8) as f32 * (1.0 / 8_388_608.0) - 1.0;
        as_f16(rounded(even * self.half + self.middle))
    }

    /// The first numbers.
    pub fn take(&self, count: usize) -> Vec<f32> {
        (0..count as u64).map(|at| self.at(at)).collect()
    }
}

/// The finaliser of MurmurHash3, 32 bits.
pub fn mixed(mut bits: u32) -> u32 {
    bits ^= bits >> 16;
    bits = bits.wrapping_mul(0x85EB_CA6B);
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0xC2B2_AE35);
    bits ^ bits >> 16
}

/// FNV-1a, 32 bits.
pub fn name_hash(name: &str) -> u32 {
    name.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Rounded to the nearest bfloat16, ties to even.
pub fn rounded(value: f32) -> f32 {
    if value.is_nan() {
        return value;
    }
    let bits = value.to_bits();
    f32::from_bits(bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
}

/// The largest number of half precision.
const MOST: f32 = 65_504.0;

/// The nearest number of half precision, ties to even, as its bits. What exceeds the largest is cut to it, as kernels do; NaN stays that.
pub fn f16_of(value: f32) -> u16 {
    half::f16::from_f32(value.clamp(-MOST, MOST)).to_bits()
}

/// The number that these bits of half precision are.
pub fn f32_of_f16(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// Rounded to half precision.
pub fn as_f16(value: f32) -> f32 {
    f32_of_f16(f16_of(value))
}

/// Tokens for a prompt that says nothing.
pub fn tokens(seed: u32, count: usize, vocabulary: usize) -> Vec<u32> {
    (0..count as u32).map(|at| mixed(at.wrapping_add(seed.wrapping_mul(0x9E37_79B1))) % (vocabulary.max(1) as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_as_they_should() {
        let numbers = Spread::deviation(7, 0.02).take(20_000);
        let mean = numbers.iter().map(|value| f64::from(*value)).sum::<f64>() / 20_000.0;
        let variance = numbers.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 5e-4 && (variance.sqrt() - 0.02).abs() < 2e-4, "{mean} {variance}");
        assert_ne!(numbers, Spread::deviation(8, 0.02).take(20_000));
        assert!(Spread::of_weight("model.norm.weight").take(1000).iter().all(|value| (0.74..1.26).contains(value)));
    }

    /// Recorded once: whoever changes the numbers changes what `scripts/compare.py` makes.
    #[test]
    fn numbers_do_not_change() {
        assert_eq!(name_hash("model.norm.weight"), 0xBE04_96C4);
        let found: Vec<u32> = (0..3).map(|at| Spread { seed: 1, middle: 0.0, half: 1.0 }.at(at).to_bits()).collect();
        assert_eq!(found, [0xBF5C_0000, 0x3E99_0000, 0xBC67_0000]);
    }

    #[test]
    fn rounding_goes_to_the_even() {
        let bits = |value| rounded(value).to_bits();
        assert_eq!(bits(1.0 + 1.0 / 256.0), 1f32.to_bits());
        assert_eq!(bits(1.0 + 3.0 / 256.0), (1.0f32 + 1.0 / 64.0).to_bits());
        assert!(rounded(f32::NAN).is_nan());
    }

    #[test]
    fn half_precision_goes_to_the_nearest() {
        // Every number is its own nearest, and between two neighbours the halves go to the even one.
        for bits in 0..0x7BFFu16 {
            let (value, next) = (f32_of_f16(bits), f32_of_f16(bits + 1));
            assert_eq!(f16_of(value), bits);
            assert_eq!(f16_of(-value), bits | 0x8000);
            let middle = value.midpoint(next);
            assert_eq!(f16_of(middle), bits + (bits & 1), "{bits:x}");
            assert_eq!((f16_of(f32::from_bits(middle.to_bits() - 1)), f16_of(f32::from_bits(middle.to_bits() + 1))), (bits, bits + 1));
        }
        assert_eq!((f16_of(1e9), f16_of(f32::NEG_INFINITY)), (0x7BFF, 0xFBFF));
        assert!(as_f16(f32::NAN).is_nan());
    }

    #[test]
    fn tokens_are_in_the_vocabulary() {
        let found = tokens(3, 500, 130);
        assert!(found.iter().all(|token| *token < 130));
        assert!(found.iter().collect::<std::collections::BTreeSet<_>>().len() > 100);
    }
}
