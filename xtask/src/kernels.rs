//! `kernels`: compiles the reference engine's CUDA C++ to the fatbins that are part of its program.
//!
//! Compiled files are kept in the repository, since machines that build the workspace have no nvcc. Beside them stand hashes of the flags and of
//! the sources that each was made of, so that a test finds a source that was changed and not compiled.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Where the sources are.
const FOLDER: &str = "crates/longpole-qwen3/kernels";

/// How a source becomes PTX, with line numbers for profilers.
const FLAGS: [&str; 4] = ["-std=c++17", "-O3", "-lineinfo", "-ptx"];

/// Compute capabilities that get machine code: Ampere and Hopper. The last gets its PTX too, for what comes after it.
const CAPABILITIES: [&str; 2] = ["80", "90"];

/// The closest packing is a quarter of the default's size.
const PACKING: &str = "--compress-mode=size";

/// All compiled files together may have so many bytes: they are in every clone.
const MAX_BYTES: u64 = 1_000_000;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only check that the compiled files are of the sources; needs no compiler.
    #[arg(long)]
    check: bool,
    /// The compiler.
    #[arg(long, default_value = "nvcc")]
    nvcc: PathBuf,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let folder = root.join(FOLDER);
    if !options.check {
        compile(&folder, &options.nvcc)?;
    }
    let complaints = stale(&folder)?;
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

fn compile(folder: &Path, nvcc: &Path) -> Result<()> {
    let made = folder.join("fatbins");
    std::fs::create_dir_all(&made)?;
    for entry in std::fs::read_dir(&made)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "fatbin") {
            std::fs::remove_file(&path)?;
        }
    }
    let hashes = hashes(folder)?;
    let mut list = String::new();
    for (name, hash) in &hashes {
        compile_one(folder, nvcc, name)?;
        writeln!(list, "{hash} {name}")?;
    }
    std::fs::write(made.join("hashes.txt"), list)?;
    Ok(())
}

