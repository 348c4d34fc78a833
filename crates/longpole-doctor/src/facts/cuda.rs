//! CUDA toolkits, the torch of the Python at hand, and every CUPTI library that they bring.

use super::version::Version;
use crate::machine::{Machine, join};

/// A CUDA toolkit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    /// Its folder.
    pub path: String,
    /// Its version.
    pub version: Option<Version>,
}

/// An installed torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torch {
    /// Its folder of packages.
    pub site: String,
    /// Its version, with what follows the `+`.
    pub version: String,
    /// The CUDA that it was built with; none in a build without.
    pub cuda: Option<Version>,
}

/// A CUPTI library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cupti {
    /// The file.
    pub path: String,
    /// The CUDA it belongs to, as exactly as it is known.
    pub cuda: Option<Version>,
    /// Who brings it.
    pub origin: &'static str,
}

/// What is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuda {
    /// Toolkits, newest first.
    pub toolkits: Vec<Toolkit>,
    /// Installations of torch, in the order in which Python would take them.
    pub torch: Vec<Torch>,
    /// CUPTI libraries.
    pub cupti: Vec<Cupti>,
    /// Folders of Python packages.
    pub sites: Vec<String>,
    /// Whether NVIDIA's forward-compatibility libraries are there, with which an older driver runs a newer CUDA.
    pub has_compatibility: bool,
}

/// The most that is listed of anything here.
const MOST: usize = 32;

/// `"cuda" : { "name" : "CUDA SDK", "version" : "13.0.1" }` of `version.json`.
fn version_of_json(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once("\"cuda\"")?;
    let (_, rest) = rest.split_once("\"version\"")?;
    Version::leading(rest.split('"').nth(1)?)
}

fn toolkit_version(machine: &dyn Machine, path: &str) -> Option<Version> {
    let json = machine.read(&join(path, "version.json")).and_then(|text| version_of_json(&text));
    let text = || Version::find(&machine.read(&join(path, "version.txt"))?, 2);
    let name = || Version::leading(machine.canonical(path)?.rsplit('/').next()?.strip_prefix("cuda-")?);
    json.or_else(text).or_else(name)
}

/// Adds what is not there yet, by the place that links lead to.
fn add(machine: &dyn Machine, known: &mut Vec<(String, String)>, path: String) {
    let Some(real) = machine.canonical(&path) else { return };
    if known.len() < MOST && !known.iter().any(|(_, there)| *there == real) {
        known.push((path, real));
    }
}

fn toolkits(machine: &dyn Machine) -> Vec<Toolkit> {
    let mut found = Vec::new();
    let said =
        ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].into_iter().filter_map(|name| machine.variable(name)).filter(|path| path.starts_with('/'));
    let local = machine.list("/usr/local").into_iter().filter(|name| name == "cuda" || name.starts_with("cuda-"));
    for path in said.chain(local.map(|name| join("/usr/local", &name))).chain(["/opt/cuda".to_owned()]) {
        if machine.is_program(&join(&path, "bin/nvcc")) || machine.exists(&join(&path, "version.json")) {
            add(machine, &mut found, path);
        }
    }
    let mut toolkits: Vec<Toolkit> =
        found.into_iter().map(|(path, _)| Toolkit { version: toolkit_version(machine, &path), path }).collect();
    // Distributions put theirs into the folders of all programs.
    if toolkits.is_empty()
        && let Some(nvcc) = machine.on_path("nvcc")
    {
        let said = machine.run(&nvcc, &["--version"]);
        let version = said.output().and_then(|text| Version::leading(text.split_once("release ")?.1));
        toolkits.push(Toolkit { path: nvcc.trim_end_matches("/bin/nvcc").to_owned(), version });
    }
    toolkits.sort_by(|a, b| b.version.cmp(&a.version));
    toolkits
}

/// Folders of Python packages, the environment that is active first.
fn sites(machine: &dyn Machine) -> Vec<String> {
    let mut roots: Vec<String> = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| machine.variable(name)).collect();
    roots.extend(machine.directory().map(|directory| join(&directory, ".venv")));
    roots.extend(machine.on_path("python3").and_then(|path| Some(path.strip_suffix("/bin/python3")?.to_owned())));
    roots.extend(machine.variable("HOME").map(|home| join(&home, ".local")));
    roots.extend(["/usr/local".to_owned(), "/usr".to_owned()]);
    let mut found = Vec::new();
    for root in roots {
        let lib = join(&root, "lib");
        for python in machine.list(&lib).into_iter().filter(|name| name.starts_with("python3")) {
            for kind in ["site-packages", "dist-packages"] {
                add(machine, &mut found, format!("{lib}/{python}/{kind}"));
            }
        }
    }
    found.into_iter().map(|(path, _)| path).collect()
}

fn torch(machine: &dyn Machine, site: &str) -> Option<Torch> {
    let text = machine.read(&join(site, "torch/version.py"))?;
    let quoted = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name) && line.contains('='))?;
        let value = line.rsplit('=').next()?.trim();
        Some(value.trim_matches(['\'', '"']).chars().take(60).collect::<String>())
    };
    let cuda = quoted("cuda").and_then(|text| Version::leading(&text));
    Some(Torch { site: site.to_owned(), version: quoted("__version__")?, cuda })
}

/// The files in a folder that are the library itself, one of each: `libcupti.so.12` is a link to `libcupti.so.2025.1.1`.
fn libraries(machine: &dyn Machine, folder: &str) -> Vec<(String, Option<Version>)> {
    let mut found: Vec<(String, Option<Version>)> = Vec::new();
    for name in machine.list(folder) {
        let Some(version) = name.strip_prefix("libcupti.so.").and_then(Version::leading) else { continue };
        // Other numbers are the library's own year.
        if version.major() < 100 && found.len() < MOST {
            found.push((join(folder, &name), Some(Version::of(&[version.major()]))));
        }
    }
    found
}

