//! The kernels, compiled ahead by `cargo xtask kernels` and part of the program: which file each is in and what it is called there.

macro_rules! kernels {
    ($($(#[doc = $doc:literal])* $name:ident = $file:literal / $entry:literal,)*) => {
        /// A kernel of `kernels/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kernel {
            $($(#[doc = $doc])* $name,)*
        }

        impl Kernel {
            /// Every kernel.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// What it is called, which is what profilers show.
            pub fn entry(self) -> &'static str {
                match self {
                    $(Self::$name => $entry,)*
                }
            }

            /// The file without its ending that it is in.
            pub fn file(self) -> &'static str {
                match self {
                    $(Self::$name => $file,)*
                }
            }

            /// The compiled file.
            pub fn image(self) -> &'static [u8] {
                match self {
                    $(Self::$name => include_bytes!(concat!("../kernels/fatbins/", $file, ".fatbin")),)*
                }
            }
        }
    };
}

impl Kernel {
    /// Whether it may begin while the kernel ahead still runs: those of a tuned decode step wait by themselves.
    pub fn begins_early(self) -> bool {
        matches!(
            self,
            Self::Embedding | Self::GemvQkv | Self::GemvAdd | Self::GemvGateUp | Self::GemvLmHead | Self::AttentionDecode | Self::Sample
        )
    }
}

kernels! {
    /// Rows of the vocabulary.
    Embedding = "embedding" / "embedding",
    /// Normalisation of rows.
    RmsNorm = "rms_norm" / "rms_norm",
    /// A sum, kept and normalised.
    AddRmsNorm = "rms_norm" / "add_rms_norm",
    /// Normalised hidden state to queries, keys and values.
    GemvQkv = "gemv_qkv" / "gemv_qkv",
    /// A projection added to the hidden state.
    GemvAdd = "gemv_add" / "gemv_add",
    /// Normalised hidden state to silu(gate) * up.
    GemvGateUp = "gemv_gate_up" / "gemv_gate_up",
    /// Normalised hidden state to logits.
    GemvLmHead = "gemv_lm_head" / "gemv_lm_head",
    /// A matrix times a vector, plainly.
    GemvRef = "gemv_ref" / "gemv_ref",
    /// A matrix product, plainly.
    GemmRef = "gemm_ref" / "gemm_ref",
    /// Queries as attention reads them.
    QInputs = "qkv_inputs" / "q_inputs",
    /// Keys and values into the cache.
    KvInputs = "qkv_inputs" / "kv_inputs",
    /// Attention of one token.
    AttentionDecode = "attention_decode" / "attention_decode",
    /// Attention of many tokens.
    AttentionPrefill = "attention_prefill" / "attention_prefill",
    /// Attention, plainly.
    AttentionRef = "attention_ref" / "attention_ref",
    /// silu(gate) * up of many tokens.
    Swiglu = "swiglu" / "swiglu",
    /// The next token.
    Sample = "sample" / "sample",
    /// Weights as files have them to weights as kernels read them.
    Convert = "convert" / "bf16_to_f16",
    /// Seeded weights.
    Random = "random" / "random_f16",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_in_its_file() {
        for kernel in Kernel::ALL {
            let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("kernels/{}.cu", kernel.file()));
            let text = std::fs::read_to_string(&source).unwrap();
            let named = text.contains(&format!(" {}(", kernel.entry()));
            assert!(named, "{} is not in {}", kernel.entry(), source.display());
            // "fatb" in the order of the machine: FATBINC's magic number is of the data behind the wrapper.
            assert_eq!(kernel.image().get(..4), Some(&[0x50, 0xED, 0x55, 0xBA][..]), "{}", kernel.file());
        }
        let mut files: Vec<(&str, usize)> = Kernel::ALL.iter().map(|kernel| (kernel.file(), kernel.image().len())).collect();
        files.sort_unstable();
        files.dedup();
        let bytes: usize = files.iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes < 1_000_000, "{bytes} bytes of compiled kernels");
    }
}
