//! The distribution, the kernel, and what the machine runs inside of.

use crate::machine::Machine;

/// Distributions that are looked after in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Debian, Ubuntu and what is made from them.
    Debian,
    /// Fedora, RHEL and what is made from them.
    Fedora,
    /// openSUSE, SLES.
    Suse,
    /// Arch, CachyOS, Manjaro, EndeavourOS, Omarchy.
    Arch,
    /// NixOS.
    Nix,
    /// Any other.
    Other,
}

/// What the process runs inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// Apptainer or Singularity.
    Apptainer,
    /// Some other container.
    Other,
}

impl Container {
    /// What to call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker container",
            Self::Podman => "Podman container",
            Self::Kubernetes => "Kubernetes pod",
            Self::Apptainer => "Apptainer container",
            Self::Other => "container",
        }
    }
}

/// The system around the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The distribution as it calls itself.
    pub name: Option<String>,
    /// Its family.
    pub family: Family,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// The container it runs in, if any.
    pub container: Option<Container>,
    /// Windows Subsystem for Linux, 1 or 2.
    pub wsl: Option<u8>,
    /// Whether the root file system is an image that is replaced as a whole (Silverblue, CoreOS, Bazzite).
    pub is_image: bool,
}

/// The value of a key in a file of `KEY=value` lines, without its quotes.
pub(crate) fn setting(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
    let value = line.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

fn family(ids: &str) -> Family {
    let find = |id: &str| match id {
        "debian" | "ubuntu" => Some(Family::Debian),
        "fedora" | "rhel" | "centos" => Some(Family::Fedora),
        "suse" | "opensuse" | "sles" => Some(Family::Suse),
        "arch" | "archlinux" => Some(Family::Arch),
        "nixos" => Some(Family::Nix),
        _ => None,
    };
    ids.split_whitespace().find_map(find).unwrap_or(Family::Other)
}

fn container(machine: &dyn Machine) -> Option<Container> {
    let is_set = |name: &str| machine.variable(name).is_some();
    if is_set("KUBERNETES_SERVICE_HOST") {
        return Some(Container::Kubernetes);
    }
    if is_set("APPTAINER_CONTAINER") || is_set("SINGULARITY_CONTAINER") || machine.exists("/.singularity.d") {
        return Some(Container::Apptainer);
    }
    if machine.exists("/run/.containerenv") {
        return Some(Container::Podman);
    }
    if machine.exists("/.dockerenv") {
        return Some(Container::Docker);
    }
    let groups = machine.read("/proc/1/cgroup").unwrap_or_default();
    let inside = |word: &str| groups.lines().take(64).any(|line| line.contains(word));
    if inside("kubepods") {
        Some(Container::Kubernetes)
    } else if inside("docker") {
        Some(Container::Docker)
    } else if inside("libpod") {
        Some(Container::Podman)
    } else {
        // WSL calls itself one too; it is told apart by its kernel.
        let said = machine.variable("container").or_else(|| machine.read("/run/systemd/container"));
        (inside("lxc") || inside("containerd") || said.is_some_and(|said| !said.contains("wsl"))).then_some(Container::Other)
    }
}

fn wsl(kernel: Option<&str>) -> Option<u8> {
    let kernel = kernel?.to_ascii_lowercase();
    kernel.contains("microsoft").then(|| if kernel.contains("wsl2") || !kernel.starts_with("4.4.") { 2 } else { 1 })
}

impl System {
    pub(super) fn of(machine: &dyn Machine) -> Self {
        let release = machine.read("/etc/os-release").or_else(|| machine.read("/usr/lib/os-release")).unwrap_or_default();
        let ids = format!("{} {}", setting(&release, "ID").unwrap_or_default(), setting(&release, "ID_LIKE").unwrap_or_default());
        let kernel = machine.read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self {
            name: setting(&release, "PRETTY_NAME").or_else(|| setting(&release, "NAME")),
            family: family(&ids),
            wsl: wsl(kernel.as_deref()),
            kernel,
            container: container(machine),
            is_image: machine.exists("/run/ostree-booted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn system(text: &str) -> System {
        System::of(&Captured::parse(text).unwrap())
    }

    #[test]
    fn families_follow_the_id_and_what_it_is_like() {
        for (ids, expected) in [
            ("ubuntu debian", Family::Debian),
            ("linuxmint ubuntu debian", Family::Debian),
            ("rocky rhel centos fedora", Family::Fedora),
            ("opensuse-tumbleweed opensuse suse", Family::Suse),
            ("cachyos arch", Family::Arch),
            ("nixos", Family::Nix),
            ("gentoo", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(family(ids), expected, "{ids}");
        }
    }

    #[test]
    fn containers_show_themselves() {
        for (text, expected) in [
            ("@file /.dockerenv", Some(Container::Docker)),
            ("@file /run/.containerenv", Some(Container::Podman)),
            ("@file /.dockerenv\n@env KUBERNETES_SERVICE_HOST=10.0.0.1", Some(Container::Kubernetes)),
            ("@env APPTAINER_CONTAINER=/x.sif", Some(Container::Apptainer)),
            ("@file /proc/1/cgroup\n12:pids:/docker/0123", Some(Container::Docker)),
            ("@file /proc/1/cgroup\n0::/kubepods.slice/x", Some(Container::Kubernetes)),
            ("@file /proc/1/cgroup\n1:name=systemd:/lxc/x", Some(Container::Other)),
            ("@env container=wsl", None),
            ("@file /proc/1/cgroup\n0::/init.scope", None),
        ] {
            assert_eq!(system(text).container, expected, "{text}");
        }
    }

    #[test]
    fn wsl_shows_itself_by_its_kernel() {
        assert_eq!(wsl(Some("5.15.167.4-microsoft-standard-WSL2")), Some(2));
        assert_eq!(wsl(Some("4.4.0-19041-Microsoft")), Some(1));
        assert_eq!((wsl(Some("6.8.0-63-generic")), wsl(None)), (None, None));
    }

    #[test]
    fn nothing_known_is_nothing_said() {
        let unknown = system("");
        assert_eq!((unknown.name, unknown.kernel, unknown.family), (None, None, Family::Other));
        assert_eq!(setting("A=\"x y\"\nB=''\n", "A").as_deref(), Some("x y"));
        assert_eq!(setting("A=\"x y\"\nB=''\n", "B"), None);
    }
}
