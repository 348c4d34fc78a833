//! Which state of the sources was measured, as git tells it.

use std::time::Duration;

use longpole_bench::results::Git;
use longpole_doctor::{Host, Machine as _};

/// A large repository takes seconds to look through.
const PATIENCE: Duration = Duration::from_secs(20);

/// The commit of the current directory and whether files differ from it; `None` without git or a repository.
pub(crate) fn state() -> Option<Git> {
    let host = Host::with_patience(PATIENCE);
    let git = host.on_path("git")?;
    let revision = host.run(&git, &["rev-parse", "--short=12", "HEAD"]);
    let revision = revision.output()?.trim().to_owned();
    if revision.is_empty() || !revision.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    // Files that git does not know, such as the results themselves, are no change of the sources. Without the lock that git takes to refresh its
    // index: a measurement must not get in the way of who works there, nor leave the lock behind when it is ended.
    let changes = host.run(&git, &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]);
    Some(Git { revision, dirty: changes.output().map(|changes| !changes.trim().is_empty()) })
}
