//! Just enough C++ to take a demangled name apart. Everything here accepts unbalanced brackets and any text.

/// A name with its template arguments, and what surrounds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    /// The last identifier of the path that names something.
    pub(super) name: &'a str,
    /// The named part before it.
    pub(super) outer: Option<&'a str>,
    /// The text between its angle brackets.
    pub(super) arguments: Option<&'a str>,
    /// The first argument type of the innermost lambda behind it, e.g. `c10::BFloat16` of `lambda(c10::BFloat16)#1`.
    pub(super) lambda_argument: Option<&'a str>,
}

impl<'a> Path<'a> {
    /// The template arguments that are not numbers.
    pub(super) fn types(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        split_arguments(self.arguments.unwrap_or("")).filter(|a| !is_value(a))
    }

    /// The first of them.
    pub(super) fn first_type(&self) -> Option<&'a str> {
        self.types().next()
    }

    /// The element type of a kernel template: the first floating one, since an integer before it is an index type; else
    /// the first argument, if it is a scalar type.
    pub(super) fn element(&self) -> Option<String> {
        let floating = self.types().take(4).filter_map(element_type).find(|t| t.starts_with('f') || t == "bf16");
        floating.or_else(|| self.first_type().and_then(element_type))
    }
}

fn is_value(argument: &str) -> bool {
    argument.is_empty()
        || argument.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '(')
        || matches!(argument, "true" | "false")
}

/// Tracks bracket depth; a `>` that belongs to `->` and a closing bracket too many do not count.
#[derive(Default)]
struct Depth {
    open: usize,
    previous: u8,
}

impl Depth {
    /// The depth at which `byte` stands: an opening bracket and its closing one stand outside.
    fn step(&mut self, byte: u8) -> usize {
        let at = match byte {
            b'<' | b'(' | b'[' | b'{' => {
                self.open += 1;
                self.open - 1
            }
            b'>' if self.previous == b'-' => self.open,
            b'>' | b')' | b']' | b'}' => {
                self.open = self.open.saturating_sub(1);
                self.open
            }
            _ => self.open,
        };
        self.previous = byte;
        at
    }
}

/// The text up to the bracket that closes what was open before it.
pub(super) fn until_close(text: &str) -> &str {
    let mut depth = Depth { open: 1, previous: 0 };
    let end = text.bytes().position(|b| depth.step(b) == 0);
    &text[..end.unwrap_or(text.len())]
}

/// Arguments at the outermost level, trimmed.
pub(super) fn split_arguments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let all = rest?;
        let mut depth = Depth::default();
        let comma = all.bytes().position(|b| depth.step(b) == 0 && b == b',');
        let (one, more) = comma.map_or((all, None), |at| (&all[..at], Some(&all[at + 1..])));
        rest = more;
        Some(one.trim())
    })
}

/// The last named part of a path such as `void a::b::f<int>(c::d)::{lambda(int)#1}`: here `f<int>`, with `int` as the lambda's
/// argument. Anonymous namespaces, lambdas and call operators are not named parts.
pub(super) fn last_path(text: &str) -> Option<Path<'_>> {
    let mut found: Option<Path<'_>> = None;
    let mut lambda_argument = None;
    for part in parts(text) {
        let part = part.trim();
        if let Some(lambda) = part.strip_prefix("{lambda(") {
            // An empty argument list is the wrapper of a dispatch; the innermost lambda with arguments is the kernel's.
            let argument = split_arguments(until_close(lambda)).next().filter(|a| !a.is_empty());
            lambda_argument = argument.or(lambda_argument);
            continue;
        }
        if part.starts_with(['{', '(']) || part.starts_with("operator()") {
            continue;
        }
        let part = after_return_type(part);
        let end = part.find(['<', '(']).unwrap_or(part.len());
        let name = part[..end].trim();
        if name.is_empty() {
            continue;
        }
        let arguments = part[end..].strip_prefix('<').map(until_close);
        found = Some(Path { name, outer: found.map(|path| path.name), arguments, lambda_argument: None });
    }
    found.map(|path| Path { lambda_argument, ..path })
}

/// Splits at `::` outside brackets, and stops at the arguments of the function the whole name is about.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let all = rest?;
        let mut depth = Depth::default();
        let bytes = all.as_bytes();
        let at = (0..bytes.len()).find(|&i| depth.step(bytes[i]) == 0 && bytes[i] == b':' && bytes.get(i + 1) == Some(&b':'));
        let (one, more) = at.map_or((all, None), |at| (&all[..at], Some(&all[at + 2..])));
        rest = more;
        Some(one)
    })
}

/// Drops `void ` and any other return type: what stands before the last blank outside brackets. A trailing qualifier
/// (`operator()() const`) is not a name.
fn after_return_type(part: &str) -> &str {
    let part = part.trim_end_matches(" const").trim();
    let mut depth = Depth::default();
    let mut start = 0;
    for (at, byte) in part.bytes().enumerate() {
        let level = depth.step(byte);
        if level == 0 && byte == b'(' {
            break;
        }
        if level == 0 && byte == b' ' {
            start = at + 1;
        }
    }
    &part[start..]
}

/// The short form of a scalar type: `bf16`, `f32`, `i64`. `None` for anything else.
pub(super) fn element_type(of: &str) -> Option<String> {
    let of = of.trim().trim_end_matches(['*', '&']).trim().trim_end_matches(" const").trim_start_matches("const ").trim();
    if let Some(path) = last_path(of).filter(|path| path.name == "OpaqueType") {
        let size = path.arguments.unwrap_or("");
        let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
        return (!digits.is_empty() && digits.len() <= 3).then(|| format!("{digits}B"));
    }
    if let Some(inner) = of.strip_prefix("c10::complex<") {
        return element_type(until_close(inner)).map(|t| format!("complex {t}"));
    }
    let short = match of {
        "c10::BFloat16" | "at::BFloat16" | "__nv_bfloat16" | "nv_bfloat16" | "__hip_bfloat16" | "hip_bfloat16" | "cutlass::bfloat16_t" => {
            "bf16"
        }
        "c10::Half" | "at::Half" | "__half" | "half" | "cutlass::half_t" => "f16",
        "float" => "f32",
        "double" => "f64",
        "c10::Float8_e4m3fn" | "__nv_fp8_e4m3" | "cutlass::float_e4m3_t" => "f8e4m3",
        "c10::Float8_e5m2" | "__nv_fp8_e5m2" | "cutlass::float_e5m2_t" => "f8e5m2",
        "c10::Float8_e4m3fnuz" => "f8e4m3fnuz",
        "long" | "long long" | "int64_t" => "i64",
        "int" | "int32_t" => "i32",
        "short" | "int16_t" => "i16",
        "signed char" | "char" | "int8_t" => "i8",
        "unsigned long" | "unsigned long long" | "uint64_t" => "u64",
        "unsigned int" | "uint32_t" => "u32",
        "unsigned short" | "uint16_t" => "u16",
        "unsigned char" | "uint8_t" => "u8",
        "bool" => "bool",
        _ => return None,
    };
    Some(short.to_owned())
}
