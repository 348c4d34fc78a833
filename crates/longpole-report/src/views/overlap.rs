//! What is said where rows overlap: work that runs at the same time, on several streams or by dependent launches on one, counts in each of
//! its rows, so that rows add to more than the device was busy.

use longpole_trace::Ns;

use crate::units::{percent, time};

/// What the shares of a table are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharesOf {
    /// The time in which anything ran: then they add to more than all of it.
    Busy,
    /// What the rows add to.
    Sum,
}

/// The note below a table whose rows add to more than the device was busy; `busy` is the union of all device work in scope.
pub fn overlap_note(sum: Option<Ns>, busy: Option<Ns>, shares: SharesOf) -> Option<String> {
    let (sum, busy) = (sum?, busy.filter(|&busy| busy > Ns::ZERO)?);
    let of_busy = sum.get() as f64 / busy.get() as f64;
    // Less than a thousandth changes no share that is shown.
    (of_busy > 1.001).then(|| {
        let add = match shares {
            SharesOf::Busy => format!("shares are of busy and add to {} %", percent(of_busy)),
            SharesOf::Sum => "shares are of what the rows add to".to_owned(),
        };
        format!("overlap: the rows add to {}, busy is {}; what runs at the same time counts in each row, and {add}", time(sum), time(busy))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_overlap_are_said_to_and_what_shares_are_of() {
        let note = |sum, busy, shares| overlap_note(Some(Ns(sum)), Some(Ns(busy)), shares);
        assert_eq!(
            note(191_700_000, 164_800_000, SharesOf::Busy).as_deref(),
            Some(
                "overlap: the rows add to 191.700 ms, busy is 164.800 ms; what runs at the same time counts in each row, and shares are of \
                 busy and add to 116.3 %"
            )
        );
        assert!(note(30_000, 20_000, SharesOf::Sum).is_some_and(|said| said.ends_with("and shares are of what the rows add to")));
        for (sum, busy) in [(20_000, 20_000), (20_001, 20_000), (10, 20), (5, 0)] {
            assert_eq!(note(sum, busy, SharesOf::Sum), None);
        }
        assert_eq!(overlap_note(None, Some(Ns(1)), SharesOf::Sum), None);
    }
}
