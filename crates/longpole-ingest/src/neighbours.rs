//! Files of neighbouring tools, recognised by content only to say what they are and which command takes them.

use crate::kineto::FileFacts;
use crate::nsys::export;

/// What it is, and what to do with it.
type Neighbour = (&'static str, &'static str);

const EXPORT: &str = "export a PyTorch trace with `prof.export_chrome_trace(\"trace.json.gz\")`";
const NSYS: Neighbour = ("an Nsight Systems report", export::HINT);
const NCU: Neighbour = ("an Nsight Compute report", "read it with `longpole ncu FILE`");

/// First bytes of binary and text files.
const MAGICS: &[(&[u8], Neighbour)] = &[
    (b"NVR\0", NCU),
    (
        b"QDSTRM",
        (
            "a raw stream of Nsight Systems (.qdstrm)",
            "make a report of it with `QdstrmImporter` of Nsight Systems, then run `nsys export --type sqlite REPORT.nsys-rep` and give that .sqlite file",
        ),
    ),
    (b"==PROF==", ("the text output of Nsight Compute", "profile with `ncu -o report` and read that with `longpole ncu FILE`")),
    (b"\"ID\",\"Process ID\"", ("a CSV export of Nsight Compute", "read it with `longpole ncu FILE`")),
    (b"PK\x03\x04", ("a zip archive (a saved PyTorch model?)", "unpack it and give the trace inside")),
    (b"PAR1", ("a Parquet file", EXPORT)),
    (b"\xfd7zXZ\0", ("an xz archive", "unpack it (`xz -d FILE`) and give what is inside")),
    (b"BZh", ("a bzip2 archive", "unpack it (`bunzip2 FILE`) and give what is inside")),
    (b"\x04\x22\x4d\x18", ("an lz4 archive", "unpack it (`lz4 -d FILE`) and give what is inside")),
    (b"7z\xbc\xaf\x27\x1c", ("a 7z archive", "unpack it and give the trace inside")),
    (b"\x7fELF", ("an executable", "give the trace that its run wrote")),
    (b"\x80\x02", ("a Python pickle (a PyTorch memory snapshot?)", "open a memory snapshot at pytorch.org/memory_viz")),
    (b"\x80\x03", ("a Python pickle (a PyTorch memory snapshot?)", "open a memory snapshot at pytorch.org/memory_viz")),
    (b"\x80\x04", ("a Python pickle (a PyTorch memory snapshot?)", "open a memory snapshot at pytorch.org/memory_viz")),
    (b"\x80\x05", ("a Python pickle (a PyTorch memory snapshot?)", "open a memory snapshot at pytorch.org/memory_viz")),
];

/// A file that is no JSON, by its first bytes.
pub(crate) fn binary_neighbour(head: &[u8]) -> Option<Neighbour> {
    if let Some((_, neighbour)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(*neighbour);
    }
    if is_utf16(head) {
        return Some(("text in UTF-16", "convert it to UTF-8 (`iconv -f UTF-16 -t UTF-8 FILE > trace.json`)"));
    }
    let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
    // An XSpace message begins with its first plane, a length-delimited field 1.
    if head.first() == Some(&0x0a) && (has(b"/host:") || has(b"/device:") || has(b"Task Environment")) {
        return Some(("an XLA profile (xplane.pb)", "give the `.trace.json.gz` that JAX writes beside it"));
    }
    // A list of two maps, the first of them a node: the other notation that Proton writes trees in.
    if head.starts_with(b"\x92\x83") && has(b"\xa5frame") {
        return Some(("a Triton Proton profile in MessagePack", "write it as JSON: `proton.finalize(output_format=\"hatchet\")`"));
    }
    if export::is_report(head) || has(b"Nsight Systems") || has(b"NVIDIA Tegra Profiler") || has(b"QuadDCommon") {
        return Some(NSYS);
    }
    None
}

/// Whether the file calls itself a report of Nsight Systems.
pub(crate) fn has_report_name(label: &str) -> bool {
    [".nsys-rep", ".qdrep", ".qdstrm"].iter().any(|ending| label.ends_with(ending))
}

/// JSON in two bytes a character, of either order, with or without its mark.
pub(crate) fn is_utf16(head: &[u8]) -> bool {
    let (first, second) = match head {
        [0xff, 0xfe, first, second, ..] => (*second, *first),
        [0xfe, 0xff, first, second, ..] => (*first, *second),
        [0, second, 0, _, ..] => (0, *second),
        [first, 0, _, 0, ..] => (0, *first),
        _ => return false,
    };
    first == 0 && (matches!(second, b'{' | b'[' | b'"') || second.is_ascii_whitespace())
}

/// A JSON document without usable events, by its keys.
pub(crate) fn json_neighbour(facts: &FileFacts) -> Option<Neighbour> {
    let key = |name: &str| facts.keys.iter().any(|key| key == name);
    Some(if key("shared") && key("profiles") {
        ("a speedscope profile of host stacks", "open it at speedscope.app; it has no device work")
    } else if key("nodes") && key("schema") {
        ("a PyTorch execution trace (the graph, without times of device work)", EXPORT)
    } else if key("rocprofiler-sdk-tool") {
        ("a rocprofv3 result", EXPORT)
    } else if key("Layers") && key("Bindings") {
        ("TensorRT layer information, which holds no times", "record them with `trtexec --exportProfile=profile.json` and give that file")
    } else if key("segments") && key("device_traces") {
        ("a PyTorch memory snapshot", "open it at pytorch.org/memory_viz")
    } else {
        return None;
    })
}
