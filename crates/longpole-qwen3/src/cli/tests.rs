use super::*;

fn parse(line: &str) -> Result<Command, String> {
    Command::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

fn answered(arguments: &[&str]) -> (u8, String, String) {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let code = main(&arguments, &mut out, &mut notes);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap())
}

#[test]
fn options_are_read() {
    let Ok(Command::Run(job)) = parse("run --random Qwen3-4B hello --max-new-tokens 5 --temperature 0.7 --seed 3 --variant ref --eager")
    else {
        panic!("no run");
    };
    assert_eq!((job.model, job.prompt), (Model::Random("Qwen3-4B".to_owned()), Prompt::Text("hello".to_owned())));
    assert_eq!((job.count, job.temperature, job.seed, job.variant, job.mode), (5, 0.7, 3, Variant::Ref, Mode::Eager));
    let Ok(Command::Logits(job)) = parse("logits folder --tokens 1,2,30 --prefill 2 -o x.bin") else { panic!("no logits") };
    assert_eq!((job.prompt, job.prefill), (Prompt::Tokens(vec![1, 2, 30]), 2));
    assert_eq!(parse("check --all"), Ok(Command::Check(Extent::All)));
    assert_eq!(parse("run --help"), Ok(Command::Help));
    assert_eq!(parse("workload --help"), Ok(Command::Help));
    let Ok(Command::Workload(asked)) = parse("workload Qwen3-4B --seconds 2") else { panic!("no workload") };
    assert_eq!(asked.models, ["Qwen3-4B"]);
    assert_eq!(parse("suite list --help"), Ok(Command::Suite(vec!["list".to_owned(), "--help".to_owned()])));
}

