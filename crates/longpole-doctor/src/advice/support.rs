//! Which tools know which GPU.
//!
//! A compute capability is known from the CUDA toolkit on whose compiler first accepts it, and the Nsight Compute of the same release is the first
//! that profiles it. Sources: the release notes of the CUDA toolkit (compiler) and the release history of Nsight Compute, which names the
//! toolkit of each version.

use crate::facts::Version;

/// The first release that knows a compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    compute: [u32; 2],
    cuda: [u32; 2],
    ncu: [u32; 2],
}

impl Support {
    /// The first CUDA, with its CUPTI.
    pub fn cuda(self) -> Version {
        Version::of(&self.cuda)
    }

    /// The first Nsight Compute.
    pub fn ncu(self) -> Version {
        Version::of(&self.ncu)
    }
}

const fn row(compute: [u32; 2], cuda: [u32; 2], ncu: [u32; 2]) -> Support {
    Support { compute, cuda, ncu }
}

/// By compute capability. Older ones are known to everything that is in use.
const TABLE: [Support; 11] = [
    row([8, 0], [11, 0], [2020, 1]),
    row([8, 6], [11, 1], [2020, 2]),
    row([8, 7], [11, 4], [2021, 2]),
    row([8, 9], [11, 8], [2022, 3]),
    row([9, 0], [11, 8], [2022, 3]),
    row([10, 0], [12, 8], [2025, 1]),
    row([10, 1], [12, 8], [2025, 1]),
    row([10, 3], [12, 9], [2025, 2]),
    row([11, 0], [13, 0], [2025, 3]),
    row([12, 0], [12, 8], [2025, 1]),
    row([12, 1], [12, 9], [2025, 2]),
];

/// What a compute capability needs. One that is not in the table needs at least what the one before it does.
pub fn needed(compute: &Version) -> Option<Support> {
    TABLE.into_iter().rev().find(|row| Version::of(&row.compute) <= compute.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gpu_needs_the_release_that_brought_it() {
        let ncu = |compute: [u32; 2]| needed(&Version::of(&compute)).map(|support| support.ncu().to_string());
        assert_eq!(ncu([7, 5]), None);
        assert_eq!(ncu([9, 0]).as_deref(), Some("2022.3"));
        assert_eq!(ncu([12, 0]).as_deref(), Some("2025.1"));
        assert_eq!(ncu([12, 5]).as_deref(), Some("2025.2"));
        assert!(TABLE.windows(2).all(|pair| pair[0].compute < pair[1].compute));
    }
}
