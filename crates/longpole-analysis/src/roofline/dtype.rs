//! Element types, as torch's profiler and its kernels name them.

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dtype {
    /// 64-bit float.
    F64,
    /// 32-bit float.
    F32,
    /// 16-bit float, IEEE half.
    F16,
    /// 16-bit float, bfloat16.
    Bf16,
    /// 8-bit float of any layout.
    F8,
    /// 4-bit floats, two in a byte: one element of such a tensor is that byte.
    F4x2,
    /// 64-bit integer.
    I64,
    /// 32-bit integer.
    I32,
    /// 16-bit integer.
    I16,
    /// 8-bit integer.
    I8,
    /// Truth value.
    Bool,
    /// Complex of two 16-bit floats.
    C32,
    /// Complex of two 32-bit floats.
    C64,
    /// Complex of two 64-bit floats.
    C128,
}

impl Dtype {
    /// Bytes an element takes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F8 | Self::F4x2 | Self::I8 | Self::Bool => 1,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::F32 | Self::I32 | Self::C32 => 4,
            Self::F64 | Self::I64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "fp64",
            Self::F32 => "fp32",
            Self::F16 => "fp16",
            Self::Bf16 => "bf16",
            Self::F8 => "fp8",
            Self::F4x2 => "fp4",
            Self::I64 => "int64",
            Self::I32 => "int32",
            Self::I16 => "int16",
            Self::I8 => "int8",
            Self::Bool => "bool",
            Self::C32 => "complex32",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }

    /// From a name in `Input type`: the C++ type, as the compiler of the day spells it.
    pub fn from_type_name(name: &str) -> Option<Self> {
        Some(match name {
            "double" => Self::F64,
            "float" => Self::F32,
            "c10::Half" | "__half" | "half" => Self::F16,
            "c10::BFloat16" | "__nv_bfloat16" | "nv_bfloat16" => Self::Bf16,
            "long" | "long int" | "long long" | "__int64" | "int64_t" | "unsigned long" | "unsigned long int" | "uint64_t" => Self::I64,
            "int" | "int32_t" | "unsigned int" | "uint32_t" => Self::I32,
            "short" | "short int" | "unsigned short" | "short unsigned int" => Self::I16,
            "signed char" | "unsigned char" | "char" | "int8_t" | "uint8_t" | "c10::quint8" | "c10::qint8" => Self::I8,
            "bool" => Self::Bool,
            "c10::complex<c10::Half>" => Self::C32,
            "c10::complex<float>" => Self::C64,
            "c10::complex<double>" => Self::C128,
            other if other.starts_with("c10::Float8") => Self::F8,
            other if other.starts_with("c10::Float4") => Self::F4x2,
            _ => return None,
        })
    }

    /// From a number of torch's `ScalarType` enumeration, which is how a `dtype` argument is recorded.
    pub fn from_scalar_type(number: i64) -> Option<Self> {
        Some(match number {
            0 | 1 => Self::I8,
            2 => Self::I16,
            3 => Self::I32,
            4 => Self::I64,
            5 => Self::F16,
            6 => Self::F32,
            7 => Self::F64,
            8 => Self::C32,
            9 => Self::C64,
            10 => Self::C128,
            11 => Self::Bool,
            15 => Self::Bf16,
            23..=26 | 44 => Self::F8,
            45 => Self::F4x2,
            _ => return None,
        })
    }

    /// The type a kernel's name says it works on: the first that its template arguments mention, or the width of an opaque one
    /// (`OpaqueType<2u>`), for which some type of that width stands.
    pub fn from_kernel_name(name: &str) -> Option<Self> {
        const NAMED: [(&str, Dtype); 6] = [
            ("c10::BFloat16", Dtype::Bf16),
            ("c10::Half", Dtype::F16),
            ("float", Dtype::F32),
            ("double", Dtype::F64),
            ("OpaqueType<", Dtype::I8),
            ("c10::Float8", Dtype::F8),
        ];
        let arguments = &name[name.find('<')?..];
        let first = |pattern: &str| {
            let starts_a_name = |at: usize| !arguments[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
            arguments.match_indices(pattern).map(|(at, _)| at).find(|&at| starts_a_name(at))
        };
        let (at, found) = NAMED.iter().filter_map(|&(pattern, dtype)| Some((first(pattern)?, dtype))).min_by_key(|&(at, _)| at)?;
        let Some(width) = arguments[at..].strip_prefix("OpaqueType<") else { return Some(found) };
        match width.bytes().take_while(u8::is_ascii_digit).take(3).fold(0, |all, digit| all * 10 + u32::from(digit - b'0')) {
            1 => Some(Self::I8),
            2 => Some(Self::I16),
            4 => Some(Self::I32),
            8 => Some(Self::I64),
            16 => Some(Self::C128),
            _ => None,
        }
    }

    /// 0 for truth values, 1 for integers, 2 for floats, 3 for complex.
    const fn category(self) -> u8 {
        match self {
            Self::Bool => 0,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => 1,
            Self::F4x2 | Self::F8 | Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => 2,
            Self::C32 | Self::C64 | Self::C128 => 3,
        }
    }

    /// True of floats and complex.
    pub(super) const fn is_floating(self) -> bool {
        self.category() >= 2
    }

    /// The type that torch computes an elementwise operator of two types in: the higher category wins, then the wider; half and
    /// bfloat16 meet in fp32.
    pub(super) fn promoted(self, other: Self) -> Self {
        match (self, other) {
            (Self::F16, Self::Bf16) | (Self::Bf16, Self::F16) => Self::F32,
            (Self::C64, Self::F64) | (Self::F64, Self::C64) => Self::C128,
            _ if self.category() != other.category() => {
                if self.category() > other.category() {
                    self
                } else {
                    other
                }
            }
            _ => {
                if self.bytes() >= other.bytes() {
                    self
                } else {
                    other
                }
            }
        }
    }

    /// Like [`Self::promoted`] for a tensor without dimensions (`scalar`), which counts only by its category.
    pub(super) fn promoted_by_scalar(self, scalar: Self) -> Self {
        if scalar.category() > self.category() { scalar } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::Dtype::{self, Bf16, F16, F32, I8, I16, I64};

    #[test]
    fn kernels_name_their_types() {
        for (name, want) in [
            ("void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, float>", Some(Bf16)),
            ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int>", Some(I16)),
            ("multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpScalarFunctor<float, 2>>", Some(F32)),
            ("k<my_float, int>", None),
            ("k<OpaqueType<3u>>", None),
            ("nvjet_sm90_tst_8x64", None),
        ] {
            assert_eq!(Dtype::from_kernel_name(name), want, "{name}");
        }
    }

    #[test]
    fn types_meet_as_in_torch() {
        assert_eq!(F16.promoted(Bf16), F32);
        assert_eq!(I64.promoted(F16), F16);
        assert_eq!(I8.promoted(I16), I16);
        assert_eq!(Bf16.promoted_by_scalar(F32), Bf16);
        assert_eq!(I64.promoted_by_scalar(F32), F32);
    }
}
