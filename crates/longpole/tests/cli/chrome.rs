//! Chrome traces of writers other than PyTorch: what is printed of the samples, and that every command keeps to what they hold.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Run, run, trace_commands};
use crate::hostile::assert_inert;
use crate::schema::validate;

const JAX: &str = "corpus/other/jax.trace.json.gz";
const ONNX: &str = "corpus/other/onnx_cuda.json";
const CHROME: &str = "corpus/other/chrome_server.json";

fn json(args: &[&str]) -> Value {
    let run = run(&[args, &["--json"]].concat());
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    validate(&run.stdout);
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn the_pages_of_the_samples() {
    for (name, path) in [("jax", JAX), ("onnx_cuda", ONNX), ("chrome_server", CHROME)] {
        assert_snapshot!(format!("chrome_triage_{name}"), run(&[path]).stdout);
        for command in ["ops", "ranges", "kernels", "steps"] {
            assert_snapshot!(format!("chrome_{command}_{name}"), run(&[command, path, "--limit", "12"]).stdout);
        }
    }
    assert_snapshot!("chrome_ops_onnx_by_shape", run(&["ops", ONNX, "--by", "shape"]).stdout);
}

/// No command tells the user of another recorder what only PyTorch's profiler can do, or invents what the file does not hold.
#[test]
fn every_command_keeps_to_what_the_file_holds() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let slice = directory.path().join("slice.json");
    let slice = slice.to_str().expect("UTF-8");
    // The page's script knows the words for every recorder; what it shows of a file is that of the other commands.
    let page = directory.path().join("page.html");
    let page = page.to_str().expect("UTF-8");
    for path in [JAX, ONNX, CHROME] {
        let more = ["diff", "check", "slice", "report"].map(str::to_owned);
        for command in trace_commands().iter().chain(&more) {
            let args: &[&str] = match command.as_str() {
                "diff" => &["diff", path, path],
                "check" => &["check", path, "--budget", "corpus/budgets/sane.toml"],
                "slice" => &["slice", path, "-o", slice],
                "report" => &["report", path, "-o", page],
                command => &[command, path],
            };
            let Run { code, stdout, stderr } = run(args);
            assert!(matches!(code, Some(0 | 2)) && (code == Some(0) || stderr.lines().count() <= 3), "{args:?}: {code:?} {stderr}");
            for text in [&stdout, &stderr] {
                for foreign in ["ProfilerActivity", "profile_memory", "record_shapes", "record_function", "torch.cuda"] {
                    assert!(!text.contains(foreign), "{args:?} speaks of {foreign}:\n{text}");
                }
            }
        }
    }
    let page = run(&[CHROME]).stdout;
    assert!(page.contains("no device activity was recorded") && !page.contains("GPU idle"), "{page}");
}

/// A slice has the device time, operators and ranges of what it was made of.
#[test]
fn slices_are_read_back_alike() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for path in [JAX, ONNX] {
        let slice = directory.path().join("slice.json");
        let slice = slice.to_str().expect("UTF-8");
        let made = run(&["slice", path, "-o", slice]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        for (command, list) in [("ops", "ops"), ("kernels", "kernels"), ("ranges", "ranges")] {
            assert_eq!(json(&[command, path])[list], json(&[command, slice])[list], "{command} {path}");
        }
    }
}

#[test]
fn operators_of_other_writers_own_their_device_time() {
    let cuda = |path: &str, name: &str| {
        let document = json(&["ops", path]);
        let row = document["ops"].as_array().expect("rows").iter().find(|row| row["name"] == name).cloned().expect("the row");
        (row["calls"].as_u64(), row["cuda_ns"].as_i64())
    };
    // The figures of corpus/other/chrome_sums.txt.
    assert_eq!(cuda(JAX, "jit__lambda/gemm_fusion_dot_general.1"), (Some(5), Some(125_568)));
    assert_eq!(cuda(JAX, "jit__lambda/input_reduce_fusion"), (Some(5), Some(28_735)));
    assert_eq!(cuda(ONNX, "Conv"), (Some(3), Some(117_000)));
    assert_eq!(cuda(ONNX, "Gemm"), (Some(3), Some(48_000)));
    let ranges = json(&["ranges", ONNX]);
    let row = |name: &str| ranges["ranges"].as_array().expect("rows").iter().find(|row| row["name"] == name).cloned().expect("the row");
    assert_eq!((row("fc")["kernels"].as_u64(), row("fc")["gpu_busy_ns"].as_i64()), (Some(6), Some(48_000)));
}

/// Names that would act on a terminal come through none of the importers.
#[test]
fn no_name_of_these_files_acts_on_its_reader() {
    const NAME: &str = r"=x\u001b[31m\u009b2J|`<script>\u202e\r\n\t";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let host = |cat: &str, more: &str| format!(r#"{{"cat":"{cat}","ph":"X","pid":1,"tid":1,"ts":10,"dur":50,"name":"{NAME}{more}"#);
    let documents = [
        format!(
            r#"{{"metadata":{{"highres-ticks":true}},"traceEvents":[{{"ph":"M","pid":1,"name":"process_name","args":{{"name":"/device:GPU:{NAME}"}}}},
            {{"ph":"X","pid":701,"tid":1,"ts":5,"dur":2,"name":"{NAME}","args":{{"correlation_id":"1","device_id":"0"}}}},
            {{"ph":"X","pid":2,"tid":1,"ts":9,"dur":2,"name":"{NAME}","args":{{"correlation_id":"1","kernel_details":"{NAME}","hlo_op":"{NAME}"}}}},{{}}]}}"#
        ),
        format!(
            "[{},{}]",
            host("Node", &format!(r#"_kernel_time","args":{{"op_name":"{NAME}","input_type_shape":[{{"{NAME}":[1]}}]}}}}"#)),
            host("Kernel", &format!(r#"","args":{{"stream":"{NAME}","parent_name":"{NAME}_kernel_time"}}}}"#))
        ),
        format!(
            r#"[{{"ph":"B","name":"{NAME}","pid":1,"tid":"{NAME}","ts":1}},{{"ph":"e","id":"{NAME}","name":"{NAME}","pid":1,"ts":3}},{}]"#,
            host(NAME, "\"}")
        ),
    ];
    for (index, document) in documents.iter().enumerate() {
        let path = directory.path().join(format!("{index}.json"));
        fs::write(&path, document).expect("written");
        for command in ["triage", "ops", "kernels", "ranges", "steps", "idle"] {
            let args = [command, path.to_str().expect("UTF-8"), "--full-names"];
            let run = run(&args);
            assert!(matches!(run.code, Some(0 | 2)), "{args:?}: {}", run.stderr);
            assert_inert(&args, &run.stdout);
            assert_inert(&args, &run.stderr);
        }
    }
}
