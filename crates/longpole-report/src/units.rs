//! Numbers for people: one unit a column, thousands separators, and never a nonzero value shown as zero.
//!
//! Scaling is integer arithmetic, so that what is shown is the exact value rounded once (half away from zero).

use longpole_trace::Ns;

/// A unit, and how many decimals it is shown with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// How many base units (nanoseconds, bytes) it holds.
    divisor: u128,
    /// Decimals shown.
    decimals: u32,
    /// Its name.
    pub(crate) label: &'static str,
}

const TIME: [Scale; 4] = [
    Scale { divisor: 1, decimals: 0, label: "ns" },
    Scale { divisor: 1_000, decimals: 1, label: "us" },
    Scale { divisor: 1_000_000, decimals: 3, label: "ms" },
    Scale { divisor: 1_000_000_000, decimals: 3, label: "s" },
];

const BYTES: [Scale; 4] = [
    Scale { divisor: 1, decimals: 0, label: "B" },
    Scale { divisor: 1 << 10, decimals: 1, label: "KiB" },
    Scale { divisor: 1 << 20, decimals: 2, label: "MiB" },
    Scale { divisor: 1 << 30, decimals: 2, label: "GiB" },
];

/// Decimal units of operations.
const FLOPS: [&str; 5] = ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"];
/// Decimal units of operations a second.
const FLOP_RATES: [&str; 5] = ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"];
const RATE: [Scale; 5] = [
    Scale { divisor: 1, decimals: 0, label: "B/s" },
    Scale { divisor: 1_000, decimals: 1, label: "kB/s" },
    Scale { divisor: 1_000_000, decimals: 1, label: "MB/s" },
    Scale { divisor: 1_000_000_000, decimals: 1, label: "GB/s" },
    Scale { divisor: 1_000_000_000_000, decimals: 2, label: "TB/s" },
];

const CLOCK: [Scale; 4] = [
    Scale { divisor: 1, decimals: 0, label: "Hz" },
    Scale { divisor: 1_000, decimals: 1, label: "kHz" },
    Scale { divisor: 1_000_000, decimals: 0, label: "MHz" },
    Scale { divisor: 1_000_000_000, decimals: 2, label: "GHz" },
];

/// The largest unit of which `largest` holds at least `at_least`.
fn pick(scales: &[Scale], largest: u64, at_least: u128) -> Scale {
    let fits = |scale: &&Scale| u128::from(largest) >= scale.divisor * at_least;
    *scales.iter().rev().find(fits).unwrap_or(&scales[0])
}

/// The unit of a column of times whose largest is `largest` nanoseconds. A unit is taken from ten of it upwards, so that the
/// small rows of a column keep digits.
pub(crate) fn time_scale(largest: u64) -> Scale {
    pick(&TIME, largest, 10)
}

/// The unit of a column of sizes whose largest is `largest` bytes.
pub(crate) fn byte_scale(largest: u64) -> Scale {
    pick(&BYTES, largest, 10)
}

/// The decimal unit for numbers up to `largest`, of which it holds at least `at_least`.
fn decimal_scale(labels: [&'static str; 5], largest: u64, at_least: u64) -> Scale {
    let power = (0..5_u32).rev().find(|&power| largest >= 1_000_u64.pow(power).saturating_mul(at_least)).unwrap_or(0);
    Scale { divisor: 1_000_u128.pow(power), decimals: if power == 0 { 0 } else { 2 }, label: labels[power as usize] }
}

/// The unit of a column of operations.
pub(crate) fn flop_scale(largest: u64) -> Scale {
    decimal_scale(FLOPS, largest, 10)
}

/// The unit of a column of operations a second.
pub(crate) fn flop_rate_scale(largest: u64) -> Scale {
    decimal_scale(FLOP_RATES, largest, 10)
}

/// One amount of operations a second with its own unit: `989.00 TFLOP/s`.
pub(crate) fn flop_rate(value: u64) -> String {
    let scale = decimal_scale(FLOP_RATES, value, 1);
    format!("{} {}", scale.show(i64::try_from(value).unwrap_or(i64::MAX)), scale.label)
}

/// A mean of counts: whole, or with one decimal.
pub(crate) fn mean(value: f64) -> String {
    let tenths = (value * 10.0).round();
    if value > 0.0 && tenths == 0.0 {
        "<0.1".to_owned()
    } else if tenths % 10.0 == 0.0 {
        count((tenths / 10.0) as u64)
    } else {
        format!("{}.{}", count((tenths / 10.0).trunc() as u64), (tenths % 10.0) as u64)
    }
}

/// The unit of a column of rates whose largest is `largest` bytes a second. Decimal, as memory bandwidths are given.
pub(crate) fn rate_scale(largest: u64) -> Scale {
    pick(&RATE, largest, 10)
}

impl Scale {
    /// `value` in this unit, without its name. Nothing at all is a bare `0`, which no rounded value looks like.
    pub(crate) fn show(self, value: i64) -> String {
        if value == 0 {
            return "0".to_owned();
        }
        let magnitude = u128::from(value.unsigned_abs());
        let tens = 10_u128.pow(self.decimals);
        let mut rounded = (magnitude * tens + self.divisor / 2) / self.divisor;
        let below = rounded == 0 && magnitude > 0;
        if below {
            rounded = 1;
        }
        let sign = if value < 0 { "-" } else { "" };
        let less = if below { "<" } else { "" };
        let whole = group(&(rounded / tens).to_string());
        if self.decimals == 0 {
            return format!("{sign}{less}{whole}");
        }
        let width = self.decimals as usize;
        // Of a negative number the sign stands first: less than the smallest shown, and below zero.
        format!("{sign}{less}{whole}.{:0width$}", rounded % tens)
    }
}

/// Puts a comma between groups of three digits.
fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with thousands separators: `22,536`.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// One time with its own unit: `31.912 ms`.
pub fn time(value: Ns) -> String {
    let scale = pick(&TIME, value.get().unsigned_abs(), 1);
    format!("{} {}", scale.show(value.get()), scale.label)
}

/// One size with its own unit: `1.20 MiB`.
pub fn bytes(value: i64) -> String {
    let scale = pick(&BYTES, value.unsigned_abs(), 1);
    format!("{} {}", scale.show(value), scale.label)
}

/// One rate with its own unit: `289.4 GB/s`.
pub fn rate(bytes_per_s: f64) -> String {
    let value = bytes_per_s.round() as i64;
    let scale = pick(&RATE, value.unsigned_abs(), 1);
    format!("{} {}", scale.show(value), scale.label)
}

/// One clock with its own unit: `1.98 GHz`.
pub fn clock(hertz: f64) -> String {
    let value = hertz.round() as i64;
    let scale = pick(&CLOCK, value.unsigned_abs(), 1);
    format!("{} {}", scale.show(value), scale.label)
}

/// A number with two decimals and thousands separators: `1,234.50`.
pub fn decimal(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value.abs() >= 1e15 {
        // Digits beyond those of a double would be made up.
        format!("{value:.3e}")
    } else if value.abs() < 0.005 {
        if value < 0.0 { "-<0.01".to_owned() } else { "<0.01".to_owned() }
    } else {
        let cents = (value.abs() * 100.0).round() as u64;
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}.{:02}", group(&(cents / 100).to_string()), cents % 100)
    }
}

