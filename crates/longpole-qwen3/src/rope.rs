//! Rotations by position: cosines and sines of `position / theta^(i / 64)` for the 64 pairs of a head, as in RoFormer (Su et al., 2021, section
//! 3.4.2), with number i paired with i + 64 as Hugging Face's `rotate_half` does.

use crate::config::HEAD;

/// Pairs of a head.
pub const PAIRS: usize = HEAD / 2;

/// Cosines and sines, position after position. Angles are computed in 64 bits: 32 would be a thousandth of a turn off after some thousand positions.
pub fn tables(theta: f64, positions: usize) -> (Vec<f32>, Vec<f32>) {
    let frequencies: Vec<f64> = (0..PAIRS).map(|pair| theta.powf(-(pair as f64) / PAIRS as f64)).collect();
    let angles = (0..positions).flat_map(|position| frequencies.iter().map(move |frequency| position as f64 * frequency));
    angles.map(|angle| (angle.cos() as f32, angle.sin() as f32)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pair_turns_by_one_radian() {
        let (cosines, sines) = tables(1e6, 3);
        assert_eq!(cosines.len(), 3 * PAIRS);
        assert_eq!((cosines[0], sines[0]), (1.0, 0.0));
        assert!((cosines[2 * PAIRS] - 2f32.cos()).abs() < 1e-7 && (sines[2 * PAIRS] - 2f32.sin()).abs() < 1e-7);
        // Halfway through the pairs the frequency is one over the root of theta.
        assert!((sines[PAIRS + PAIRS / 2] - 0.001).abs() < 1e-7);
    }
}
