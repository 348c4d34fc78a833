//! Time as integer nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A point in time (nanoseconds since the trace's base) or a duration, in nanoseconds.
///
/// Sums of times are exact: nothing in longpole adds times as floating point. Arithmetic saturates, so that a hostile
/// timestamp gives a wrong-looking number in one row and never a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ns(pub i64);

impl Ns {
    /// Zero nanoseconds.
    pub const ZERO: Self = Self(0);
    /// The latest representable time.
    pub const MAX: Self = Self(i64::MAX);
    /// The earliest representable time.
    pub const MIN: Self = Self(i64::MIN);

    /// From whole microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// From whole milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The integer number of nanoseconds.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Seconds as a float, for display and ratios only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Ns {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Ns {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Ns {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Ns {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Ns {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}
