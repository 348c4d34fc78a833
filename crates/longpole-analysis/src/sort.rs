//! The sort keys of torch's `key_averages().table(sort_by=...)`, in both spellings.

use std::str::FromStr;

/// What a table is sorted by, largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// `cuda_time_total` (`device_time_total`).
    #[default]
    CudaTimeTotal,
    /// `self_cuda_time_total` (`self_device_time_total`).
    SelfCudaTimeTotal,
    /// `cpu_time_total`.
    CpuTimeTotal,
    /// `self_cpu_time_total`.
    SelfCpuTimeTotal,
    /// `count`.
    Count,
    /// `cuda_memory_usage` (`device_memory_usage`).
    CudaMemoryUsage,
    /// `cpu_memory_usage`.
    CpuMemoryUsage,
    /// `self_cuda_memory_usage` (`self_device_memory_usage`).
    SelfCudaMemoryUsage,
    /// `self_cpu_memory_usage`.
    SelfCpuMemoryUsage,
}

impl SortKey {
    /// Every key with its torch name, for help texts and error messages.
    pub const ALL: &[(&str, Self)] = &[
        ("cuda_time_total", Self::CudaTimeTotal),
        ("self_cuda_time_total", Self::SelfCudaTimeTotal),
        ("cpu_time_total", Self::CpuTimeTotal),
        ("self_cpu_time_total", Self::SelfCpuTimeTotal),
        ("count", Self::Count),
        ("cuda_memory_usage", Self::CudaMemoryUsage),
        ("cpu_memory_usage", Self::CpuMemoryUsage),
        ("self_cuda_memory_usage", Self::SelfCudaMemoryUsage),
        ("self_cpu_memory_usage", Self::SelfCpuMemoryUsage),
    ];
}

impl FromStr for SortKey {
    type Err = String;

    /// Accepts torch's names, with `device`, `xpu` or `privateuse1` in place of `cuda`.
    fn from_str(text: &str) -> Result<Self, String> {
        let name = ["device", "xpu", "privateuse1"].iter().fold(text.to_owned(), |name, other| name.replace(other, "cuda"));
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, key)| key).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("unknown sort key `{text}`; use one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SortKey;

    #[test]
    fn both_spellings_name_the_same_key() {
        for (name, key) in SortKey::ALL {
            assert_eq!(name.parse(), Ok(*key));
            assert_eq!(name.replace("cuda", "device").parse(), Ok(*key));
            assert_eq!(name.replace("cuda", "xpu").parse(), Ok(*key));
        }
        let error = "time".parse::<SortKey>().unwrap_err();
        assert!(error.contains("`time`") && error.contains("self_cpu_time_total"), "{error}");
    }
}
