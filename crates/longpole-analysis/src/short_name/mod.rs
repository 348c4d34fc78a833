//! Short, readable kernel names.
//!
//! A C++ kernel name is its whole instantiation, often a kilobyte of it. [`short_name`] keeps what tells kernels apart:
//!
//! | full name | short name |
//! |---|---|
//! | `void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, ..., MulFunctor<float> >, ...>(...)` | `elementwise<MulFunctor<bf16>>` |
//! | `void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, ...>, ...> >(...)` | `reduce<MeanOps<f32>>` |
//! | `void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(...)` | `cutlass_80_simt_sgemm_128x32_8x5_nn_align1` |
//! | `nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT` | the same |
//!
//! The rules: the return type, namespaces, argument lists and lambdas go; `_kernel` at the end goes; PyTorch's templates
//! keep their functor; CUTLASS containers keep their architecture and tile; any other template keeps its element type.
//! Names without C++ in them stay as they are, cut in the middle when long. Different names may become the same text;
//! the kernel table tells those apart with [`with_hash`], since only it knows all names.

mod cpp;
mod mangled;
mod nvidia;

pub(crate) use nvidia::gnu_spelling;

use cpp::{Path, element_type, last_path, split_arguments};

/// The most characters a short name has.
pub const MAX_CHARS: usize = 48;

/// A short, readable form of a kernel name; at most [`MAX_CHARS`] characters, never empty.
pub fn short_name(full: &str) -> String {
    // Reports are lines: control characters of damaged names must not break them.
    let is_damaged = full.trim().contains(|c: char| c.is_control());
    let clean: String = full.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = gnu_spelling(clean.trim());
    let clean = clean.as_ref();
    let short = if let Some(symbol) = clean.strip_prefix("_Z") {
        mangled::short(symbol).unwrap_or_else(|| clean.to_owned())
    } else if is_damaged || clean.contains('\\') {
        // No C++: a path, or text whose line breaks say nothing about a return type.
        plain(clean)
    } else if clean.contains(['<', '(', ' ', ':']) {
        demangled(clean).unwrap_or_else(|| clean.to_owned())
    } else {
        plain(clean)
    };
    let short = short.trim();
    if short.is_empty() { "(unnamed)".to_owned() } else { fit(short, MAX_CHARS) }
}

/// `short` with a stable mark of the full name, for tables in which two names became the same text.
pub(crate) fn with_hash(short: &str, full: &str, digits: usize) -> String {
    // FNV-1a: stable between versions and platforms, which the standard hasher is not.
    let hash = full.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let folded = if digits <= 4 { (hash >> 48) ^ (hash >> 32) ^ (hash >> 16) ^ hash } else { hash };
    let digits = digits.min(16);
    let mark = format!("{folded:016x}");
    format!("{}#{}", fit(short, MAX_CHARS.saturating_sub(digits + 1)), &mark[16 - digits..])
}

/// Cuts to `max` characters, keeping the beginning and, where the name ends in a number that tells variants apart, the end.
fn fit(name: &str, max: usize) -> String {
    let count = name.chars().count();
    if count <= max {
        return name.to_owned();
    }
    let tail_at = name.rfind('_').filter(|&at| name[at..].len() <= 8).unwrap_or(name.len());
    let tail = &name[tail_at..];
    let keep = max.saturating_sub(3 + tail.chars().count());
    let beginning: String = name.chars().take(keep).collect();
    format!("{}...{tail}", beginning.trim_end_matches('_'))
}

/// Names that are one identifier: libraries and Triton. Only two long conventions are shortened by their parts.
fn plain(name: &str) -> String {
    if name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    if name.starts_with("Cijk_") {
        // Tensile: the operand layout and type, then the macro tile.
        let parts: Vec<_> = name.split('_').collect();
        let tile = parts.iter().find(|p| p.starts_with("MT") && p.contains('x'));
        let kept = parts.iter().take(5).chain(tile);
        return kept.copied().collect::<Vec<_>>().join("_");
    }
    if name.starts_with("cudnn_generated_") {
        let noise = ["generated", "fort", "native", "knob", "kernel0"];
        let kept = name.split('_').filter(|p| !noise.contains(p) && !p.starts_with("cga") && p.parse::<u32>().is_err());
        return kept.collect::<Vec<_>>().join("_");
    }
    name.to_owned()
}

