//! The kinds of pages that a pool may have.

use std::fmt;

/// The kind of pages that a pool has, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Explicit hugetlb pages of 1 GiB, which are tried only if the configuration names them.
    Huge1G,
    /// Explicit hugetlb pages of 2 MiB.
    Huge2M,
    /// Transparent hugepages over at least half of the pool.
    Thp,
    /// Pages of the base size, 4 KiB on x86.
    Plain,
    /// Memory of the caller, whose pages are not known.
    Caller,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Huge1G => "1 GiB hugepages",
            Self::Huge2M => "2 MiB hugepages",
            Self::Thp => "transparent hugepages",
            Self::Plain => "plain pages",
            Self::Caller => "the caller's memory",
        })
    }
}
