//! Trouble found in a report: a closed set of kinds, each counted, with the first place it was seen.
//!
//! Reading never logs and never stops for one bad result; a report carries its [`Troubles`]. To add a kind, add its line to
//! the table below and its row to `docs/trust.md`.

use std::sync::Mutex;

/// How much a trouble matters to the reader of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A fact about the recording; no number is affected.
    Info,
    /// Something was counted or adjusted; no data is missing.
    Notice,
    /// Some data is missing.
    DataLoss,
}

macro_rules! trouble_codes {
    ($($(#[$doc:meta])* $variant:ident, $code:literal, $severity:ident, $message:literal, $hint:literal;)*) => {
        /// Every kind of trouble that reading a report can find.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TroubleCode {
            $($(#[$doc])* $variant,)*
        }

        impl TroubleCode {
            /// All kinds, in the order they are reported.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable code, the severity, what happened, and what the user can do.
            pub const fn describe(self) -> (&'static str, Severity, &'static str, &'static str) {
                match self {
                    $(Self::$variant => ($code, Severity::$severity, $message, $hint),)*
                }
            }
        }
    };
}

trouble_codes! {
    /// The file ends inside a block.
    CutReport, "cut_report", DataLoss, "the report ends early; the kernels before the cut were read", "copy the file again, or profile again";
    /// The compressed stream around the report is damaged or cut.
    DamagedReportCompression, "damaged_report_compression", DataLoss,
        "the compressed report is damaged; everything before the damage was read", "copy the file again";
    /// A block header or payload that does not add up.
    DamagedBlock, "damaged_block", DataLoss, "parts of the report are not laid out as a report is; what could be read around them was",
        "copy the file again, or profile again";
    /// A result that could not be decoded.
    DamagedResult, "damaged_result", DataLoss, "results or parts of them could not be decoded and were left out",
        "copy the file again, or profile again";
    /// A metric whose name is not in the table of names.
    UnnamedMetric, "unnamed_metric", DataLoss, "metrics without a name in the report were left out",
        "the table of names is damaged or stands behind a cut: copy the file again";
    /// Rows of a table export that do not fit its header.
    DamagedTableRow, "damaged_table_row", DataLoss, "rows of the table do not fit its header and were left out", "export it again with `ncu --import REPORT --csv --page raw`";
    /// A version of the container that this program has not met.
    UnknownReportVersion, "unknown_report_version", Notice, "the report's layout has a version that this program does not know",
        "it was read as version 7; compare a figure with ncu's own, and update longpole";
    /// More results than are read.
    TooManyResults, "too_many_results", DataLoss, "results beyond the first million, or values beyond the first 16 million of a table, were not read", "profile fewer kernels at a time";
    /// Figures were read from a table.
    RoundedFigures, "rounded_figures", Info, "figures of a CSV are rounded as ncu printed them", "open the .ncu-rep for all digits";
    /// Clocks were left to the GPU.
    ClocksNotLocked, "clocks_not_locked", Info, "the clocks were not locked while this was profiled: times vary with them",
        "leave out `--clock-control none` for repeatable figures";
}

/// One kind of trouble, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Its kind.
    pub code: TroubleCode,
    /// How often it was seen.
    pub count: u64,
    /// The first place it was seen, in bytes from the start of the uncompressed report.
    pub first_offset: Option<u64>,
    /// What was found there.
    pub example: Option<String>,
}

/// Everything that was counted while a report was read. Results are decoded by several threads, so that counting takes a
/// shared reference.
#[derive(Debug, Default)]
pub struct Troubles(Mutex<Vec<Trouble>>);

impl Troubles {
    /// Counts one.
    pub fn add(&self, code: TroubleCode, offset: Option<u64>, example: impl FnOnce() -> Option<String>) {
        let mut list = self.lock();
        match list.iter_mut().find(|trouble| trouble.code == code) {
            // The earliest place is kept, whichever thread comes first.
            Some(trouble) => {
                trouble.count += 1;
                if offset.is_some_and(|offset| trouble.first_offset.is_some_and(|first| offset < first)) {
                    trouble.first_offset = offset;
                    trouble.example = example();
                }
            }
            None => list.push(Trouble { code, count: 1, first_offset: offset, example: example() }),
        }
    }

    /// What was counted so far, in the order of the kinds.
    pub fn list(&self) -> Vec<Trouble> {
        let mut list = self.lock().clone();
        list.sort_by_key(|trouble| trouble.code);
        list
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Trouble>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
