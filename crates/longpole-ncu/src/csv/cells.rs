//! Cells that are neither numbers nor plain text.

use crate::nvtx::NvtxRange;

/// Sizes as `(128, 1, 1)`.
pub(super) fn dimensions(text: &str) -> Option<[u64; 3]> {
    let mut sizes = text.trim().strip_prefix('(')?.strip_suffix(')')?.split(',').map(|size| size.trim().parse().ok());
    let [x, y, z] = [sizes.next()??, sizes.next()??, sizes.next()??];
    sizes.next().is_none().then_some([x, y, z])
}

/// NVTX ranges, as `740  "<default domain>:decode_step:none:none:none:none:none:none"`: a number, then each range in quotes
/// with its domain in front and six attributes behind its name.
pub(super) fn nvtx_ranges(text: &str) -> Vec<NvtxRange> {
    let range = |quoted: &str| {
        let (domain, rest) = quoted.split_once(':')?;
        let mut parts: Vec<&str> = rest.rsplitn(7, ':').collect();
        let name = if parts.len() == 7 { parts.pop()? } else { rest };
        let domain = (!domain.is_empty() && domain != "<default domain>").then(|| domain.to_owned());
        Some(NvtxRange { name: name.to_owned(), domain })
    };
    text.split('"').skip(1).step_by(2).filter_map(range).collect()
}

/// A kernel's name without its result, its namespaces, its templates and its parameters.
pub(super) fn function_of(name: &str) -> Option<String> {
    let mut end = name.len();
    let mut angle_is_namespace = false;
    for (at, c) in name.char_indices() {
        match c {
            '<' if name[at..].starts_with("<unnamed>") => angle_is_namespace = true,
            '>' if angle_is_namespace => angle_is_namespace = false,
            '<' | '(' if at > 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let path = name.get(..end)?.trim_end();
    let last = path.rsplit("::").next()?.rsplit(' ').next()?;
    (!last.is_empty()).then(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_three_numbers() {
        assert_eq!(dimensions("(128, 2, 1)"), Some([128, 2, 1]));
        for text in ["", "128", "(1, 2)", "(1, 2, 3, 4)", "(a, 1, 1)", "(-1, 1, 1)"] {
            assert_eq!(dimensions(text), None, "{text}");
        }
    }

    #[test]
    fn ranges_have_domains_and_names() {
        let text = r#"740  "<default domain>:decode_step:none:none:none:none:none:none" "NCCL:a:b:none:none:none:none:none:none" "#;
        let range = |name: &str, domain: Option<&str>| NvtxRange { name: name.to_owned(), domain: domain.map(str::to_owned) };
        assert_eq!(nvtx_ranges(text), [range("decode_step", None), range("a:b", Some("NCCL"))]);
        assert_eq!(nvtx_ranges(""), []);
        assert_eq!(nvtx_ranges("\"x:y"), [range("y", Some("x"))]);
    }

    #[test]
    fn functions_are_the_last_part_of_a_name() {
        let cases = [
            ("scale(float *, int, float)", "scale"),
            ("nvjet_tst_64x8", "nvjet_tst_64x8"),
            ("void at::native::vectorized_elementwise_kernel<4, at::f(int)::[lambda()]>(int, T2)", "vectorized_elementwise_kernel"),
            ("void at::<unnamed>::indexSelectSmallIndex<long, 2>(T1)", "indexSelectSmallIndex"),
            ("void <unnamed>::with_index<int>(T)", "with_index"),
        ];
        for (name, function) in cases {
            assert_eq!(function_of(name).as_deref(), Some(function), "{name}");
        }
        assert_eq!(function_of(""), None);
    }
}
