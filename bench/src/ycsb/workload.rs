//! YCSB's core workloads: the share of each operation.

use crate::random::RandomGenerator;

/// One of YCSB's core workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Only reads.
    C,
    /// 95 % reads of recently inserted rows, 5 % inserts.
    D,
    /// 95 % scans of up to a hundred rows, 5 % inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
}

/// Operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    ReadLatest,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Workload {
    pub const ALL: [Self; 6] = [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F];

    pub(super) fn draw_operation(self, random: &RandomGenerator) -> Operation {
        let draws_below = |percent: u64| random.next_below(100) < percent;
        match self {
            Self::A if draws_below(50) => Operation::Update,
            Self::B if draws_below(5) => Operation::Update,
            Self::A | Self::B | Self::C => Operation::Read,
            Self::D | Self::E if draws_below(5) => Operation::Insert,
            Self::D => Operation::ReadLatest,
            Self::E => Operation::Scan,
            Self::F if draws_below(50) => Operation::ReadModifyWrite,
            Self::F => Operation::Read,
        }
    }
}
