//! The shortest answer: a line a kernel.

use std::fmt::Write as _;

use super::{NcuKernel, estimate, facts, first_sentence};
use crate::names::printable;
use crate::text_table::TextOptions;
use crate::trust::{Grade, Trust};

/// One line a kernel: time, verdict, largest stall, largest suggestion that is about the verdict. A grade other than good is part
/// of each.
pub fn kernel_lines(kernels: &[NcuKernel], trust: &Trust, options: &TextOptions) -> String {
    let mut out = String::new();
    for kernel in kernels {
        let summary = &kernel.summary;
        let duration = summary.speed.duration_ns.map_or_else(|| "time not collected".to_owned(), facts::nanoseconds);
        let mut parts = vec![duration];
        parts.push(
            summary
                .verdict
                .as_ref()
                .map_or_else(|| facts::NO_VERDICT.to_owned(), |verdict| format!("{}: {}", verdict.kind.name(), verdict.because)),
        );
        parts.extend(
            summary.stalls.first().map(|stall| format!("waits most for {} ({})", stall.reason, super::pct(stall.share_fraction * 100.0))),
        );
        let best = summary.suggestions.iter().find(|suggestion| suggestion.is_related && suggestion.speedup_pct.is_some());
        parts.extend(best.map(|best| format!("ncu: {} (at most {})", first_sentence(&best.text).trim_end_matches('.'), estimate(best))));
        if trust.grade != Grade::Good {
            parts.push(format!("[trust {}: {}]", trust.grade.name(), trust.grade.meaning()));
        }
        let head = format!("{} {}:", summary.id, kernel.short_name);
        let _ = writeln!(out, "{} {}", options.style().bold(&printable(&head)), printable(&parts.join("; ")));
    }
    out
}