/// The version of the wheel that holds a library, from the name of its record.
fn version_of_wheel(machine: &dyn Machine, site: &str, major: Option<u32>) -> Option<Version> {
    let names = machine.list(site);
    let versions = names.iter().filter_map(|name| {
        let rest = name.strip_prefix("nvidia_cuda_cupti")?.strip_suffix(".dist-info")?;
        Version::leading(rest.split_once('-')?.1)
    });
    versions.into_iter().find(|version| major.is_none_or(|major| version.major() == major))
}

fn cupti(machine: &dyn Machine, toolkits: &[Toolkit], sites: &[String]) -> Vec<Cupti> {
    let mut found = Vec::new();
    for site in sites {
        let folders = machine.list(&join(site, "nvidia")).into_iter().filter(|name| name == "cuda_cupti" || name.starts_with("cu1"));
        for folder in folders.take(MOST) {
            for (path, major) in libraries(machine, &format!("{site}/nvidia/{folder}/lib")) {
                let cuda = version_of_wheel(machine, site, major.as_ref().map(Version::major)).or(major);
                found.push(Cupti { path, cuda, origin: "Python package" });
            }
        }
        let triton = libraries(machine, &format!("{site}/triton/backends/nvidia/lib/cupti"));
        found.extend(triton.into_iter().map(|(path, cuda)| Cupti { path, cuda, origin: "Triton" }));
    }
    for toolkit in toolkits {
        let folders = ["extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib64"];
        let first = folders.iter().map(|folder| libraries(machine, &join(&toolkit.path, folder))).find(|found| !found.is_empty());
        for (path, major) in first.unwrap_or_default() {
            found.push(Cupti { path, cuda: toolkit.version.clone().or(major), origin: "CUDA toolkit" });
        }
    }
    for folder in ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"] {
        found.extend(libraries(machine, folder).into_iter().map(|(path, cuda)| Cupti { path, cuda, origin: "system" }));
    }
    let mut known = Vec::new();
    found.retain(|cupti| {
        let before = known.len();
        add(machine, &mut known, cupti.path.clone());
        known.len() > before
    });
    found
}

impl Cuda {
    pub(super) fn of(machine: &dyn Machine) -> Self {
        let (toolkits, sites) = (toolkits(machine), sites(machine));
        Self {
            torch: sites.iter().filter_map(|site| torch(machine, site)).collect(),
            cupti: cupti(machine, &toolkits, &sites),
            has_compatibility: machine.list("/usr/local/cuda/compat").iter().any(|name| name.starts_with("libcuda.so")),
            toolkits,
            sites,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    fn cuda(text: &str) -> Cuda {
        Cuda::of(&Captured::parse(text).unwrap())
    }

    #[test]
    fn toolkits_are_found_once_and_newest_first() {
        let found = cuda(
            "@link /usr/local/cuda /usr/local/cuda-12.8\n@file /usr/local/cuda-12.8/version.json\n{ \"cuda\" : { \"name\" : \"CUDA SDK\", \"version\" : \"12.8.1\" } }\n@program /usr/local/cuda-13.0/bin/nvcc\n@file /usr/local/cuda-9.0/version.txt\nCUDA Version 9.0.176\n@program /usr/local/cuda-9.0/bin/nvcc\n",
        );
        let versions: Vec<_> = found.toolkits.iter().map(|kit| kit.version.as_ref().unwrap().to_string()).collect();
        assert_eq!(versions, ["13.0", "12.8.1", "9.0.176"]);
    }

    #[test]
    fn a_toolkit_of_the_distribution_is_asked() {
        let found =
            cuda("@env PATH=/usr/bin\n@program /usr/bin/nvcc\n@run nvcc --version\nCuda compilation tools, release 12.4, V12.4.131\n");
        assert_eq!((found.toolkits[0].path.as_str(), found.toolkits[0].version.clone()), ("/usr", Some(Version::of(&[12, 4]))));
    }

    #[test]
    fn torch_and_its_library_are_found_in_the_environment() {
        let site = "/home/user/app/.venv/lib/python3.12/site-packages";
        let found = cuda(&format!(
            "@cwd /home/user/app\n@file {site}/torch/version.py\nfrom typing import Optional\n__all__ = ['__version__', 'cuda']\n__version__ = '2.11.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\n@file {site}/nvidia/cu13/lib/libcupti.so.13\n@file {site}/nvidia_cuda_cupti-13.0.85.dist-info/METADATA\n@file {site}/triton/backends/nvidia/lib/cupti/libcupti.so.12\n@file {site}/triton/backends/nvidia/lib/cupti/libcupti.so.2025.1.1\n"
        ));
        assert_eq!(found.torch, [Torch { site: site.to_owned(), version: "2.11.0+cu130".to_owned(), cuda: Some(Version::of(&[13, 0])) }]);
        let libraries: Vec<_> = found.cupti.iter().map(|cupti| (cupti.cuda.as_ref().unwrap().to_string(), cupti.origin)).collect();
        assert_eq!(libraries, [("13.0.85".to_owned(), "Python package"), ("12".to_owned(), "Triton")]);
    }

    #[test]
    fn a_torch_without_cuda_and_nonsense() {
        let site = "/usr/lib/python3/dist-packages";
        let found = cuda(&format!("@file {site}/torch/version.py\n__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n"));
        assert_eq!((found.torch[0].version.as_str(), found.torch[0].cuda.clone()), ("2.11.0+cpu", None));
        assert_eq!(cuda(&format!("@file {site}/torch/version.py\n\u{1b}[2J nothing\n")).torch, []);
        assert_eq!(cuda(""), Cuda::default());
    }
}
