//! Names, shapes and places of the weights, as Hugging Face calls them and as the device has them.
//!
//! Rows of queries, keys and values lie one below the other in one matrix, and so do gates and ups, so that one kernel reads them in one go.

use crate::config::{Config, HEAD};

/// A matrix or vector on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Rows of the vocabulary.
    Embedding,
    /// The output's rows, if they are not the embedding's.
    Head,
    /// The norm before the output.
    Norm,
    /// A layer's norm before attention.
    AttentionNorm(usize),
    /// Its queries, keys and values.
    Qkv(usize),
    /// The norm of each head of queries.
    QNorm(usize),
    /// The norm of each head of keys.
    KNorm(usize),
    /// Its output of attention.
    Output(usize),
    /// Its norm before the feed-forward part.
    MlpNorm(usize),
    /// Gates and ups.
    GateUp(usize),
    /// And the way back.
    Down(usize),
}

/// A tensor of a file and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its shape: rows and columns, or the length alone.
    pub shape: Vec<usize>,
    /// Where it goes.
    pub place: Place,
    /// Behind so many numbers of that place.
    pub offset: usize,
}

impl Tensor {
    /// Its numbers.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Every tensor that a model needs.
pub fn tensors(config: &Config) -> Vec<Tensor> {
    let mut all = Vec::new();
    let mut add = |name: String, shape: &[usize], place: Place, offset: usize| {
        all.push(Tensor { name, shape: shape.to_vec(), place, offset });
    };
    let Config { hidden, intermediate, vocabulary, .. } = *config;
    let (q, kv) = (config.q_width(), config.kv_heads * HEAD);
    add("model.embed_tokens.weight".to_owned(), &[vocabulary, hidden], Place::Embedding, 0);
    for layer in 0..config.layers {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        add(name("input_layernorm"), &[hidden], Place::AttentionNorm(layer), 0);
        add(name("self_attn.q_proj"), &[q, hidden], Place::Qkv(layer), 0);
        add(name("self_attn.k_proj"), &[kv, hidden], Place::Qkv(layer), q * hidden);
        add(name("self_attn.v_proj"), &[kv, hidden], Place::Qkv(layer), (q + kv) * hidden);
        add(name("self_attn.q_norm"), &[HEAD], Place::QNorm(layer), 0);
        add(name("self_attn.k_norm"), &[HEAD], Place::KNorm(layer), 0);
        add(name("self_attn.o_proj"), &[hidden, q], Place::Output(layer), 0);
        add(name("post_attention_layernorm"), &[hidden], Place::MlpNorm(layer), 0);
        add(name("mlp.gate_proj"), &[intermediate, hidden], Place::GateUp(layer), 0);
        add(name("mlp.up_proj"), &[intermediate, hidden], Place::GateUp(layer), intermediate * hidden);
        add(name("mlp.down_proj"), &[hidden, intermediate], Place::Down(layer), 0);
    }
    add("model.norm.weight".to_owned(), &[hidden], Place::Norm, 0);
    if !config.tied {
        add("lm_head.weight".to_owned(), &[vocabulary, hidden], Place::Head, 0);
    }
    all
}

/// Every place with its numbers, in the order in which they lie on the device.
pub fn places(config: &Config) -> Vec<(Place, usize)> {
    let mut found: Vec<(Place, usize)> = Vec::new();
    for tensor in tensors(config) {
        match found.last_mut() {
            Some((place, count)) if *place == tensor.place => *count += tensor.count(),
            _ => found.push((tensor.place, tensor.count())),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::tiny;

    #[test]
    fn tensors_fill_their_places() {
        let config = Config::qwen3_4b();
        let all = tensors(&config);
        assert_eq!(all.len(), 2 + 11 * 36);
        let (places, count) = (places(&config), |all: &[Tensor]| all.iter().map(Tensor::count).sum::<usize>());
        assert_eq!(places.len(), 2 + 8 * 36);
        assert_eq!(places.iter().map(|(_, count)| count).sum::<usize>(), count(&all));
        // The published size: 4.02 billion.
        assert_eq!(count(&all), 4_022_468_096);
        let qkv: Vec<&Tensor> = all.iter().filter(|tensor| tensor.place == Place::Qkv(3)).collect();
        assert_eq!(qkv[1].offset, qkv[0].count());
        assert_eq!(qkv[2].offset, qkv[1].offset + qkv[1].count());
        assert_eq!(qkv[2].name, "model.layers.3.self_attn.v_proj.weight");
    }

    #[test]
    fn an_untied_model_has_a_head() {
        let config = Config { tied: false, ..tiny() };
        assert_eq!(tensors(&config).last().map(|tensor| (tensor.place, tensor.shape.clone())), Some((Place::Head, vec![130, 64])));
    }
}
