//! NVIDIA's command-line tools: on the PATH, or where their installers put them.

use super::cuda::Cuda;
use super::driver::first_line;
use super::version::Version;
use crate::machine::{Machine, Outcome, join};

/// Installations of a tool that are looked at, besides the one on the PATH.
const MOST: usize = 4;

/// One installation of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The program.
    pub path: String,
    /// What it says its version is.
    pub version: Option<Version>,
    /// Why it did not say.
    pub trouble: Option<String>,
}

/// A tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// The one that a shell would start.
    pub on_path: Option<Found>,
    /// Others, newest first.
    pub elsewhere: Vec<Found>,
}

impl Tool {
    /// The one on the PATH, else the newest.
    pub fn best(&self) -> Option<&Found> {
        self.on_path.as_ref().or_else(|| self.elsewhere.first())
    }
}

/// The tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Nsight Compute's command line.
    pub ncu: Tool,
    /// Nsight Systems' command line.
    pub nsys: Tool,
    /// CUDA's disassembler.
    pub nvdisasm: Tool,
    /// Whether one of the two viewers is installed.
    pub has_viewer: bool,
}

fn found(machine: &dyn Machine, path: String) -> Found {
    let outcome = machine.run(&path, &["--version"]);
    let version = Version::find(&outcome.said(), 3);
    let trouble = match &outcome {
        _ if version.is_some() => None,
        Outcome::TimedOut => Some("it does not answer".to_owned()),
        Outcome::NotStarted(why) => Some(first_line(why)),
        _ => Some(first_line(&outcome.said())),
    };
    Found { path, version, trouble }
}

/// Folders in `parent`, the highest version first.
fn versions(machine: &dyn Machine, parent: &str) -> Vec<String> {
    let mut names = machine.list(parent);
    names.sort_by_key(|name| std::cmp::Reverse(Version::leading(name)));
    names.truncate(MOST);
    names.into_iter().map(|name| join(parent, &name)).collect()
}

/// `packages` are folders of Python packages. What lies there is not run: the doctor may be asked in a folder that somebody else filled.
fn tool(machine: &dyn Machine, name: &str, folders: Vec<String>, packages: &[String]) -> Tool {
    let on_path = machine.on_path(name);
    let mut seen: Vec<String> = on_path.iter().filter_map(|path| machine.canonical(path)).collect();
    let mut elsewhere = Vec::new();
    for path in folders.into_iter().map(|folder| join(&folder, name)).filter(|path| machine.is_program(path)) {
        let Some(real) = machine.canonical(&path) else { continue };
        if !seen.contains(&real) && elsewhere.len() < MOST {
            seen.push(real);
            elsewhere.push(found(machine, path));
        }
    }
    // The order of equal versions stays: a toolkit's folder has all of its tools.
    elsewhere.sort_by(|a, b| b.version.cmp(&a.version));
    let on_path = on_path.map(|path| found(machine, path));
    // The scripts of a toolkit start an installation that is found a second time: the same version is the same tool.
    let in_packages = packages.iter().map(|folder| join(folder, name)).filter(|path| machine.is_program(path));
    let in_packages = in_packages.map(|path| Found { path, version: None, trouble: None });
    elsewhere.extend(in_packages.take(1));
    elsewhere.dedup_by(|a, b| a.version.is_some() && a.version == b.version);
    elsewhere.retain(|one| one.version.is_none() || on_path.as_ref().is_none_or(|first| first.version != one.version));
    Tool { on_path, elsewhere }
}

/// Folders of NVIDIA's HPC SDK with its profilers.
fn sdk(machine: &dyn Machine) -> Vec<String> {
    let systems = ["Linux_x86_64", "Linux_aarch64"].iter();
    let folders = systems.flat_map(|system| versions(machine, &format!("/opt/nvidia/hpc_sdk/{system}")));
    folders.map(|folder| join(&folder, "profilers")).collect()
}

/// Folders that hold what a toolkit or an environment brings.
fn shared(machine: &dyn Machine, cuda: &Cuda) -> Vec<String> {
    let bins = cuda.toolkits.iter().map(|kit| join(&kit.path, "bin"));
    bins.chain(machine.variable("CONDA_PREFIX").map(|prefix| join(&prefix, "bin"))).collect()
}

/// Folders where Nsight Compute may be.
fn ncu_folders(machine: &dyn Machine, cuda: &Cuda) -> Vec<String> {
    let found = shared(machine, cuda).into_iter().chain(versions(machine, "/opt/nvidia/nsight-compute"));
    let found = found.chain(sdk(machine).into_iter().map(|folder| join(&folder, "Nsight_Compute")));
    found.chain(["/opt/cuda/nsight_compute".to_owned()]).collect()
}

