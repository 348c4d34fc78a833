//! What events of ONNX Runtime become.

use longpole_trace::{ActivityKind, Detail, MemcpyKind, Recorder};

use crate::support::{calls, corpus_bytes, of_kind, ops, problems, ranges, read, work, work_by_op};

#[test]
fn nodes_are_operators_by_kind_and_ranges_by_name() {
    let found = read(&corpus_bytes("onnx_cuda.json"));
    assert_eq!((found.source.format, found.trace.recorder), ("onnxruntime", Recorder::OnnxRuntime));
    assert_eq!(problems(&found), []);
    assert_eq!((of_kind(&found, ActivityKind::Kernel), of_kind(&found, ActivityKind::Memcpy)), (12, 3));
    assert_eq!(ops(&found).keys().collect::<Vec<_>>(), ["Conv", "Gemm", "Relu", "Shape"]);
    assert_eq!(ranges(&found).keys().filter(|name| !name.contains(['_', ':'])).collect::<Vec<_>>(), ["conv1", "fc", "relu1"]);
    let trace = &found.trace;
    let shapes = trace.host_ops.shapes(0).map(|id| trace.strings.get(id));
    assert_eq!(shapes, Some("[[1, 3, 224, 224], [64, 3, 7, 7], [64]]"));
    assert_eq!(trace.host_ops.types(0).map(|id| trace.strings.get(id)), Some(r#"["float", "float", "float"]"#));
    assert!(matches!(trace.details[0], Detail::Transfer(copy) if copy.kind == MemcpyKind::HostToDevice && copy.bytes.is_none()));
    assert!(matches!(trace.details[1], Detail::Launch(launch) if launch.grid == Some([196, 4, 1]) && launch.block == Some([128, 1, 1])));
    assert_eq!((trace.devices.len(), trace.devices[0].ordinal, trace.lanes[0].stream), (1, 0, 7));
}

#[test]
fn device_work_belongs_to_the_run_before_it_wherever_the_file_is_cut() {
    let found = read(&corpus_bytes("onnx_cuda.json"));
    let owned = work_by_op(&found);
    assert_eq!(
        owned.iter().map(|(op, sum)| (op.as_str(), *sum)).collect::<Vec<_>>(),
        [("Conv", (3, 117_000)), ("Gemm", (6, 48_000)), ("Relu", (3, 21_000))]
    );
    // A run at the very end of a segment: its device work begins the next.
    let node = |n: usize| {
        format!(
            r#"{{"cat" : "Node","pid" :1,"tid" :1,"dur" :9,"ts" :{n},"ph" : "X","name" :"n{n}_kernel_time","args" : {{"op_name" : "Op{n}"}}}}"#
        )
    };
    let kernel = |n: usize, k: usize| {
        format!(
            r#"{{"cat" : "Kernel","pid" :-1,"tid" :-1,"dur" :1,"ts" :{n},"ph" : "X","name" :"k","args" : {{"stream" : "7","note" : "{}","parent_name" : "n{n}_kernel_time"}}}}"#,
            "x".repeat(k)
        )
    };
    let mut events = Vec::new();
    for n in 0..600 {
        events.push(node(n));
        events.extend((0..4).map(|k| kernel(n, n % 97 * 11 + k)));
    }
    let text = format!("[\n{}\n]\n", events.join(",\n"));
    assert!(text.len() > 1 << 20, "several segments");
    let owned = work_by_op(&read(text.as_bytes()));
    assert_eq!((owned.len(), owned.values().all(|sum| *sum == (4, 4_000))), (600, true));
}

#[test]
fn fences_api_calls_and_an_unfinished_file() {
    let text = r#"[
{"cat" : "Session","pid" :1,"tid" :1,"dur" :9,"ts" :1,"ph" : "X","name" :"model_loading_uri","args" : {}},
{"cat" : "Node","pid" :1,"tid" :1,"dur" :1,"ts" :20,"ph" : "X","name" :"a_fence_before","args" : {"op_name" : "Add"}},
{"cat" : "Node","pid" :1,"tid" :1,"dur" :5,"ts" :22,"ph" : "X","name" :"a_kernel_time","args" : {"op_name" : "Add", "input_type_shape" : "?"}},
{"cat" : "Node","pid" :1,"tid" :1,"dur" :2,"ts" :28,"ph" : "X","name" :"a_fence_after","args" : {"op_name" : "Add"}},
{"cat" : "Api","pid" :1,"tid" :1,"dur" :2,"ts" :40,"ph" : "X","name" :"hipLaunchKernel","args" : {}},
"#;
    let found = read(text.as_bytes());
    assert_eq!(problems(&found), [("truncated", 1)]);
    let named = |name: &str, sum: (u64, i64)| (name.to_owned(), sum);
    assert_eq!(ops(&found), [named("Add", (1, 5_000))].into());
    assert_eq!(calls(&found), [named("hipLaunchKernel", (1, 2_000))].into());
    let all = [("a", 5_000), ("fence_after", 2_000), ("fence_before", 1_000), ("model_loading_uri", 9_000)];
    assert_eq!(ranges(&found), all.into_iter().map(|(name, total)| named(name, (1, total))).collect());
    assert!(work(&found).is_empty());
}