/// A number of things: `1 launch`, `8,212 launches`.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A share 0..1 as percent, without the sign: `19.2`.
pub(crate) fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if value == 0.0 {
        "0".to_owned()
    } else if value > 0.0 && value < 0.05 {
        "<0.1".to_owned()
    } else if value < 0.0 && value > -0.05 {
        ">-0.1".to_owned()
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_unit_follows_its_largest_value() {
        for (largest, label) in [(0, "ns"), (9_999, "ns"), (10_000, "us"), (9_999_999, "us"), (10_000_000, "ms"), (10_000_000_000, "s")] {
            assert_eq!(time_scale(largest).label, label, "{largest}");
        }
        for (largest, label) in [(10_239, "B"), (10_240, "KiB"), (10 << 20, "MiB"), (u64::MAX, "GiB")] {
            assert_eq!(byte_scale(largest).label, label, "{largest}");
        }
    }

    #[test]
    fn values_are_rounded_once_and_never_to_zero() {
        let ms = time_scale(10_000_000);
        assert_eq!(ms.show(1_234_567_890), "1,234.568");
        assert_eq!(ms.show(499), "<0.001");
        assert_eq!(ms.show(500), "0.001");
        assert_eq!(ms.show(0), "0");
        assert_eq!(ms.show(-499), "-<0.001");
        assert_eq!(ms.show(-500), "-0.001");
        assert_eq!(byte_scale(10 << 20).show(-4_096), "-<0.01");
        assert_eq!(ms.show(-1_500_000), "-1.500");
        assert_eq!(byte_scale(0).show(-1_024), "-1,024");
        assert_eq!(time_scale(u64::MAX).show(i64::MIN), "-9,223,372,036.855");
    }

    #[test]
    fn single_values_carry_their_unit() {
        assert_eq!(time(Ns(31_912_345)), "31.912 ms");
        assert_eq!(time(Ns(999)), "999 ns");
        assert_eq!(time(Ns(1_200_000_000)), "1.200 s");
        assert_eq!(bytes(-3 << 20), "-3.00 MiB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn operations_and_means() {
        assert_eq!(flop_rate(989_000_000_000_000), "989.00 TFLOP/s");
        assert_eq!(flop_rate(7), "7 FLOP/s");
        assert_eq!((flop_scale(0).label, flop_scale(9_999).label, flop_scale(10_000).label), ("FLOP", "FLOP", "kFLOP"));
        assert_eq!(flop_rate_scale(10_000_000_000_000).label, "TFLOP/s");
        assert_eq!([mean(28.0), mean(27.5), mean(0.04), mean(0.0), mean(1_234.96)], ["28", "27.5", "<0.1", "0", "1,235"]);
    }

    #[test]
    fn rates_clocks_and_decimals() {
        assert_eq!(rate(289_412_345_678.0), "289.4 GB/s");
        assert_eq!(rate(4_800_000_000_000.0), "4.80 TB/s");
        assert_eq!((clock(1.98e9).as_str(), clock(345e6).as_str()), ("1.98 GHz", "345 MHz"));
        assert_eq!(rate_scale(4_800_000_000_000).label, "GB/s");
        for (value, text) in
            [(0.0, "0"), (0.001, "<0.01"), (-0.001, "-<0.01"), (33.917, "33.92"), (-1_234.5, "-1,234.50"), (1e20, "1.000e20")]
        {
            assert_eq!(decimal(value), text);
        }
    }

    #[test]
    fn percent_keeps_one_decimal() {
        assert_eq!(percent(0.1918), "19.2");
        assert_eq!([percent(0.000_1), percent(-0.000_1), percent(-0.1)], ["<0.1", ">-0.1", "-10.0"]);
        assert_eq!(percent(0.0), "0");
        assert_eq!(percent(1.0), "100.0");
    }
}
