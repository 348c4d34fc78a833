//! What a model looks like: `config.json` of the Hugging Face layout, and two sizes by name.

use std::path::Path;

use serde::Deserialize;

use crate::error::Error;
use crate::files;
use crate::gemv::MAX_COLUMNS;

/// Numbers of a head. Both sizes of Qwen3 that this engine is for have so many, and kernels are written for it: a lane of a warp holds four.
pub const HEAD: usize = 128;

/// Sizes that no dense Qwen3 exceeds, so that a hostile file asks for no absurd buffers.
const MAX_LAYERS: usize = 256;
const MAX_SIZE: usize = 1 << 20;

/// Bytes of a file at most.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// A decoder of the Qwen3 family.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Width of the hidden state.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, each shared by `heads / kv_heads` of queries.
    pub kv_heads: usize,
    /// Width of the feed-forward part.
    pub intermediate: usize,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Whether the embedding's table is the output's too.
    pub tied: bool,
    /// Base of the rotation's frequencies.
    pub rope_theta: f64,
    /// What is added to the mean of squares.
    pub epsilon: f32,
    /// Positions that the model was made for.
    pub max_positions: usize,
    /// Tokens that end a text.
    pub ends: Vec<u32>,
}

#[derive(Deserialize)]
struct File {
    model_type: Option<String>,
    hidden_size: Option<u64>,
    num_hidden_layers: Option<u64>,
    num_attention_heads: Option<u64>,
    num_key_value_heads: Option<u64>,
    head_dim: Option<u64>,
    intermediate_size: Option<u64>,
    vocab_size: Option<u64>,
    #[serde(default)]
    tie_word_embeddings: bool,
    rope_theta: Option<f64>,
    rope_parameters: Option<serde_json::Value>,
    rope_scaling: Option<serde_json::Value>,
    rms_norm_eps: Option<f64>,
    max_position_embeddings: Option<u64>,
    hidden_act: Option<String>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    use_sliding_window: bool,
    quantization_config: Option<serde_json::Value>,
    eos_token_id: Option<serde_json::Value>,
}

/// Tokens that end a text: `eos_token_id` is a number or a list of numbers.
pub(crate) fn tokens_of_end(value: Option<&serde_json::Value>) -> Result<Vec<u32>, String> {
    let token = |value: &serde_json::Value| {
        let token = value.as_u64().and_then(|token| u32::try_from(token).ok());
        token.ok_or_else(|| "eos_token_id is neither the number of a token nor a list of such".to_owned())
    };
    match value {
        None | Some(serde_json::Value::Null) => Ok(Vec::new()),
        Some(serde_json::Value::Array(list)) => list.iter().map(token).collect(),
        Some(value) => Ok(vec![token(value)?]),
    }
}

/// The base of the frequencies. Newer writers put it and its kind into an object.
fn theta(outside: Option<f64>, parameters: &serde_json::Value) -> Result<f64, String> {
    if !(parameters.is_null() || parameters.is_object()) {
        return Err("rope_parameters is no object".to_owned());
    }
    let given = |key: &str| parameters.get(key).filter(|value| !value.is_null());
    for key in ["rope_type", "type"] {
        if given(key).is_some_and(|kind| kind.as_str() != Some("default")) {
            return Err(format!("rope_parameters.{key} is not default, frequencies here are not scaled"));
        }
    }
    let inside = match given("rope_theta") {
        Some(value) => Some(value.as_f64().ok_or("rope_parameters.rope_theta is no number")?),
        None => None,
    };
    let theta = outside.or(inside).unwrap_or(1e6);
    // Below 1 frequencies would grow from pair to pair, without bound towards 0.
    if theta.is_finite() && theta >= 1.0 { Ok(theta) } else { Err(format!("rope_theta is {theta:e}, a number of 1 or more is needed")) }
}

impl Config {
    /// One that the host can run, with everything that the large ones have: for checks and tests.
    pub(crate) fn small() -> Self {
        Self {
            hidden: 64,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            intermediate: 96,
            vocabulary: 130,
            tied: true,
            rope_theta: 1e4,
            epsilon: 1e-6,
            max_positions: 4096,
            ends: Vec::new(),
        }
    }

    /// Qwen3-0.6B.
    pub fn qwen3_0_6b() -> Self {
        Self { hidden: 1024, layers: 28, heads: 16, intermediate: 3072, ..Self::qwen3_4b() }
    }

    /// Qwen3-4B.
    pub fn qwen3_4b() -> Self {
        Self {
            hidden: 2560,
            layers: 36,
            heads: 32,
            kv_heads: 8,
            intermediate: 9728,
            vocabulary: 151_936,
            tied: true,
            rope_theta: 1e6,
            epsilon: 1e-6,
            max_positions: 40_960,
            ends: vec![151_645, 151_643],
        }
    }

