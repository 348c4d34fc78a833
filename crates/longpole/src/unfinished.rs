//! A file that is being written, and goes when a signal ends the run: destructors do not run then.

use std::path::Path;

/// While this lives, an interrupt (INT), a hang-up (HUP) or a request to end (TERM) takes the file away before it ends the run as it always
/// does. One file at a time.
#[must_use]
pub(crate) struct Unfinished(());

impl Unfinished {
    /// Guards a file.
    pub(crate) fn guard(path: &Path) -> Self {
        #[cfg(unix)]
        signals::guard(path);
        #[cfg(not(unix))]
        let _ = path;
        Self(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        #[cfg(unix)]
        signals::forget();
    }
}

#[cfg(unix)]
mod signals {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    /// The name of the file, or null.
    static NAME: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());

    pub(super) fn guard(path: &Path) {
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return };
        // Never freed: a signal on another thread may be reading it. It is one name a run.
        NAME.store(name.into_raw(), Ordering::SeqCst);
        for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM] {
            let handler: extern "C" fn(libc::c_int) = end;
            // SAFETY: the handler only calls what POSIX allows within one.
            let before = unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
            if before == libc::SIG_IGN {
                // As under nohup: who started the program wants the signal to do nothing.
                // SAFETY: puts back what was there.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
        }
    }

    pub(super) fn forget() {
        NAME.store(ptr::null_mut(), Ordering::SeqCst);
    }

    extern "C" fn end(signal: libc::c_int) {
        let name = NAME.swap(ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: `unlink`, `signal` and `raise` may be called within a handler; a name that is not null is a C string that is never freed.
        unsafe {
            if !name.is_null() {
                libc::unlink(name);
            }
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