#[test]
fn what_makes_no_sense_is_said() {
    for (line, said) in [
        ("walk", "no command"),
        ("run", "which model"),
        ("run folder", "begin with"),
        ("run folder a b", "one argument too many"),
        ("run folder a --fast", "no option"),
        ("run folder a --max-new-tokens many", "needs a number"),
        ("run folder a --max-new-tokens", "needs a value"),
        ("run folder a --temperature -1", "is 0, or 0.000001"),
        ("run folder a --temperature NaN", "is 0, or 0.000001"),
        ("run folder a --temperature inf", "is 0, or 0.000001"),
        ("run folder a --temperature 1e-45", "not 1e-45"),
        ("run folder a --temperature 1e-60", "not 1e-60"),
        ("run folder a --temperature 1e38", "not 1e38"),
        ("logits folder a -o x --context 0", "--context is 1 or more"),
        ("logits folder a -o ", "-o needs the name"),
        ("run folder a -o x", "-o is an option of logits"),
        ("run folder -a", "stands behind --"),
        ("run folder -- -a b", "one argument too many"),
        ("run folder a --variant best", "ref or tile"),
        ("run folder --tokens 1,x", "needs a number"),
        ("logits folder a", "-o FILE"),
        ("check --some", "no option of check"),
        ("workload --fast", "no option of workload"),
    ] {
        let complaint = parse(line).unwrap_err();
        assert!(complaint.contains(said), "{line}: {complaint}");
    }
    assert!(Command::parse(&[]).is_err());
    let (code, out, notes) = answered(&["walk"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(notes.contains("no command") && notes.contains("Usage:"));
}

#[test]
fn temperatures_have_a_finite_inverse() {
    for text in ["0", "-0", "0.000001", "1e-6", "0.7", "1000000"] {
        let value = temperature(text).unwrap();
        assert!(value.abs() <= 0.0 || (1.0 / value).is_normal(), "{text}");
        // Just what the engine draws at, it is asked for.
        assert!(value.abs() <= 0.0 || value >= LEAST_TEMPERATURE, "{text}");
    }
}

#[test]
fn behind_two_dashes_nothing_is_an_option() {
    let Ok(Command::Run(job)) = parse("run --random Qwen3-4B --seed 3 -- --help") else { panic!("no run") };
    assert_eq!((job.prompt, job.seed), (Prompt::Text("--help".to_owned()), 3));
    let Ok(Command::Run(job)) = parse("run folder -") else { panic!("no run") };
    assert_eq!(job.prompt, Prompt::Text("-".to_owned()));
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let arguments = vec!["run".into(), OsString::from_vec(vec![b'a', 0xFF]), "x".into()];
    assert_eq!(start(arguments, &mut out, &mut notes), 2);
    let notes = String::from_utf8(notes).unwrap();
    assert!(notes.contains("is no text in UTF-8") && out.is_empty(), "{notes}");
    assert_eq!(start(vec!["--help".into()], &mut out, &mut Vec::new()), 0);
}

/// Where there is no device, that is no wrong result.
#[test]
fn no_device_is_no_failed_check() {
    let missing = longpole_bench::measure::Error::Missing("no driver".to_owned());
    assert_eq!(Error::from(missing).exit_code(), 3);
    // On a machine with a device, that is all that can be seen of it.
    if Cuda::open(0).is_ok() {
        return;
    }
    for arguments in [&["check"][..], &["run", "--random", "Qwen3-0.6B", "x"], &["workload"]] {
        assert_eq!(answered(arguments).0, 3, "{arguments:?}");
    }
}

#[test]
fn a_place_for_logits_is_looked_for_before_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone/x.bin");
    for (path, said) in [(gone.to_str().unwrap(), "no such folder"), (folder.path().to_str().unwrap(), "it is a folder"), ("", "empty")] {
        let (code, out, notes) = answered(&["logits", "--random", "Qwen3-0.6B", "x", "-o", path]);
        assert_eq!((code, out.as_str()), (2, ""), "{notes}");
        assert!(notes.contains(said), "{notes}");
    }
}

#[test]
fn help_and_the_suite_need_no_device() {
    assert!(answered(&["--help"]).1.contains("--max-new-tokens"));
    let (code, out, _) = answered(&["suite", "list", "Qwen3-4B/model"]);
    assert_eq!(code, 0);
    assert_eq!(out.lines().count(), 6);
}

#[test]
fn a_folder_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    let path = folder.path().to_str().unwrap();
    let failed = || answered(&["run", path, "hello"]);
    assert!(failed().2.contains("config.json"));
    write(
        "config.json",
        br#"{"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128,
        "intermediate_size": 96, "vocab_size": 264, "tie_word_embeddings": true, "eos_token_id": 262}"#,
    );
    assert!(failed().2.contains("tokenizer.json"));
    write("tokenizer.json", crate::tokenizer::tests::small().to_string().as_bytes());
    assert!(failed().2.contains("model.safetensors"));
    write("model.safetensors", &crate::safetensors::tests::file(&[]));
    let (code, out, notes) = failed();
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(notes.contains("model.embed_tokens.weight of shape [264, 64] is not in"), "{notes}");
    let config = crate::config::Config { vocabulary: 264, max_positions: 40_960, ..crate::config::Config::small() };
    let all = crate::weights::tensors(&config);
    let tensors: Vec<_> =
        all.iter().map(|tensor| (tensor.name.as_str(), "BF16", tensor.shape.as_slice(), vec![0; 2 * tensor.count()])).collect();
    write("model.safetensors", &crate::safetensors::tests::file(&tensors));
    write("generation_config.json", br#"{"eos_token_id": [262, 7]}"#);
    let found = crate::models::find(&Model::Named(path.to_owned())).unwrap();
    assert_eq!(found.config.ends, [262, 262, 7]);
    let (code, _, notes) = answered(&["run", path, "hello", "--context", "20"]);
    assert_eq!(code, 2);
    assert!(notes.contains("exceed the 20 positions"), "{notes}");
    // A tokenizer may know more tokens than the weights have rows.
    let mut larger = crate::tokenizer::tests::small();
    larger["added_tokens"][0]["id"] = 9000.into();
    write("tokenizer.json", larger.to_string().as_bytes());
    let (code, _, notes) = answered(&["run", path, "hello<|im_end|>"]);
    assert_eq!(code, 2);
    assert!(notes.contains("token 9000 is not one of the vocabulary's 264, though tokenizer.json"), "{notes}");
    write("generation_config.json", br#"{"eos_token_id": "x"}"#);
    let (code, _, notes) = failed();
    assert!(code == 3 && notes.contains("generation_config.json: eos_token_id is neither"), "{notes}");
    write("config.json", br#"{"model_type": "qwen3", "rope_theta": 0}"#);
    let (code, _, notes) = failed();
    assert!(code == 3 && notes.contains(path) && notes.contains("config.json: rope_theta is 0e0"), "{notes}");
    let (code, _, notes) = answered(&["run", "--random", "Qwen3-9B", "x"]);
    assert!(code == 2 && notes.contains("Qwen3-9B"), "{notes}");
}
