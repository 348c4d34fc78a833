//! How tools get onto this machine and onto the PATH.

use crate::checks::Fix;
use crate::facts::{Facts, Family, Found};

/// What is to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// Nsight Compute.
    Ncu,
    /// Nsight Systems.
    Nsys,
    /// CUDA's disassembler.
    Nvdisasm,
}

impl Package {
    /// In NVIDIA's repositories for apt, dnf and zypper, before the version of CUDA.
    const fn in_repository(self) -> &'static str {
        match self {
            Self::Ncu => "cuda-nsight-compute",
            Self::Nsys => "cuda-nsight-systems",
            Self::Nvdisasm => "cuda-nvdisasm",
        }
    }

    const fn in_nix(self) -> &'static str {
        match self {
            Self::Ncu => "nsight_compute",
            Self::Nsys => "nsight_systems",
            Self::Nvdisasm => "cuda_nvdisasm",
        }
    }

    const fn download(self) -> &'static str {
        match self {
            Self::Ncu => "https://developer.nvidia.com/tools-overview/nsight-compute/get-started",
            Self::Nsys => "https://developer.nvidia.com/nsight-systems/get-started",
            Self::Nvdisasm => "https://developer.nvidia.com/cuda-downloads",
        }
    }
}

/// How to install a tool here.
pub fn install(facts: &Facts, package: Package) -> Fix {
    // Packages carry the version of CUDA they came with; the driver's own is the newest that surely runs.
    let name = facts.driver.cuda.as_ref().map(|cuda| format!("{}-{}-{}", package.in_repository(), cuda.major(), cuda.minor()));
    let from = "From NVIDIA's package repository for this distribution (https://developer.nvidia.com/cuda-downloads sets it up):";
    let by = |manager: &str| match &name {
        Some(name) => Fix::commands(from, [format!("sudo {manager} install {name}").as_str()]),
        None => Fix::text(format!("Install it from NVIDIA: {}", package.download())),
    };
    match facts.system.family {
        Family::Debian => by("apt"),
        Family::Fedora if facts.system.is_image => {
            Fix::text(format!("Install it inside of a container, or from NVIDIA: {}", package.download()))
        }
        Family::Fedora => by("dnf"),
        Family::Suse => by("zypper"),
        Family::Arch => Fix::commands("It comes with the distribution's CUDA:", ["sudo pacman -S cuda cuda-tools", "source /etc/profile"]),
        Family::Nix => {
            Fix::commands("For one shell:", [format!("NIXPKGS_ALLOW_UNFREE=1 nix-shell -p cudaPackages.{}", package.in_nix()).as_str()])
        }
        Family::Other => Fix::text(format!("Install it from NVIDIA: {}", package.download())),
    }
}

/// An installation with its version: `2025.3.1.0 (/opt/nvidia/.../ncu)`.
pub(crate) fn named(facts: &Facts, found: &Found) -> String {
    let path = facts.shown(&found.path);
    found.version.as_ref().map_or_else(|| path.clone(), |version| format!("{version} ({path})"))
}

/// A path as a word of a shell. What a shell would take apart stands in quotes.
pub(super) fn shell_word(path: &str) -> String {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/~._-+".contains(&byte));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// The line that puts an installation first on the PATH.
pub(crate) fn put_on_path(text: &str, facts: &Facts, found: &Found) -> Fix {
    let folder = found.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let shown = facts.shown(folder);
    // Inside of quotes `~` is no home folder.
    let word = if shell_word(&shown) == shown { shown } else { shell_word(folder) };
    Fix::commands(text, [format!("export PATH={word}:\"$PATH\"").as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    #[test]
    fn a_folder_reaches_the_shell_as_one_word() {
        let facts = Facts::of(&Captured::parse("@env HOME=/home/user").unwrap());
        let line = |path: &str| {
            let found = Found { path: path.to_owned(), version: None, trouble: None };
            put_on_path("", &facts, &found).commands.remove(0)
        };
        assert_eq!(line("/opt/x/ncu"), "export PATH=/opt/x:\"$PATH\"");
        assert_eq!(line("/home/user/x/ncu"), "export PATH=~/x:\"$PATH\"");
        assert_eq!(line("/opt/a b;$(reboot)'/ncu"), "export PATH='/opt/a b;$(reboot)'\\''':\"$PATH\"");
    }
}
