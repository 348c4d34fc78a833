//! Everything that can be wrong with a job without a device: found before one is opened, since weights take long to load.

use crate::cli::{Job, Prompt};
use crate::config::Config;
use crate::error::Error;
use crate::files::Output;
use crate::layout::Layout;
use crate::models::{Found, find};
use crate::random;
use crate::tokenizer::Tokenizer;

/// Tokens of a prefill's part at most: longer prompts are read in parts, so that memory does not grow with them.
const STEP_TOKENS: usize = 2048;

/// A job that can begin.
pub(crate) struct Prepared {
    pub(crate) found: Found,
    /// The prompt, every token of which is in the vocabulary.
    pub(crate) tokens: Vec<u32>,
    /// Of which so many are read at once.
    pub(crate) at_once: usize,
    /// Positions to have room for.
    pub(crate) capacity: usize,
    /// Tokens of a step.
    pub(crate) step_tokens: usize,
    /// Where logits go.
    pub(crate) output: Option<Output>,
}

/// A prompt as a turn of Qwen's chat form.
fn chat_form(prompt: &str) -> String {
    format!("<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n")
}

/// Tokens of a prompt. `capacity` is looked at before seeded ones are made, as many as those may be asked for.
fn tokens_of(
    job: &Job,
    config: &Config,
    tokenizer: Option<&Tokenizer>,
    fits: &dyn Fn(usize) -> Result<(), Error>,
) -> Result<Vec<u32>, Error> {
    let tokens = match (&job.prompt, tokenizer) {
        (Prompt::Seeded(count), _) => {
            fits(*count)?;
            random::tokens(1, *count, config.vocabulary)
        }
        (Prompt::Tokens(tokens), _) => tokens.clone(),
        (Prompt::Text(text), Some(tokenizer)) if job.chat => tokenizer.encode(&chat_form(text)),
        (Prompt::Text(text), Some(tokenizer)) => tokenizer.encode(text),
        // Seeded weights know no language: a token a byte.
        (Prompt::Text(text), None) => text.bytes().map(u32::from).collect(),
    };
    if tokens.is_empty() {
        return Err(Error::Asked("the prompt is empty".to_owned()));
    }
    fits(tokens.len())?;
    if let Some(token) = tokens.iter().find(|token| **token as usize >= config.vocabulary) {
        let from = if matches!(job.prompt, Prompt::Text(_)) { ", though tokenizer.json makes it of the prompt" } else { "" };
        return Err(Error::Asked(format!("token {token} is not one of the vocabulary's {}{from}", config.vocabulary)));
    }
    Ok(tokens)
}

impl Prepared {
    /// A job that writes `new` tokens behind its prompt; `prefill` tokens are read at once, all if it is `None`.
    pub(crate) fn new(job: &Job, new: usize, prefill: Option<usize>) -> Result<Self, Error> {
        let found = find(&job.model)?;
        let limit = found.config.max_positions;
        let capacity = job.context.min(limit);
        let fits = |prompt: usize| {
            if prompt.checked_add(new).is_some_and(|positions| positions <= capacity) {
                return Ok(());
            }
            let what = if new == 0 { format!("{prompt} tokens") } else { format!("{prompt} tokens of prompt and {new} new ones") };
            let whose = if job.context > limit {
                format!("{limit} positions of the model, which --context {} does not change", job.context)
            } else {
                format!("{capacity} positions of --context")
            };
            Err(Error::Asked(format!("{what} exceed the {whose}")))
        };
        let tokens = tokens_of(job, &found.config, found.tokenizer.as_ref(), &fits)?;
        let at_once = prefill.unwrap_or(tokens.len()).clamp(1, tokens.len());
        let step_tokens = at_once.min(STEP_TOKENS);
        Layout::new(&found.config, capacity, step_tokens)?;
        let output = job.output.as_deref().map(Output::create).transpose()?;
        Ok(Self { found, tokens, at_once, capacity, step_tokens, output })
    }

    /// Of `run`. What is not asked for is chosen all the same, and has its place.
    pub(crate) fn run(job: &Job) -> Result<Self, Error> {
        Self::new(job, job.count.max(1), None)
    }

    /// Of `logits`.
    pub(crate) fn logits(job: &Job) -> Result<Self, Error> {
        Self::new(job, 0, Some(job.prefill))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command;

    fn prepared(line: &str) -> Result<Prepared, Error> {
        match Command::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap() {
            Command::Run(job) => Prepared::run(&job),
            Command::Logits(job) => Prepared::logits(&job),
            other => panic!("{other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        let error = prepared(line).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{line}: {error}");
        error.to_string()
    }

    #[test]
    fn prompts_become_tokens() {
        assert_eq!(prepared("run --random Qwen3-0.6B hi").unwrap().tokens, [104, 105]);
        let seeded = prepared("run --random Qwen3-0.6B --prompt-tokens 7").unwrap();
        assert_eq!((seeded.tokens.len(), seeded.at_once), (7, 7));
        assert!(refused("run --random Qwen3-0.6B ").contains("empty"));
        assert!(refused("run --random Qwen3-0.6B --prompt-tokens 0").contains("empty"));
        assert_eq!(chat_form("hi"), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
    }

    #[test]
    fn what_exceeds_the_context_is_said_before_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("x.bin");
        let logits = format!("logits --random Qwen3-0.6B -o {} ", output.display());
        assert!(refused("run --random Qwen3-0.6B --prompt-tokens 1000000000000").contains("4096 positions of --context"));
        assert!(refused(&format!("{logits}--prompt-tokens 1000000000000")).contains("1000000000000 tokens exceed"));
        assert!(refused("run --random Qwen3-0.6B hi --max-new-tokens 18446744073709551615").contains("18446744073709551615 new ones"));
        assert!(
            refused("run --random Qwen3-0.6B --prompt-tokens 18446744073709551615 --max-new-tokens 18446744073709551615")
                .contains("exceed")
        );
        assert!(refused(&format!("{logits}--tokens 1,2,3 --context 2")).contains("3 tokens exceed the 2 positions"));
        let beyond = refused("run --random Qwen3-0.6B --prompt-tokens 50000 --context 99999");
        assert!(beyond.contains("40960 positions of the model") && beyond.contains("99999"), "{beyond}");
        // As many as there is room for are none too many, and what was refused has left nothing behind.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(prepared("run --random Qwen3-0.6B --prompt-tokens 4000 --max-new-tokens 96").unwrap().step_tokens, 2048);
        assert_eq!(prepared(&format!("{logits}--tokens 1,2,3 --context 3 --prefill 9")).unwrap().at_once, 3);
    }

    #[test]
    fn every_token_is_in_the_vocabulary() {
        let folder = tempfile::tempdir().unwrap();
        let logits = format!("logits --random Qwen3-0.6B -o {}/x.bin", folder.path().display());
        assert!(refused(&format!("{logits} --tokens 1,4294967295")).contains("token 4294967295 is not one of the vocabulary's 151936"));
        assert!(refused(&format!("{logits} --tokens 1,2,151936 --prefill 2")).contains("token 151936"));
        assert_eq!(prepared(&format!("{logits} --tokens 1,151935")).unwrap().tokens, [1, 151_935]);
    }
}
