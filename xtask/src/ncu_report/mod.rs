//! `strip-report` and `gen-report`: Nsight Compute reports made from recorded ones, for the corpus and for measurements.

mod container;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use container::{Block, Container, Entry, SOURCES, fields, put_block, put_bytes};

/// `cargo xtask strip-report`
#[derive(clap::Args)]
pub(crate) struct StripOptions {
    /// The recorded report
    from: PathBuf,
    /// Where the stripped one goes; a name that ends in `repz` is compressed
    #[arg(short, long)]
    pub(crate) output: PathBuf,
    /// End of the path of a source file whose text is kept; may be given several times
    #[arg(long)]
    keep: Vec<String>,
}

/// `cargo xtask gen-report`
#[derive(clap::Args)]
pub(crate) struct GenOptions {
    /// The report whose results are repeated
    from: PathBuf,
    /// Where the large one goes
    #[arg(short, long)]
    pub(crate) output: PathBuf,
    /// How many results it has
    #[arg(long)]
    kernels: usize,
}

fn read(path: &PathBuf) -> Result<Container> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Container::parse(&bytes).with_context(|| format!("cannot take {} apart", path.display()))
}

/// Writes a copy without the text of source files other than those kept. Their paths stay. ncu packs NVIDIA's own headers into
/// reports, and those may not be redistributed. Says how many texts were left out.
pub(crate) fn strip(options: &StripOptions) -> Result<usize> {
    let mut report = read(&options.from)?;
    let mut dropped = 0;
    for entry in report.blocks.iter_mut().flat_map(|block| &mut block.entries) {
        if entry.counted_by == SOURCES {
            entry.message = without_texts(&entry.message, &options.keep, &mut dropped)?;
        }
    }
    let mut bytes = report.to_bytes()?;
    if options.output.extension().is_some_and(|extension| extension.to_string_lossy().ends_with("repz")) {
        bytes = zstd::bulk::compress(&bytes, 19)?;
    }
    std::fs::write(&options.output, bytes).with_context(|| format!("cannot write {}", options.output.display()))?;
    Ok(dropped)
}

/// Source data without texts: field 8 lists files, 1 of each is its path and 2 its text.
fn without_texts(data: &[u8], keep: &[String], dropped: &mut usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for field in fields(data)? {
        let Some(files) = field.bytes.filter(|_| field.number == 8) else {
            out.extend_from_slice(field.whole);
            continue;
        };
        let mut list = Vec::new();
        for file in fields(files)? {
            let Some(parts) = file.bytes.filter(|_| file.number == 1) else {
                list.extend_from_slice(file.whole);
                continue;
            };
            let parts = fields(parts)?;
            let path = parts.iter().find(|part| part.number == 1).and_then(|part| part.bytes).unwrap_or_default();
            let is_kept = keep.iter().any(|end| String::from_utf8_lossy(path).ends_with(end.as_str()));
            let mut kept = Vec::new();
            for part in &parts {
                if part.number == 2 && !is_kept {
                    *dropped += 1;
                } else {
                    kept.extend_from_slice(part.whole);
                }
            }
            put_bytes(1, &kept, &mut list);
        }
        put_bytes(8, &list, &mut out);
    }
    Ok(out)
}

/// Writes a report with as many results as asked for: those of the given one over and over, each in a block of its own behind
/// everything else. Gives its size in bytes.
pub(crate) fn generate(options: &GenOptions) -> Result<u64> {
    let report = read(&options.from)?;
    let is_result = |entry: &&Entry| entry.counted_by != SOURCES;
    let results: Vec<(&Block, &Entry)> =
        report.blocks.iter().flat_map(|block| block.entries.iter().filter(is_result).map(move |entry| (block, entry))).collect();
    ensure!(!results.is_empty(), "{} has no results to repeat", options.from.display());
    let file = File::create(&options.output).with_context(|| format!("cannot write {}", options.output.display()))?;
    let mut output = BufWriter::with_capacity(1 << 20, file);
    let mut bytes = report.start()?;
    for block in &report.blocks {
        put_block(&block.rest, block.entries.iter().filter(|entry| !is_result(entry)), &mut bytes)?;
    }
    let mut written = bytes.len() as u64;
    output.write_all(&bytes)?;
    for &(block, result) in results.iter().cycle().take(options.kernels) {
        bytes.clear();
        put_block(&block.process, std::iter::once(result), &mut bytes)?;
        output.write_all(&bytes)?;
        written += bytes.len() as u64;
    }
    output.flush()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> PathBuf {
        crate::root().join("corpus/ncu/kern_basic.ncu-rep")
    }

    #[test]
    fn a_report_taken_apart_and_put_together_keeps_everything() {
        let bytes = std::fs::read(recorded()).unwrap();
        let report = Container::parse(&bytes).unwrap();
        let again = Container::parse(&report.to_bytes().unwrap()).unwrap();
        assert_eq!(report.header, again.header);
        assert_eq!(report.blocks.len(), again.blocks.len());
        for (block, copy) in report.blocks.iter().zip(&again.blocks) {
            assert!(block.rest == copy.rest && block.entries.len() == copy.entries.len());
            assert!(block.entries.iter().zip(&copy.entries).all(|(entry, copy)| entry.message == copy.message));
        }
    }

    #[test]
    fn a_large_report_repeats_the_results() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("large.ncu-rep");
        let size = generate(&GenOptions { from: recorded(), output: output.clone(), kernels: 50 }).unwrap();
        assert_eq!(size, std::fs::metadata(&output).unwrap().len());
        let (small, large) = (read(&recorded()).unwrap(), read(&output).unwrap());
        let results = |report: &Container| -> Vec<Vec<u8>> {
            let entries = report.blocks.iter().flat_map(|block| &block.entries);
            entries.filter(|entry| entry.counted_by != SOURCES).map(|entry| entry.message.clone()).collect()
        };
        let expected: Vec<_> = results(&small).into_iter().cycle().take(50).collect();
        assert!(results(&large) == expected, "the results are not those of the given report in a circle");
    }

    #[test]
    fn only_texts_of_kept_files_stay() {
        let file = |path: &[u8], text: &[u8]| {
            let (mut parts, mut file) = (Vec::new(), Vec::new());
            put_bytes(1, path, &mut parts);
            put_bytes(2, text, &mut parts);
            put_bytes(1, &parts, &mut file);
            file
        };
        let mut data = Vec::new();
        put_bytes(4, b"cubin", &mut data);
        put_bytes(8, &[file(b"/src/kern.cu", b"ours"), file(b"/usr/include/x.hpp", b"theirs")].concat(), &mut data);
        let mut dropped = 0;
        let stripped = without_texts(&data, &["kern.cu".to_owned()], &mut dropped).unwrap();
        assert_eq!(dropped, 1);
        let has = |words: &[u8]| stripped.windows(words.len()).any(|window| window == words);
        assert!(has(b"ours") && has(b"cubin") && has(b"/usr/include/x.hpp") && !has(b"theirs"));
    }
}
