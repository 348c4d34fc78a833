use super::*;

fn small(layout: Layout) -> Options {
    Options { mb: None, steps: Some(2), layers: 2, layout, ..Options::sized(1, PathBuf::from("small.json")) }
}

fn written(options: &Options) -> (Value, Truth, Vec<u8>) {
    let mut bytes = Vec::new();
    let (size, events, truth, _) = write_trace(options, options.steps.unwrap(), &mut bytes).unwrap();
    assert_eq!(size, bytes.len() as u64);
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(events, value["traceEvents"].as_array().unwrap().len() as u64);
    (value, truth, bytes)
}

/// Decimal microseconds as nanoseconds, without a float on the way.
fn ns(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap();
    assert_eq!(fraction.len(), 3);
    whole.parse::<i64>().unwrap() * 1000 + fraction.parse::<i64>().unwrap()
}

#[test]
fn totals_are_those_of_the_file() {
    for options in [small(Layout::Classic), Options { stack: true, graph: true, ..small(Layout::Classic) }] {
        let (_, truth, bytes) = written(&options);
        let text = String::from_utf8(bytes).unwrap();
        for (category, &count) in &truth.counts {
            let needle = match *category {
                "memory" => "\"name\": \"[memory]\"".to_owned(),
                "flow_start" => "\"ph\": \"s\"".to_owned(),
                "flow_finish" => "\"ph\": \"f\"".to_owned(),
                other => format!("\"cat\": \"{other}\""),
            };
            assert_eq!(text.matches(&needle).count() as u64, count, "{category}");
        }
        let mut kernels = 0;
        for event in text.split("\"cat\": \"kernel\"").skip(1) {
            kernels += ns(event.split_once("\"dur\": ").unwrap().1.split_once(',').unwrap().0);
        }
        assert_eq!(kernels, truth.kernel_ns);
        assert_eq!(truth.kernels.iter().map(|total| total.1).sum::<i64>(), truth.kernel_ns);
        assert_eq!(truth.kernel_ns + truth.gpu_mem_ns, truth.gpu_busy_ns);
        assert_eq!((truth.kernel_without_launch, truth.launch_without_kernel), (3, 1));
    }
}

#[test]
fn a_layout_changes_the_spelling_alone() {
    let (expected, _, _) = written(&small(Layout::Classic));
    for layout in [Layout::Head, Layout::Minified, Layout::Shuffled] {
        assert_eq!(written(&small(layout)).0, expected, "{layout:?}");
    }
}

#[test]
fn a_seed_names_a_trace() {
    let (_, _, first) = written(&small(Layout::Shuffled));
    assert_eq!(written(&small(Layout::Shuffled)).2, first);
    assert_ne!(written(&Options { seed: 7, ..small(Layout::Shuffled) }).2, first);
}

#[test]
fn options_leave_out_what_they_say() {
    let (value, truth, bytes) = written(&Options { no_shapes: true, no_memory: true, ..small(Layout::Classic) });
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("Input Dims") && !text.contains("[memory]") && !text.contains("python_function"));
    assert_eq!(value["record_shapes"], 0);
    assert_eq!(truth.counts.get("memory"), None);
    let (_, _, stacks) = written(&Options { stack: true, ..small(Layout::Classic) });
    assert!(String::from_utf8(stacks).unwrap().contains("nn.Module: Qwen2MLP_1"));
}

#[test]
fn operators_nest_and_launches_fall_inside_their_operator() {
    let (value, _, _) = written(&Options { stack: true, ..small(Layout::Classic) });
    let events = value["traceEvents"].as_array().unwrap();
    let span = |event: &Value| {
        let start = ns(&format!("{:.3}", event["ts"].as_f64().unwrap() - 1.428_625e12));
        (start, start + ns(&format!("{:.3}", event["dur"].as_f64().unwrap())))
    };
    let ops: std::collections::HashMap<i64, (i64, i64)> = events
        .iter()
        .filter(|event| event["cat"] == "cpu_op" || event["cat"] == "user_annotation")
        .map(|event| (event["args"]["External id"].as_i64().unwrap(), span(event)))
        .collect();
    let mut checked = 0;
    for event in events.iter().filter(|event| event["cat"] == "cuda_runtime") {
        let Some(id) = event["args"]["External id"].as_i64() else { continue };
        let (start, end) = span(event);
        let (op_start, op_end) = ops[&id];
        // Times of this magnitude lose a nanosecond or two as floats.
        assert!(start >= op_start - 2 && end <= op_end + 2, "{event}");
        checked += 1;
    }
    assert!(checked > 100);
}

#[test]
fn a_graph_replay_is_one_launch_of_many_kernels() {
    let (value, _, _) = written(&Options { graph: true, ..small(Layout::Classic) });
    let events = value["traceEvents"].as_array().unwrap();
    let launches: Vec<&Value> =
        events.iter().filter(|event| event["name"] == "cudaGraphLaunch").map(|event| &event["args"]["correlation"]).collect();
    assert_eq!(launches.len(), 2);
    for launch in launches {
        let nodes = events.iter().filter(|event| event["cat"] == "kernel" && &event["args"]["correlation"] == launch);
        assert!(nodes.clone().count() > 60);
        assert!(nodes.clone().all(|node| node["args"].get("External id").is_none() && node["args"]["graph id"] == 3));
    }
}

#[test]
fn a_size_is_met_within_half_a_step() {
    let options = Options { mb: Some(4), steps: None, layers: 4, ..small(Layout::Minified) };
    let steps = steps_for(&options, 4_000_000).unwrap();
    let size = |steps| write_trace(&options, steps, &mut io::sink()).unwrap().0;
    let step = size(steps + 1) - size(steps);
    assert!(size(steps).abs_diff(4_000_000) <= step, "{} bytes with {steps} steps of {step}", size(steps));
}
