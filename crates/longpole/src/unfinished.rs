//! Files that are being written, and go when a signal ends the run: destructors do not run then.

use std::path::{Path, PathBuf};

/// While this lives, an interrupt (INT), a hang-up (HUP) or a request to end (TERM) takes the files away before it ends the run as it always
/// does. One at a time.
#[must_use]
pub(crate) struct Unfinished(());

impl Unfinished {
    /// Guards a file.
    pub(crate) fn guard(path: &Path) -> Self {
        Self::guard_all(&[path.to_owned()], &[])
    }

    /// Guards files, and then folders, in this order, which go when nothing else is in them.
    pub(crate) fn guard_all(files: &[PathBuf], folders: &[PathBuf]) -> Self {
        #[cfg(unix)]
        signals::guard(files, folders);
        #[cfg(not(unix))]
        let _ = (files, folders);
        Self(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        #[cfg(unix)]
        signals::forget();
    }
}

/// While this lives, a signal that an [`Unfinished`] answers waits: what is done in a moment is done whole. It is raised at the end.
#[must_use]
pub(crate) struct Deferred(());

impl Deferred {
    /// From now on signals wait.
    pub(crate) fn begin() -> Self {
        #[cfg(unix)]
        signals::defer();
        Self(())
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        #[cfg(unix)]
        signals::deliver();
    }
}

#[cfg(unix)]
mod signals {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

    /// What goes.
    struct Names {
        files: Vec<CString>,
        folders: Vec<CString>,
    }

    /// Or null.
    static NAMES: AtomicPtr<Names> = AtomicPtr::new(ptr::null_mut());
    /// Whether signals wait.
    static DEFERRED: AtomicBool = AtomicBool::new(false);
    /// The last signal that came meanwhile, or 0.
    static WAITING: AtomicI32 = AtomicI32::new(0);

    pub(super) fn guard(files: &[PathBuf], folders: &[PathBuf]) {
        let names = |paths: &[PathBuf]| paths.iter().filter_map(|path| CString::new(path.as_os_str().as_bytes()).ok()).collect();
        // Never freed: a signal on another thread may be reading it. It is a few names a run.
        NAMES.store(Box::into_raw(Box::new(Names { files: names(files), folders: names(folders) })), Ordering::SeqCst);
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
        NAMES.store(ptr::null_mut(), Ordering::SeqCst);
    }

    pub(super) fn defer() {
        WAITING.store(0, Ordering::SeqCst);
        DEFERRED.store(true, Ordering::SeqCst);
    }

    pub(super) fn deliver() {
        DEFERRED.store(false, Ordering::SeqCst);
        let signal = WAITING.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: raising a signal for which `end` is the handler.
            unsafe { libc::raise(signal) };
        }
    }

    extern "C" fn end(signal: libc::c_int) {
        if DEFERRED.load(Ordering::SeqCst) {
            WAITING.store(signal, Ordering::SeqCst);
            return;
        }
        let names = NAMES.swap(ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: `unlink`, `rmdir`, `signal` and `raise` may be called within a handler; names that are not null are never freed nor changed,
        // and reading them allocates nothing.
        unsafe {
            if let Some(names) = names.as_ref() {
                for file in &names.files {
                    libc::unlink(file.as_ptr());
                }
                for folder in &names.folders {
                    libc::rmdir(folder.as_ptr());
                }
            }
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
