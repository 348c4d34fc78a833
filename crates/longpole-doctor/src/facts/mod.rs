//! What is so on this machine, before anybody judges it. One file a subject; each reads through [`Machine`] and says "not known" by absence.

mod cuda;
mod driver;
mod gpus;
mod initramfs;
mod rights;
mod session;
mod system;
mod tools;
mod version;

pub use cuda::{Cuda, Cupti, Toolkit, Torch};
pub use driver::{Driver, Smi};
pub use gpus::Gpu;
pub use initramfs::{Builder, Initramfs};
pub(crate) use rights::OPTION;
pub use rights::{Rights, Setting};
pub use session::{Display, Place, Session};
pub use system::{Container, Family, System};
pub use tools::{Found, Tool, Tools};
pub use version::Version;

use crate::machine::Machine;

/// Everything that was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The distribution and what it runs inside of.
    pub system: System,
    /// The driver.
    pub driver: Driver,
    /// The GPUs it shows.
    pub gpus: Vec<Gpu>,
    /// MIG instances that CUDA can use; asked for where a GPU is divided.
    pub mig_instances: Option<usize>,
    /// What this process may do.
    pub rights: Rights,
    /// The initramfs.
    pub initramfs: Initramfs,
    /// Toolkits, torch and CUPTI.
    pub cuda: Cuda,
    /// ncu, nsys, nvdisasm.
    pub tools: Tools,
    /// Display, disk and monitors.
    pub session: Session,
    /// The home folder, which is written `~`.
    pub home: Option<String>,
}

impl Facts {
    /// Looks at a machine.
    pub fn of(machine: &dyn Machine) -> Self {
        let system = System::of(machine);
        let driver = Driver::of(machine);
        let smi = driver.smi_path.as_deref().filter(|_| driver.smi == Smi::Works);
        let gpus = smi.map(|path| gpus::of(machine, path)).unwrap_or_default();
        let is_divided = gpus.iter().any(|gpu| gpu.mig == Some(true));
        let cuda = Cuda::of(machine);
        Self {
            mig_instances: smi.filter(|_| is_divided).and_then(|path| gpus::mig_instances(machine, path)),
            rights: Rights::of(machine, &system),
            initramfs: Initramfs::of(machine),
            tools: Tools::of(machine, &cuda),
            session: Session::of(machine),
            home: machine.variable("HOME").filter(|home| home.len() > 1),
            system,
            driver,
            gpus,
            cuda,
        }
    }

    /// A path as it is shown: the home folder is `~`, whose name is nobody's business.
    pub(crate) fn shown(&self, path: &str) -> String {
        let home = self.home.as_deref().map(|home| home.trim_end_matches('/'));
        match home.and_then(|home| path.strip_prefix(home)) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
            _ => path.to_owned(),
        }
    }

    /// Whether there is a GPU that programs can use.
    pub fn has_gpu(&self) -> bool {
        !self.gpus.is_empty()
    }

    /// The highest compute capability, which asks most of the tools.
    pub(crate) fn newest_compute(&self) -> Option<&Version> {
        self.gpus.iter().filter_map(|gpu| gpu.compute.as_ref()).max()
    }
}
