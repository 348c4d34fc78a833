//! The rest that decides whether profiling goes well: the display, the disk, and other tools that hold the counters.

use crate::machine::{Machine, join};

/// Where windows open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// A Wayland session, with or without a server for X programs.
    Wayland {
        /// Whether X programs can open windows too.
        has_x: bool,
    },
    /// An X session, or one forwarded.
    X,
    /// Nowhere.
    None,
}

/// A folder that reports or temporary files go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What goes there.
    pub what: &'static str,
    /// The folder.
    pub path: String,
    /// Bytes free.
    pub free_bytes: Option<u64>,
    /// Whether this user may write there.
    pub is_writable: Option<bool>,
}

/// The session that the doctor was asked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Where windows open.
    pub display: Display,
    /// The platform that Qt programs are told to use.
    pub qt_platform: Option<String>,
    /// Whether it came over the network.
    pub is_remote: bool,
    /// The folder for reports and the one for temporary files.
    pub places: Vec<Place>,
    /// A lock of ncu that somebody else left behind, and this user cannot take.
    pub foreign_lock: Option<String>,
    /// Programs of DCGM that run.
    pub monitors: Vec<&'static str>,
}

/// Programs that read the counters of all GPUs on their own account. The kernel keeps 15 characters of a name.
const MONITORS: [&str; 2] = ["nv-hostengine", "dcgm-exporter"];

/// More processes than are looked at.
const MOST_PROCESSES: usize = 20_000;

fn monitors(machine: &dyn Machine) -> Vec<&'static str> {
    let processes = machine.list("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).take(MOST_PROCESSES);
    let names: Vec<String> = processes.filter_map(|process| machine.read(&format!("/proc/{process}/comm"))).collect();
    MONITORS.into_iter().filter(|monitor| names.iter().any(|name| name.trim() == *monitor)).collect()
}

fn display(machine: &dyn Machine) -> Display {
    let is_set = |name: &str| machine.variable(name).is_some();
    let says_wayland = machine.variable("XDG_SESSION_TYPE").is_some_and(|kind| kind == "wayland");
    if is_set("WAYLAND_DISPLAY") || says_wayland {
        Display::Wayland { has_x: is_set("DISPLAY") }
    } else if is_set("DISPLAY") {
        Display::X
    } else {
        Display::None
    }
}

impl Session {
    pub(super) fn of(machine: &dyn Machine) -> Self {
        let temporary = machine.variable("TMPDIR").unwrap_or_else(|| "/tmp".to_owned());
        let place =
            |what, path: String| Place { what, free_bytes: machine.free_bytes(&path), is_writable: machine.is_writable(&path), path };
        let lock = join(&temporary, "nsight-compute-lock");
        let is_foreign = machine.exists(&lock) && machine.is_writable(&lock) == Some(false);
        let mut places: Vec<Place> = machine.directory().map(|directory| place("current folder", directory)).into_iter().collect();
        places.push(place("temporary files", temporary));
        Self {
            display: display(machine),
            qt_platform: machine.variable("QT_QPA_PLATFORM").map(|text| text.chars().take(40).collect()),
            is_remote: machine.variable("SSH_CONNECTION").is_some() || machine.variable("SSH_CLIENT").is_some(),
            places,
            foreign_lock: is_foreign.then_some(lock),
            monitors: monitors(machine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn session(text: &str) -> Session {
        Session::of(&Captured::parse(text).unwrap())
    }

    #[test]
    fn displays_are_told_apart() {
        assert_eq!(session("@env WAYLAND_DISPLAY=wayland-0\n@env DISPLAY=:0").display, Display::Wayland { has_x: true });
        assert_eq!(session("@env XDG_SESSION_TYPE=wayland").display, Display::Wayland { has_x: false });
        assert_eq!(session("@env XDG_SESSION_TYPE=x11\n@env DISPLAY=:0").display, Display::X);
        assert_eq!(session("@env SSH_CONNECTION=x").display, Display::None);
    }

    #[test]
    fn monitors_are_processes_of_that_name() {
        let found = session("@file /proc/12/comm\nbash\n@file /proc/77/comm\nnv-hostengine\n@file /proc/self/comm\ndcgm-exporter\n");
        assert_eq!(found.monitors, ["nv-hostengine"]);
    }

    #[test]
    fn a_lock_of_somebody_else_is_seen() {
        let found =
            session("@env TMPDIR=/scratch\n@file /scratch/nsight-compute-lock\n@locked /scratch/nsight-compute-lock\n@free /scratch 12\n");
        assert_eq!(found.foreign_lock.as_deref(), Some("/scratch/nsight-compute-lock"));
        assert_eq!((found.places[0].path.as_str(), found.places[0].free_bytes), ("/scratch", Some(12)));
        assert_eq!(session("@file /tmp/nsight-compute-lock").foreign_lock, None);
    }
}