impl Tools {
    /// Nsight Compute alone, for a command that starts it.
    pub fn ncu_of(machine: &dyn Machine) -> Tool {
        tool(machine, "ncu", ncu_folders(machine, &Cuda::of(machine)), &[])
    }

    pub(super) fn of(machine: &dyn Machine, cuda: &Cuda) -> Self {
        let sdk = sdk(machine);
        let below = |parents: &[&str], inside: &str| -> Vec<String> {
            let folders = parents.iter().flat_map(|parent| versions(machine, parent));
            folders.map(|folder| join(&folder, inside)).collect()
        };
        let shared = || shared(machine, cuda).into_iter();
        let in_sdk = |inside: &str| sdk.iter().map(|folder| join(folder, inside)).collect::<Vec<_>>();
        let ncu = ncu_folders(machine, cuda);
        let systems = ["/opt/nvidia/nsight-systems", "/opt/nvidia/nsight-systems-cli"];
        let nsys = shared().chain(below(&systems, "bin")).chain(in_sdk("Nsight_Systems/bin"));
        let nsys: Vec<String> = nsys.chain(["/opt/cuda/nsight_systems/bin".to_owned()]).collect();
        let triton: Vec<String> = cuda.sites.iter().map(|site| join(site, "triton/backends/nvidia/bin")).collect();
        let viewer = |name: &str, folders: &[String]| {
            machine.on_path(name).is_some() || folders.iter().any(|folder| machine.is_program(&join(folder, name)))
        };
        Self {
            has_viewer: viewer("ncu-ui", &ncu) || viewer("nsys-ui", &nsys),
            ncu: tool(machine, "ncu", ncu, &[]),
            nsys: tool(machine, "nsys", nsys, &[]),
            nvdisasm: tool(machine, "nvdisasm", shared().collect(), &triton),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn tools(text: &str) -> Tools {
        let machine = Captured::parse(text).unwrap();
        Tools::of(&machine, &Cuda::of(&machine))
    }

    fn shown(found: &Found) -> String {
        format!("{} {}", found.path, found.version.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string))
    }

    #[test]
    fn the_newest_comes_first_and_the_same_once() {
        let found = tools(
            "@env PATH=/usr/local/cuda/bin\n@program /usr/local/cuda/bin/ncu\n@program /opt/nvidia/nsight-compute/2025.3.1/ncu\n@program /opt/nvidia/nsight-compute/2024.1.0/ncu\n@program /opt/nvidia/nsight-compute/2025.10.0/ncu\n@program /opt/nvidia/nsight-compute/2025.3.1/ncu-ui\n@run /usr/local/cuda/bin/ncu --version\nVersion 2025.3.1.0 (build 1)\n@run /opt/nvidia/nsight-compute/2025.3.1/ncu --version\nVersion 2025.3.1.0 (build 1)\n@run /opt/nvidia/nsight-compute/2024.1.0/ncu --version\nVersion 2024.1.0.0 (build 1)\n@run /opt/nvidia/nsight-compute/2025.10.0/ncu --version\nVersion 2025.10.0.0 (build 1)\n",
        );
        assert_eq!(found.ncu.on_path.as_ref().map(shown).as_deref(), Some("/usr/local/cuda/bin/ncu 2025.3.1.0"));
        let others: Vec<_> = found.ncu.elsewhere.iter().map(shown).collect();
        assert_eq!(others, ["/opt/nvidia/nsight-compute/2025.10.0/ncu 2025.10.0.0", "/opt/nvidia/nsight-compute/2024.1.0/ncu 2024.1.0.0"]);
        assert!(found.has_viewer);
    }

    #[test]
    fn a_tool_that_does_not_answer_is_there_all_the_same() {
        let found = tools(
            "@env PATH=/usr/bin\n@program /usr/bin/nsys\n@run nsys --version\n@hangs\n@program /usr/bin/ncu\n@run ncu --version\n@exit 1\n@stderr\n/usr/bin/ncu: not found\n",
        );
        assert_eq!(found.nsys.best().and_then(|one| one.trouble.clone()).as_deref(), Some("it does not answer"));
        assert_eq!(found.ncu.best().and_then(|one| one.trouble.clone()).as_deref(), Some("/usr/bin/ncu: not found"));
        assert_eq!((found.nvdisasm.best(), found.has_viewer), (None, false));
    }

    #[test]
    fn programs_of_python_packages_are_seen_and_not_run() {
        let bin = "/w/.venv/lib/python3.12/site-packages/triton/backends/nvidia/bin/nvdisasm";
        let found = tools(&format!("@cwd /w\n@program {bin}\n@run nvdisasm --version\nrelease 13.0, V13.0.85\n"));
        assert_eq!(found.nvdisasm.elsewhere, [Found { path: bin.to_owned(), version: None, trouble: None }]);
    }
}