/// Names in C++ syntax.
fn demangled(name: &str) -> Option<String> {
    let path = last_path(name)?;
    let base = path.name;
    if base.contains("elementwise_kernel") && name.contains("at::native") || base == "elementwise_kernel_with_index" {
        return Some(wrap("elementwise", path.first_type().and_then(functor)));
    }
    if base == "reduce_kernel" {
        let op = path.first_type().and_then(last_path).filter(|p| p.name == "ReduceOp");
        return Some(wrap("reduce", op.and_then(|op| op.types().nth(1).and_then(functor))));
    }
    if base == "multi_tensor_apply_kernel" {
        return Some(wrap("multi_tensor_apply", path.types().nth(1).and_then(functor)));
    }
    if base.starts_with("distribution_elementwise") || base.starts_with("distribution_nullary") {
        return Some(wrap("random", path.types().nth(1).and_then(functor)));
    }
    if name.contains("cutlass") && matches!(base, "Kernel" | "Kernel2" | "device_kernel") || base == "kentry" {
        return Some(container(&path).unwrap_or_else(|| base.to_owned()));
    }
    let short = base.strip_suffix("_kernel").filter(|b| !b.is_empty()).unwrap_or(base);
    if base == "trampoline_kernel" {
        // rocPRIM: the algorithm is the function whose lambda this is.
        return Some(wrap("rocprim", rocprim_algorithm(name)));
    }
    // A name that says nothing is told by the namespace around it: `gemvx::kernel`.
    let short = match path.outer {
        Some(outer) if matches!(base, "kernel" | "Kernel" | "globalKernel") => format!("{outer}::{base}"),
        _ => short.to_owned(),
    };
    Some(wrap(&short, path.element()))
}

fn rocprim_algorithm(name: &str) -> Option<String> {
    let end = name.find("_impl<")?;
    let start = name[..end].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    Some(name[start..end].to_owned())
}

fn wrap(label: &str, inside: Option<String>) -> String {
    match inside {
        Some(inside) if !inside.is_empty() => format!("{label}<{inside}>"),
        _ => label.to_owned(),
    }
}

/// What a functor type does, with its element type: `MulFunctor<bf16>`, `neg<bf16>`, `sum_functor<f32>`.
fn functor(of: &str) -> Option<String> {
    functor_within(of, 8)
}

fn functor_within(of: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let path = last_path(of)?;
    match path.name {
        // Wrappers say nothing; what they wrap does.
        "gpu_kernel_impl" | "gpu_kernel_impl_nocast" | "gpu_index_kernel" | "func_wrapper_t" | "func_wrapper" => {
            let inner = path.types().filter(|t| element_type(t).is_none()).find_map(|t| functor_within(t, depth));
            inner.or_else(|| Some(path.name.to_owned()))
        }
        "BinaryFunctor" | "AUnaryFunctor" | "BUnaryFunctor" => {
            let inner = path.types().last().and_then(last_path)?;
            let element = path.first_type().and_then(element_type).or_else(|| inner.first_type().and_then(element_type));
            Some(wrap(function_name(inner.name), element))
        }
        name => {
            let element = path.first_type().and_then(element_type).or_else(|| path.lambda_argument.and_then(element_type));
            Some(wrap(function_name(name), element))
        }
    }
}

/// The operator in the name of the function that launches a kernel: `neg_kernel_cuda` is `neg`.
fn function_name(name: &str) -> &str {
    const ENDINGS: &[&str] = &["_kernel_cuda", "_cuda_kernel", "_kernel_impl", "_cuda_out", "_kernel", "_cuda"];
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|n| !n.is_empty()).unwrap_or(name)
}

/// CUTLASS and Composable Kernel launch everything through one entry; what ran is in its template argument.
fn container(path: &Path<'_>) -> Option<String> {
    let inner_text = path.first_type()?;
    let inner = last_path(inner_text)?;
    if inner.arguments.is_none() {
        return Some(inner.name.to_owned());
    }
    let attention = inner.name.to_ascii_lowercase();
    let base = if attention.contains("flash") || attention.contains("fmha") || attention.contains("norm") {
        inner.name.to_owned()
    } else if inner.name.contains("Gemm") {
        "cutlass_gemm".to_owned()
    } else {
        format!("cutlass_{}", inner.name)
    };
    let mut parts = vec![base];
    if let Some(at) = inner_text.find("Sm") {
        let digits: String = inner_text[at + 2..].chars().take_while(char::is_ascii_digit).collect();
        if !digits.is_empty() && !parts[0].contains(&format!("Sm{digits}")) {
            parts.push(format!("sm{digits}"));
        }
    }
    if let Some(tile) = tile_of(inner_text) {
        parts.push(tile);
    }
    Some(parts.join("_"))
}

/// The tile of a CUTLASS type: `GemmShape<128, 128, 32>` or the first tuple of three constants.
fn tile_of(text: &str) -> Option<String> {
    let numbers = |arguments: &str| {
        let sides: Vec<_> = split_arguments(arguments)
            .map(|a| a.rsplit_once('<').map_or(a, |(_, number)| number).trim_matches(|c: char| !c.is_ascii_digit()))
            .filter(|n| !n.is_empty() && n.len() <= 4 && n.bytes().all(|b| b.is_ascii_digit()))
            .collect();
        (sides.len() == 3).then(|| sides.join("x"))
    };
    ["GemmShape", "tuple"].iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| {
            let rest = text[at + marker.len()..].strip_prefix('<')?;
            numbers(cpp::until_close(rest)).filter(|tile| tile != "1x1x1")
        })
    })
}

#[cfg(test)]
mod tests;
