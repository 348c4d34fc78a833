//! Models by name: their shapes, and where their weights come from.

use std::path::Path;

use crate::config::{Config, MAX_BYTES, tokens_of_end};
use crate::error::Error;
use crate::files;
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

/// Finds a model, reads what is small of it, and looks whether the rest is there.
pub(crate) fn find(model: &Model) -> Result<Found, Error> {
    match model {
        Model::Random(name) => {
            let config = Config::named(name).ok_or_else(|| Error::Asked(format!("--random is Qwen3-0.6B or Qwen3-4B, not {name}")))?;
            Ok(Found { config, tokenizer: None, tensors: None })
        }
        Model::Named(name) => {
            let cache = hub::cache_folder(|name| std::env::var(name).ok());
            let folder = hub::find(name, cache.as_deref())?;
            let mut config = Config::open(&folder)?;
            config.ends.extend(ends_of_generation(&folder)?);
            let (tokenizer, tensors) = (Tokenizer::open(&folder)?, Tensors::open(&folder)?);
            tensors.check(&config)?;
            Ok(Found { config, tokenizer: Some(tokenizer), tensors: Some(tensors) })
        }
    }
}

/// Tokens that end a text by `generation_config.json`, which names more than `config.json` does.
fn ends_of_generation(folder: &Path) -> Result<Vec<u32>, Error> {
    let path = folder.join("generation_config.json");
    // Not every model has one.
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = files::text(&path, MAX_BYTES)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| Error::content(&path, format!("no JSON: {error}")))?;
    tokens_of_end(value.get("eos_token_id")).map_err(|what| Error::content(&path, what))
}