/// Runs a tool of the compiler where the sources are.
fn tool(folder: &Path, program: &Path, arguments: &[String]) -> Result<()> {
    let output = Command::new(program)
        .current_dir(folder)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot start {} (CUDA 13's compiler; --nvcc says where it is)", program.display()))?;
    if !output.status.success() {
        bail!("{} fails:\n{}", arguments.last().map_or("", String::as_str), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// By way of PTX, whose line table can be told other names of files: those of this machine are nobody's business, and would make the
/// compiled file another on each.
fn compile_one(folder: &Path, nvcc: &Path, name: &str) -> Result<()> {
    let work = folder.join("fatbins");
    let made = |ending: &str| format!("fatbins/{name}.{ending}");
    let mut pack = vec![format!("--create={}", made("fatbin")), "-64".to_owned(), PACKING.to_owned()];
    let mut leftovers = Vec::new();
    for capability in CAPABILITIES {
        let (ptx, cubin) = (made(&format!("{capability}.ptx")), made(&format!("{capability}.cubin")));
        let flags = FLAGS.iter().map(|flag| (*flag).to_owned());
        let rest = [format!("-arch=compute_{capability}"), "-o".to_owned(), ptx.clone(), format!("{name}.cu")];
        tool(folder, nvcc, &flags.chain(rest).collect::<Vec<_>>())?;
        let path = folder.join(&ptx);
        std::fs::write(&path, neutral(&std::fs::read_to_string(&path)?))?;
        let assemble = ["-cubin", "-O3", "-lineinfo", &format!("-arch=sm_{capability}"), "-o", &cubin, &ptx].map(str::to_owned);
        tool(folder, nvcc, &assemble)?;
        pack.push(format!("--image3=kind=elf,sm={capability},file={cubin}"));
        if Some(&capability) == CAPABILITIES.last() {
            pack.push(format!("--image3=kind=ptx,sm={capability},file={ptx}"));
        }
        leftovers.extend([ptx, cubin]);
    }
    // It lies beside nvcc, or like it on the path.
    tool(folder, &nvcc.with_file_name("fatbinary"), &pack)?;
    for file in leftovers {
        std::fs::remove_file(folder.join(file))?;
    }
    ensure!(work.join(format!("{name}.fatbin")).exists(), "{name}.fatbin was not made");
    Ok(())
}

/// PTX whose files have their last names alone.
fn neutral(ptx: &str) -> String {
    let line = |line: &str| {
        let named = line.trim_start().starts_with(".file").then(|| line.split_once('"')).flatten();
        match named.and_then(|(before, rest)| Some((before, rest.split_once('"')?))) {
            Some((before, (path, after))) => format!("{before}\"{}\"{after}", path.rsplit('/').next().unwrap_or(path)),
            None => line.to_owned(),
        }
    };
    ptx.lines().map(line).fold(String::new(), |text, line| text + &line + "\n")
}

/// FNV-1a, 64 bits: it guards against forgetting, not against malice.
fn hash(parts: &[&[u8]]) -> String {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
    format!("{hash:016x}")
}

/// Kernels by name, each with the hash of the flags, of its source and of all headers.
fn hashes(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    let mut headers = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("cu") => sources.insert(name, std::fs::read(&path)?),
            Some("cuh") => headers.insert(name, std::fs::read(&path)?),
            _ => continue,
        };
    }
    let flags = format!("{} {} {PACKING}", FLAGS.join(" "), CAPABILITIES.join(" "));
    let hashed = sources.into_iter().map(|(name, source)| {
        let mut parts = vec![flags.as_bytes(), source.as_slice()];
        parts.extend(headers.values().map(Vec::as_slice));
        (name, hash(&parts))
    });
    Ok(hashed.collect())
}

/// What is not as compiling would leave it.
fn stale(folder: &Path) -> Result<Vec<String>> {
    let made = folder.join("fatbins");
    let list = std::fs::read_to_string(made.join("hashes.txt")).unwrap_or_default();
    let known: BTreeMap<&str, &str> = list.lines().filter_map(|line| line.split_once(' ')).map(|(hash, name)| (name, hash)).collect();
    let hashes = hashes(folder)?;
    let mut complaints = Vec::new();
    let mut bytes = 0;
    for (name, hash) in &hashes {
        match (known.get(name.as_str()), std::fs::metadata(made.join(format!("{name}.fatbin")))) {
            (Some(known), Ok(file)) if known == hash => bytes += file.len(),
            (Some(_), Ok(_)) => complaints.push(format!("{FOLDER}/{name}.cu was changed since it was compiled: run `cargo xtask kernels`")),
            _ => complaints.push(format!("{FOLDER}/{name}.cu was not compiled: run `cargo xtask kernels`")),
        }
    }
    complaints.extend(known.keys().filter(|name| !hashes.contains_key(**name)).map(|name| format!("{name}.fatbin has no source any more")));
    if bytes > MAX_BYTES {
        complaints.push(format!("the compiled kernels have {bytes} bytes, more than {MAX_BYTES}"));
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_kernels_are_of_the_sources() {
        let complaints = stale(&crate::root().join(FOLDER)).unwrap();
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }

    #[test]
    fn no_path_of_a_machine_is_compiled_in() {
        let ptx = "\t.file\t1 \"/somewhere/kernels/a.cu\"\n.visible .entry a(\n\t.file\t2 \"b.cuh\", 5, 6\n";
        assert_eq!(neutral(ptx), "\t.file\t1 \"a.cu\"\n.visible .entry a(\n\t.file\t2 \"b.cuh\", 5, 6\n");
    }

    #[test]
    fn a_changed_source_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("fatbins")).unwrap();
        std::fs::write(path.join("a.cu"), "one").unwrap();
        assert!(stale(path).unwrap()[0].contains("a.cu was not compiled"));
        std::fs::write(path.join("fatbins/a.fatbin"), "code").unwrap();
        std::fs::write(path.join("fatbins/hashes.txt"), format!("{} a\n", hashes(path).unwrap()["a"])).unwrap();
        assert_eq!(stale(path).unwrap(), Vec::<String>::new());
        std::fs::write(path.join("shared.cuh"), "new").unwrap();
        assert!(stale(path).unwrap()[0].contains("a.cu was changed"));
        std::fs::remove_file(path.join("a.cu")).unwrap();
        assert!(stale(path).unwrap()[0].contains("no source any more"));
    }
}
