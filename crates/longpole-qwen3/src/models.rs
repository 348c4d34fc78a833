//! Models by name: their shapes, and where their weights come from.

use std::path::Path;

use crate::config::Config;
use crate::error::Error;
use crate::hub;
use crate::safetensors::Tensors;
use crate::tokenizer::Tokenizer;

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// A folder, or a name of the hub.
    Named(String),
    /// Seeded weights in the shapes of this model.
    Random(String),
}

/// A model's parts before it is on a device.
pub(crate) struct Found {
    pub(crate) config: Config,
    pub(crate) tokenizer: Option<Tokenizer>,
    pub(crate) tensors: Option<Tensors>,
}

/// Finds a model, and reads what is small of it.
pub(crate) fn find(model: &Model) -> Result<Found, Error> {
    match model {
        Model::Random(name) => {
            let config = Config::named(name).ok_or_else(|| Error::NotFound(format!("--random is Qwen3-0.6B or Qwen3-4B, not {name}")))?;
            Ok(Found { config, tokenizer: None, tensors: None })
        }
        Model::Named(name) => {
            let cache = hub::cache_folder(|name| std::env::var(name).ok());
            let folder = hub::find(name, cache.as_deref())?;
            let path = folder.join("config.json");
            let text = std::fs::read_to_string(&path).map_err(|cause| Error::file(&path, cause))?;
            let mut config = Config::parse(&text)?;
            config.ends.extend(ends_of_generation(&folder));
            Ok(Found { config, tokenizer: Some(Tokenizer::open(&folder)?), tensors: Some(Tensors::open(&folder)?) })
        }
    }
}

/// Tokens that end a text by `generation_config.json`, which names more than `config.json` does.
fn ends_of_generation(folder: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(folder.join("generation_config.json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let token = |value: &serde_json::Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
    match value.get("eos_token_id") {
        Some(serde_json::Value::Array(list)) => list.iter().filter_map(token).collect(),
        Some(value) => token(value).into_iter().collect(),
        None => Vec::new(),
    }
}
