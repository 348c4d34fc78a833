//! An interrupt reaches the programs that were started as well, and does not cost what they measured so far.
//!
//! A suite has a group of its own, which a terminal does not interrupt, so the first signal is handed on to it: a profiler that is told to end
//! sets the clocks of the device free, a killed one does not. The second one kills the group.

/// What came, if anything did: the number of the signal.
pub(crate) fn caught() -> Option<i32> {
    #[cfg(unix)]
    return signals::caught();
    #[cfg(not(unix))]
    None
}

/// While this lives, interrupts go to a group of processes.
#[must_use]
pub(crate) struct Forwarding(());

impl Forwarding {
    /// To the group of this number.
    pub(crate) fn to(group: u32) -> Self {
        #[cfg(unix)]
        signals::forward(group);
        #[cfg(not(unix))]
        let _ = group;
        Self(())
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        #[cfg(unix)]
        signals::forget();
    }
}

/// Ends this process the way the signal would have.
pub(crate) fn end(signal: i32) -> ! {
    #[cfg(unix)]
    signals::raise(signal);
    std::process::exit(128 + signal)
}

/// A write beyond the limit on the size of files fails from now on, as one to a full disk does, instead of ending this process.
pub(crate) fn outlive_file_limits() {
    #[cfg(unix)]
    signals::outlive_file_limits();
}

/// Ends a group of processes at once.
pub(crate) fn kill_group(group: u32) {
    #[cfg(unix)]
    signals::send(group, libc::SIGKILL);
    #[cfg(not(unix))]
    let _ = group;
}

/// Asks a group of processes to end.
pub(crate) fn end_group(group: u32) {
    #[cfg(unix)]
    signals::send(group, libc::SIGTERM);
    #[cfg(not(unix))]
    let _ = group;
}

#[cfg(unix)]
mod signals {
    use std::sync::Once;
    use std::sync::atomic::{AtomicI32, Ordering};

    /// The group that runs, or 0.
    static GROUP: AtomicI32 = AtomicI32::new(0);
    /// The first signal that came, or 0.
    static CAUGHT: AtomicI32 = AtomicI32::new(0);

    pub(super) fn caught() -> Option<i32> {
        Some(CAUGHT.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }

    pub(super) fn forward(group: u32) {
        static INSTALLED: Once = Once::new();
        GROUP.store(i32::try_from(group).unwrap_or(0), Ordering::SeqCst);
        INSTALLED.call_once(|| {
            for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM] {
                let handler: extern "C" fn(libc::c_int) = handle;
                // SAFETY: the handler only calls what POSIX allows within one.
                let before = unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
                if before == libc::SIG_IGN {
                    // As under nohup: who started the program wants the signal to do nothing.
                    // SAFETY: puts back what was there.
                    unsafe { libc::signal(signal, libc::SIG_IGN) };
                }
            }
        });
    }

    pub(super) fn forget() {
        GROUP.store(0, Ordering::SeqCst);
    }

    pub(super) fn outlive_file_limits() {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let handler: extern "C" fn(libc::c_int) = pass_over;
            // Not ignored, which programs that are started would inherit.
            // SAFETY: the handler does nothing.
            unsafe { libc::signal(libc::SIGXFSZ, handler as *const () as libc::sighandler_t) };
        });
    }

    extern "C" fn pass_over(_: libc::c_int) {}

    pub(super) fn send(group: u32, signal: i32) {
        let Ok(group) = i32::try_from(group) else { return };
        if group > 1 {
            // SAFETY: a system call without memory.
            unsafe { libc::kill(-group, signal) };
        }
    }

    pub(super) fn raise(signal: i32) {
        // SAFETY: both are system calls without memory; the signal is one that was caught, whose standard action ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }

    extern "C" fn handle(signal: libc::c_int) {
        let group = GROUP.load(Ordering::SeqCst);
        let is_first = CAUGHT.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        // SAFETY: `kill`, `signal` and `raise` may be called within a handler.
        unsafe {
            if group > 1 {
                libc::kill(-group, if is_first { signal } else { libc::SIGKILL });
            }
            if !is_first || group <= 1 {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}
