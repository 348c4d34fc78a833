//! Whether records are wanted at the moment, and the switching of CUPTI that follows from it.
//!
//! Two things decide: the window of time (delay, duration) and the range that was asked for. Several threads may change them at once; one of
//! them does the switching, and looks again when it is done. Nobody waits, so no lock is held while CUPTI is called.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The state.
pub(crate) struct Gate {
    /// Whether the window of time is open.
    window: AtomicBool,
    /// Whether records are taken only within ranges.
    ranged: bool,
    /// Open ranges.
    ranges: AtomicUsize,
    /// Whether CUPTI may be switched at all yet.
    ready: AtomicBool,
    switching: AtomicBool,
    open: AtomicBool,
}

impl Gate {
    pub(crate) const fn new(window: bool, ranged: bool) -> Self {
        Self {
            window: AtomicBool::new(window),
            ranged,
            ranges: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
            switching: AtomicBool::new(false),
            open: AtomicBool::new(false),
        }
    }

    /// Whether records are wanted.
    pub(crate) fn wanted(&self) -> bool {
        self.window.load(Ordering::Acquire) && (!self.ranged || self.ranges.load(Ordering::Acquire) > 0)
    }

    /// Opens or closes the window of time.
    pub(crate) fn set_window(&self, open: bool) {
        self.window.store(open, Ordering::Release);
    }

    /// One range more.
    pub(crate) fn enter(&self) {
        self.ranges.fetch_add(1, Ordering::AcqRel);
    }

    /// One range less.
    pub(crate) fn leave(&self) {
        let _ = self.ranges.fetch_update(Ordering::AcqRel, Ordering::Acquire, |ranges| ranges.checked_sub(1));
    }

    /// Exactly one range, or none.
    pub(crate) fn set_range(&self, open: bool) {
        self.ranges.store(usize::from(open), Ordering::Release);
    }

    /// Whether a range is open.
    pub(crate) fn in_range(&self) -> bool {
        self.ranges.load(Ordering::Acquire) > 0
    }

    /// From now on CUPTI can be switched.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Brings CUPTI in line with what is wanted. `switch` may take long; a thread that finds another at it leaves it to that one.
    pub(crate) fn follow(&self, mut switch: impl FnMut(bool)) {
        if !self.ready.load(Ordering::Acquire) {
            return;
        }
        while self.open.load(Ordering::Acquire) != self.wanted() {
            if self.switching.swap(true, Ordering::AcqRel) {
                return;
            }
            let wanted = self.wanted();
            if self.open.load(Ordering::Acquire) != wanted {
                switch(wanted);
                self.open.store(wanted, Ordering::Release);
            }
            self.switching.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn window_and_range_must_both_be_open() {
        let gate = Gate::new(false, true);
        assert!(!gate.wanted());
        gate.set_window(true);
        assert!(!gate.wanted());
        gate.enter();
        gate.enter();
        gate.leave();
        assert!(gate.wanted());
        gate.leave();
        gate.leave();
        assert!(!gate.wanted(), "leaving more often than entering is no range less than none");
        gate.set_range(true);
        assert!(gate.wanted());
        assert!(Gate::new(true, false).wanted());
    }

    #[test]
    fn switching_follows_what_is_wanted_once_it_can() {
        let gate = Gate::new(true, false);
        let mut switched = Vec::new();
        gate.follow(|on| switched.push(on));
        assert!(switched.is_empty());
        gate.set_ready();
        gate.follow(|on| switched.push(on));
        gate.follow(|on| switched.push(on));
        gate.set_window(false);
        gate.follow(|on| switched.push(on));
        assert_eq!(switched, [true, false]);
    }

    #[test]
    fn many_threads_leave_it_as_the_last_one_wanted() {
        let gate = Gate::new(true, true);
        gate.set_ready();
        let state = Mutex::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        gate.enter();
                        gate.follow(|on| *state.lock().unwrap() = on);
                        gate.leave();
                        gate.follow(|on| *state.lock().unwrap() = on);
                    }
                });
            }
        });
        gate.follow(|on| *state.lock().unwrap() = on);
        assert!(!*state.lock().unwrap());
    }
}
