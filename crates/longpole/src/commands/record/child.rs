//! Running the program: its signals are its own, and so is its end.

use std::io;
use std::process::Command;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Ended {
    /// By itself, with this status.
    Status(i32),
    /// By a signal.
    Signal(i32),
}

impl Ended {
    /// The status to return: the program's own, or 128 and the signal, as shells have it.
    pub(in crate::commands) const fn status(self) -> i32 {
        match self {
            Self::Status(status) => status,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// The signal that killed it.
    pub(super) const fn signal(self) -> Option<i32> {
        match self {
            Self::Status(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

/// Name of a signal, for those that end programs.
pub(super) fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL, as when memory runs out",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => "see `kill -l`",
    }
}

/// Runs the program to its end; signals that are sent to us go to it.
#[cfg(unix)]
pub(super) fn run(command: &mut Command) -> io::Result<Ended> {
    use std::os::unix::process::ExitStatusExt as _;
    let forwarding = signals::Forwarding::start();
    let mut child = command.spawn()?;
    forwarding.to(child.id());
    let status = loop {
        match child.wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    drop(forwarding);
    let status = status?;
    Ok(status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or(0)), Ended::Status))
}

/// Runs the program to its end.
#[cfg(not(unix))]
pub(super) fn run(command: &mut Command) -> io::Result<Ended> {
    Ok(Ended::Status(command.status()?.code().unwrap_or(1)))
}

/// Whether a process is alive.
#[cfg(unix)]
pub(super) fn is_alive(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: signal 0 is sent to nobody; it only asks whether it could be.
    pid > 0 && unsafe { libc::kill(pid, 0) } == 0
}

/// Whether a process is alive.
#[cfg(not(unix))]
pub(super) fn is_alive(_: u32) -> bool {
    false
}

#[cfg(unix)]
mod signals {
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::{mem, ptr};

    /// Signals that are for the program. Those of the keyboard reach it by themselves.
    const FORWARDED: [libc::c_int; 7] =
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

    /// The program, or 0 before it runs and after it ended.
    static CHILD: AtomicI32 = AtomicI32::new(0);
    /// A signal that came before it ran.
    static EARLY: AtomicI32 = AtomicI32::new(0);

    /// While this lives, signals go to the program.
    pub(super) struct Forwarding(());

    impl Forwarding {
        pub(super) fn start() -> Self {
            for signal in FORWARDED {
                // SAFETY: both structs are plain data that may be zero; the handler calls only what POSIX allows within one.
                unsafe {
                    let mut before: libc::sigaction = mem::zeroed();
                    libc::sigaction(signal, ptr::null(), &raw mut before);
                    if before.sa_sigaction == libc::SIG_IGN {
                        // As under nohup: who started us wants it to do nothing, and the program inherits that.
                        continue;
                    }
                    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = forward;
                    let mut action: libc::sigaction = mem::zeroed();
                    action.sa_sigaction = handler as *const () as libc::sighandler_t;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                    libc::sigaction(signal, &raw const action, ptr::null_mut());
                }
            }
            Self(())
        }

        /// Signals go to this process from now on, and one that came before it was there.
        #[expect(clippy::unused_self, reason = "there is nobody to send to before signals are caught")]
        pub(super) fn to(&self, child: u32) {
            let Ok(child) = i32::try_from(child) else { return };
            CHILD.store(child, Ordering::SeqCst);
            let early = EARLY.swap(0, Ordering::SeqCst);
            if early != 0 {
                // SAFETY: a child that was not waited for keeps its number.
                unsafe { libc::kill(child, early) };
            }
        }
    }

    impl Drop for Forwarding {
        fn drop(&mut self) {
            // The program is gone, its number may be another's. A signal while we write the recording is left unanswered: it was meant for the
            // program, and losing the recording helps nobody. SIGKILL still works.
            CHILD.store(0, Ordering::SeqCst);
        }
    }

    extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the system gives a valid struct with SA_SIGINFO.
        let by_kernel = !info.is_null() && unsafe { (*info).si_code } > 0;
        if by_kernel {
            // From the terminal, which sends it to the whole group: the program has it already.
            return;
        }
        match CHILD.load(Ordering::SeqCst) {
            0 => EARLY.store(signal, Ordering::SeqCst),
            // SAFETY: `kill` may be called within a handler.
            child => unsafe {
                libc::kill(child, signal);
            },
        }
    }
}
