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
        ("run folder a --temperature -1", "0 or more"),
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
fn help_and_the_suite_need_no_device() {
    assert!(answered(&["--help"]).1.contains("--max-new-tokens"));
    let (code, out, _) = answered(&["suite", "list", "Qwen3-4B/model"]);
    assert_eq!(code, 0);
    assert_eq!(out.lines().count(), 6);
}

#[test]
fn prompts_become_tokens() {
    let Ok(Command::Run(job)) = parse("run --random Qwen3-0.6B hi") else { panic!("no run") };
    let found = find(&job.model).unwrap();
    assert_eq!(tokens_of(&job, &found).unwrap(), [104, 105]);
    assert_eq!(tokens_of(&Job { prompt: Prompt::Seeded(7), ..job.clone() }, &found).unwrap().len(), 7);
    assert!(tokens_of(&Job { prompt: Prompt::Text(String::new()), ..job }, &found).is_err());
    assert_eq!(chat_form("hi"), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
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
    write("generation_config.json", br#"{"eos_token_id": [262, 7]}"#);
    let found = find(&Model::Named(path.to_owned())).unwrap();
    assert_eq!(found.config.ends, [262, 262, 7]);
    let (code, out, notes) = failed();
    assert_eq!((code, out.as_str()), (1, ""));
    // Without a device that is what is said, with one that the weights are not there.
    assert!(notes.contains("driver") || notes.contains("CUDA") || notes.contains("cu") || notes.contains("embed_tokens"), "{notes}");
    let (code, _, notes) = answered(&["run", path, "hello", "--context", "20"]);
    assert_eq!(code, 1);
    assert!(notes.contains("exceed the 20 positions"), "{notes}");
    assert!(answered(&["run", "--random", "Qwen3-9B", "x"]).2.contains("Qwen3-9B"));
}
