//! Spilling: hash partitioning of rows ([`HashPartitioning`]) and their encoding in spill files ([`encode`], [`decode`]).
//!
//! Rows with equal keys are in the same partition, on both sides of a join and in whatever form their columns are. A
//! partition of the build side therefore only joins the same partition of the probe side, and all rows of a group are
//! in one partition.
//!
//! - `partitioning.rs`: divides rows into hash partitions.
//! - `encode.rs`: encodes batches; `decode.rs`: decodes them.
//! - `bytes.rs`: integers with frame-of-reference compression.
//! - `opaque.rs`: arrays of other types.

mod bytes;
mod decode;
mod encode;
mod opaque;
mod partitioning;

#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::encode;
pub use partitioning::{HashPartitioning, PARTITION_LEVELS, PARTITIONS};

/// Column kinds, as they are encoded.
mod kind {
    pub(super) const BOOLS: u8 = 0;
    pub(super) const INTS: u8 = 1;
    pub(super) const WIDE: u8 = 2;
    pub(super) const FLOATS: u8 = 3;
    pub(super) const TEXTS: u8 = 4;
    pub(super) const CODES: u8 = 5;
    pub(super) const OPAQUE: u8 = 6;
}