    /// A size by its name.
    pub fn named(name: &str) -> Option<Self> {
        let short = name.rsplit('/').next().unwrap_or(name);
        match short.to_ascii_lowercase().as_str() {
            "qwen3-0.6b" => Some(Self::qwen3_0_6b()),
            "qwen3-4b" => Some(Self::qwen3_4b()),
            _ => None,
        }
    }

    /// Reads `config.json` of a folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("config.json");
        let text = files::text(&path, MAX_BYTES)?;
        Self::parse(&text).map_err(|what| Error::content(&path, what))
    }

    /// Takes the content of such a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("no configuration: {error}"))?;
        let kind = file.model_type.as_deref().unwrap_or("not given");
        if kind != "qwen3" {
            return Err(format!("model_type is {kind}, only qwen3 (dense) is run"));
        }
        let refuse = |what: &str| Err(what.to_owned());
        if file.hidden_act.as_deref().is_some_and(|act| act != "silu") {
            return refuse("hidden_act is not silu");
        }
        if file.attention_bias {
            return refuse("attention_bias is true, and there is no kernel with a bias");
        }
        if file.use_sliding_window {
            return refuse("use_sliding_window is true, attention here sees everything");
        }
        if file.rope_scaling.as_ref().is_some_and(|scaling| !scaling.is_null()) {
            return refuse("rope_scaling is set, frequencies here are not scaled");
        }
        if file.quantization_config.as_ref().is_some_and(|config| !config.is_null()) {
            return refuse("the weights are quantised, kernels here read numbers of 16 bits");
        }
        let theta = theta(file.rope_theta, &file.rope_parameters.unwrap_or_default())?;
        let epsilon = file.rms_norm_eps.unwrap_or(1e-6);
        if epsilon.is_sign_negative() || !(epsilon as f32).is_finite() {
            return Err(format!("rms_norm_eps is {epsilon:e}, a number of 32 bits that is not negative is needed"));
        }
        let size = |name: &str, value: Option<u64>| match value.and_then(|value| usize::try_from(value).ok()) {
            Some(value) if (1..=MAX_SIZE).contains(&value) => Ok(value),
            Some(value) => Err(format!("{name} is {value}, 1 to {MAX_SIZE} is run")),
            None => Err(format!("it does not say {name}")),
        };
        let config = Self {
            hidden: size("hidden_size", file.hidden_size)?,
            layers: size("num_hidden_layers", file.num_hidden_layers)?,
            heads: size("num_attention_heads", file.num_attention_heads)?,
            kv_heads: size("num_key_value_heads", file.num_key_value_heads)?,
            intermediate: size("intermediate_size", file.intermediate_size)?,
            vocabulary: size("vocab_size", file.vocab_size)?,
            tied: file.tie_word_embeddings,
            rope_theta: theta,
            epsilon: epsilon as f32,
            max_positions: size("max_position_embeddings", file.max_position_embeddings.or(Some(40_960)))?,
            ends: tokens_of_end(file.eos_token_id.as_ref())?,
        };
        let head = file.head_dim.unwrap_or_else(|| config.hidden as u64 / config.heads as u64);
        if head != HEAD as u64 {
            return Err(format!("heads have {head} numbers, kernels here are for {HEAD}"));
        }
        config.checked()
    }

    /// The same if kernels can run it.
    pub fn checked(self) -> Result<Self, String> {
        let refuse = |what: String| Err(what);
        if self.layers > MAX_LAYERS {
            return refuse(format!("{} layers, at most {MAX_LAYERS} are run", self.layers));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let (heads, kv_heads) = (self.heads, self.kv_heads);
            return refuse(format!("{heads} heads cannot share {kv_heads} of keys and values evenly"));
        }
        // Rows are read 16 bytes at a time, plain products go in steps of 16, and the threads of a block have all columns of a row: one piece of eight each
        // where the row is normalised, two elsewhere.
        let most = MAX_COLUMNS as usize;
        for (name, value, most) in [
            ("hidden_size", self.hidden, most / 2),
            ("intermediate_size", self.intermediate, most),
            ("the width of queries", self.q_width(), most),
        ] {
            if !value.is_multiple_of(16) || value > most {
                return refuse(format!("{name} is {value}, kernels here are for multiples of 16 up to {most}"));
            }
        }
        if !self.vocabulary.is_multiple_of(2) {
            return refuse(format!("vocab_size is {}, an even number is needed", self.vocabulary));
        }
        Ok(self)
    }

    /// Query heads of a key/value head.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Numbers of all queries of a token.
    pub fn q_width(&self) -> usize {
        self.heads * HEAD
    }

    /// Numbers of queries, keys and values of a token.
    pub fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * HEAD
    }

    /// Weights of the linear layers of one layer, which every token is multiplied by.
    pub fn layer_weights(&self) -> u64 {
        let [hidden, q, qkv, wide] = [self.hidden, self.q_width(), self.qkv_width(), self.intermediate].map(|size| size as u64);
        hidden * (qkv + q + 3 * wide)
    }

    /// Bytes that a decode step with so many positions before it reads at least: every weight that is multiplied, and the cache.
    pub fn decode_bytes(&self, positions: usize) -> u64 {
        let head = (self.vocabulary * self.hidden) as u64;
        let cache = (2 * self.layers * self.kv_heads * HEAD * positions) as u64;
        2 * (self.layers as u64 * self.layer_weights() + head + cache)
    }

    /// Floating-point operations of a step of so many tokens after `before` others, one of which is asked for logits.
    pub fn flops(&self, tokens: usize, before: usize) -> u64 {
        let linear = 2 * self.layers as u64 * self.layer_weights() * tokens as u64;
        let seen: u64 = (0..tokens as u64).map(|token| before as u64 + token + 1).sum();
        let attention = 4 * (self.layers * self.q_width()) as u64 * seen;
        linear + attention + 2 * (self.vocabulary * self.hidden) as u64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A model small enough for the host, with everything that the large have.
    pub(crate) fn tiny() -> Config {
        Config { max_positions: 64, ends: vec![5], ..Config::small() }
    }

    const SMALL: &str = r#"{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "eos_token_id": 151645, "head_dim": 128,
        "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960, "model_type": "qwen3",
        "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
        "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936}"#;

    #[test]
    fn a_configuration_is_read() {
        let config = Config::parse(SMALL).unwrap();
        assert_eq!(config, Config { ends: vec![151_645], ..Config::qwen3_0_6b() });
        let newer = SMALL.replace("\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 5e5}");
        assert_eq!(Config::parse(&newer).unwrap().rope_theta.to_bits(), 5e5f64.to_bits());
        let several = SMALL.replace("151645", "[1, 2]");
        assert_eq!(Config::parse(&several).unwrap().ends, [1, 2]);
    }

    #[test]
    fn what_is_not_run_is_said() {
        for (from, to, said) in [
            ("\"qwen3\"", "\"qwen3_moe\"", "model_type is qwen3_moe"),
            ("\"silu\"", "\"gelu\"", "hidden_act"),
            ("\"attention_bias\": false", "\"attention_bias\": true", "bias"),
            ("\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"yarn\"}", "rope_scaling"),
            ("\"use_sliding_window\": false", "\"use_sliding_window\": true", "sliding"),
            ("\"head_dim\": 128", "\"head_dim\": 64", "heads have 64"),
            ("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 3", "16 heads cannot share 3"),
            ("\"hidden_size\": 1024", "\"hidden_size\": 1020", "hidden_size is 1020"),
            ("\"num_hidden_layers\": 28", "\"num_hidden_layers\": 4000", "4000 layers"),
            ("\"vocab_size\": 151936", "\"vocab_size\": 0", "vocab_size is 0"),
            ("\"intermediate_size\": 3072", "\"other\": 1", "does not say intermediate_size"),
            ("1000000", "0", "rope_theta is 0e0"),
            ("1000000", "-5", "rope_theta is -5e0"),
            ("1000000", "5e-324", "rope_theta is 5e-324"),
            ("\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_theta\": \"x\"}", "rope_parameters.rope_theta is no number"),
            ("\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_theta\": 0}", "rope_theta is 0e0"),
            ("\"rope_theta\": 1000000", "\"rope_parameters\": {\"type\": \"yarn\"}", "rope_parameters.type is not default"),
            ("\"rope_theta\": 1000000", "\"rope_parameters\": {\"rope_type\": 3}", "rope_parameters.rope_type is not default"),
            ("\"rope_theta\": 1000000", "\"rope_parameters\": [1]", "rope_parameters is no object"),
            ("1e-06", "-1e-06", "rms_norm_eps is -1e-6"),
            ("1e-06", "1e39", "rms_norm_eps is 1e39"),
            ("151645", "\"x\"", "eos_token_id is neither"),
            ("151645", "[1, -2]", "eos_token_id is neither"),
            ("{\"architectures\"", "[\"architectures\"", "no configuration"),
        ] {
            let error = Config::parse(&SMALL.replace(from, to)).unwrap_err();
            assert!(error.contains(said), "{to}: {error}");
        }
    }

    #[test]
    fn sizes_have_names_and_weights() {
        assert_eq!(Config::named("Qwen/Qwen3-4B"), Some(Config::qwen3_4b()));
        assert_eq!(Config::named("Qwen3-8B"), None);
        // 0.596 and 4.02 billion parameters, of which the tied table is counted once; norms are a few thousand.
        let weights = |config: &Config| config.layers as u64 * config.layer_weights() + (config.vocabulary * config.hidden) as u64;
        assert_eq!(weights(&Config::qwen3_0_6b()), 595_984_384);
        assert_eq!(weights(&Config::qwen3_4b()), 4_022_272_000);
        assert!(Config::qwen3_4b().checked().is_ok() && tiny().checked().is_ok());
    }
}
