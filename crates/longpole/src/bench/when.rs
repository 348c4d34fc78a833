//! The time of day, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    seconds: u64,
}

impl When {
    /// Now.
    pub(crate) fn now() -> Self {
        Self { seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) }
    }

    /// Year, month and day of the Gregorian calendar. Years begin in March here, so that the leap day is the last one (the method of
    /// H. Hinnant, "chrono-compatible low-level date algorithms", 2013).
    fn date(self) -> (u64, u64, u64) {
        // 719,468 days lie between 1 March of the year 0 and 1970.
        let days = self.seconds / 86_400 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year + era * 400 + u64::from(month <= 2), month, day)
    }

    /// As `2026-01-31`.
    pub(crate) fn day(self) -> String {
        let (year, month, day) = self.date();
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// As `123456`.
    pub(crate) fn clock(self) -> String {
        let second = self.seconds % 86_400;
        format!("{:02}{:02}{:02}", second / 3_600, second / 60 % 60, second % 60)
    }

    /// As `2026-01-31T12:34:56Z`.
    pub(crate) fn whole(self) -> String {
        let clock = self.clock();
        format!("{}T{}:{}:{}Z", self.day(), &clock[..2], &clock[2..4], &clock[4..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_769_862_896, "2026-01-31T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(When { seconds }.whole(), date);
        }
    }
}
