//! Will ncu-ui and nsys-ui open a window? They are Qt programs, documented for X11, and under Wayland open their windows through Xwayland.

use super::{Finding, Fix, Status, good};
use crate::facts::{Display, Facts};

pub(super) fn check(facts: &Facts) -> Finding {
    let session = &facts.session;
    let program = if facts.tools.has_viewer { "the viewers are installed" } else { "no viewer on this machine" };
    match session.display {
        Display::None if facts.tools.has_viewer => {
            let how = if session.is_remote { "a remote session without a display" } else { "no display" };
            let fix = "Copy the report to a desktop and open it there, or read it here: longpole ncu REPORT.";
            (Status::Note, format!("{program}, {how}"), Some(Fix::text(fix)))
        }
        Display::Wayland { has_x: false } => {
            let fix = "The viewers are made for X11: install Xwayland and log in again.";
            (Status::Note, format!("Wayland without Xwayland (DISPLAY is not set), {program}"), Some(Fix::text(fix)))
        }
        Display::Wayland { has_x: true } => {
            let text = match &session.qt_platform {
                Some(platform) if platform.starts_with("xcb") => {
                    return good(format!("Wayland with QT_QPA_PLATFORM={platform}, {program}"));
                }
                Some(platform) => format!(
                    "The viewers are made for X11; with QT_QPA_PLATFORM={platform} they may not start or stay empty. Start them with xcb:"
                ),
                None => "If a viewer does not start, or its window stays empty or blurred, let it use X:".to_owned(),
            };
            let fix = Fix::commands(text, ["QT_QPA_PLATFORM=xcb ncu-ui REPORT.ncu-rep", "QT_QPA_PLATFORM=xcb nsys-ui REPORT.nsys-rep"]);
            (Status::Note, format!("Wayland, {program}"), Some(fix))
        }
        Display::X => good(format!("X, {program}")),
        Display::None => good(format!("{program}, no display")),
    }
}
