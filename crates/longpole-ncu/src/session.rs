//! Facts about the recording as a whole: the devices, the versions, how ncu was told to measure.

use crate::container::messages::{self, SessionDetails};
use crate::metrics::Value;

/// A device of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its number in the process.
    pub id: u32,
    /// Its name, e.g. `NVIDIA H200`.
    pub name: String,
    /// What the driver says of it, as (attribute, value); names as in ncu (`multiprocessor_count`).
    pub attributes: Vec<(String, Value)>,
}

impl Device {
    /// A number of the device by the end of its name, e.g. `multiprocessor_count`.
    pub fn number(&self, attribute: &str) -> Option<u64> {
        let name = |full: &str| full.strip_prefix("device__attribute_").unwrap_or(full) == attribute;
        self.attributes.iter().find(|(full, _)| name(full)).and_then(|(_, value)| value.count())
    }
}

/// What the recording says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// When it was made, in seconds since 1970.
    pub created: Option<u64>,
    /// The operating system of the profiled machine.
    pub os: Option<String>,
    /// Its processor.
    pub processor: Option<String>,
    /// Its devices.
    pub devices: Vec<Device>,
    /// Who wrote the report and over what, as (provider, version), e.g. (`CUDA Version`, `13.0`).
    pub versions: Vec<(String, String)>,
    /// The whole command line. It may hold secrets: to be shown on request only.
    pub command_line: Option<String>,
    /// How ncu was told to measure, as far as it says: what `--clock-control`, `--cache-control`, `--replay-mode`, `--set`
    /// and `--section` were given, as (option, value). These words are ncu's own and hold no secrets.
    pub settings: Vec<(&'static str, String)>,
}

impl Session {
    /// The version of Nsight Compute, e.g. `2025.3.1.0`.
    pub fn ncu_version(&self) -> Option<&str> {
        self.version("Nsight Compute Target").and_then(|version| version.split_whitespace().next())
    }

    /// The version that a provider gave.
    pub fn version(&self, provider: &str) -> Option<&str> {
        self.versions.iter().find(|(name, _)| name == provider).map(|(_, version)| version.as_str())
    }

    pub(crate) fn of(details: &SessionDetails) -> Self {
        let target = details.target.as_ref().or(details.host.as_ref());
        let command_line = text(details.command_line.as_deref());
        let mut settings = command_line.as_deref().map(options_of).unwrap_or_default();
        if let Some(recorded) = &details.settings {
            // Recorded by the graphical client, which has no command line.
            for (option, value) in [("clock-control", &recorded.clock_control), ("replay-mode", &recorded.replay_mode)] {
                if let Some(value) = text(value.as_deref()).filter(|value| !value.is_empty())
                    && !settings.iter().any(|(known, _)| *known == option)
                {
                    settings.push((option, value));
                }
            }
        }
        Self {
            created: details.created,
            os: target.and_then(|system| text(system.os.as_deref())),
            processor: target.and_then(|system| text(system.processor.as_deref())),
            devices: details.devices.iter().map(device).collect(),
            versions: details
                .versions
                .iter()
                .filter_map(|version| Some((text(version.provider.as_deref())?, text(version.version.as_deref())?)))
                .collect(),
            command_line,
            settings,
        }
    }
}

fn device(device: &messages::Device) -> Device {
    let attribute = |attribute: &messages::DeviceAttribute| {
        let value = Value::decode(attribute.value.as_deref()?).ok()??;
        Some((text(attribute.name.as_deref())?, value))
    };
    Device {
        id: device.id.unwrap_or(0),
        name: text(device.name.as_deref()).unwrap_or_default(),
        attributes: device.attributes.iter().filter_map(attribute).collect(),
    }
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The options of ncu that change what its figures mean.
const MEASURING_OPTIONS: &[&str] = &["clock-control", "cache-control", "replay-mode", "set", "section", "metrics", "apply-rules"];

/// Finds [`MEASURING_OPTIONS`] on a command line, before the profiled program's own arguments. Values longer than a list of
/// sections can be are not taken, since a quoted space may have fooled the cut into words.
fn options_of(command_line: &str) -> Vec<(&'static str, String)> {
    let mut words = command_line.split_whitespace().skip(1);
    let mut found: Vec<(&'static str, String)> = Vec::new();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else { continue };
        let (name, attached) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let Some(&known) = MEASURING_OPTIONS.iter().find(|known| **known == name) else { continue };
        let Some(value) = attached.or_else(|| words.next()) else { break };
        let is_plain = value.len() <= 4_096 && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-,.:".contains(c));
        if is_plain {
            match found.iter_mut().find(|(option, _)| *option == known && matches!(known, "section" | "metrics")) {
                Some((_, values)) => {
                    values.push(',');
                    values.push_str(value);
                }
                None => found.push((known, value.to_owned())),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_change_figures_are_found_and_others_are_not() {
        let line =
            "/opt/ncu --clock-control none --section SpeedOfLight --section=LaunchStats -f -o /home/user/x --set full ./app --token=secret";
        let expected = [("clock-control", "none"), ("section", "SpeedOfLight,LaunchStats"), ("set", "full")];
        assert_eq!(options_of(line), expected.map(|(option, value)| (option, value.to_owned())));
    }
}
