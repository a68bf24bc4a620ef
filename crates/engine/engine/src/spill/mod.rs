//! Spilling: hash partitioning of rows ([`HashPartitioning`]) and their encoding in spill files ([`encode`],
//! [`decode`]).
//!
//! Rows with equal keys are in the same partition, on both sides of a join and in whatever form their columns are. A
//! partition of the build side therefore only joins the same partition of the probe side, and all rows of a group are
//! in one partition.
//!
//! - `hash_partitioning.rs`: divides rows into hash partitions.
//! - `encode.rs`: encodes batches; `decode.rs`: decodes them.
//! - `integer_encoding.rs`: integers with frame-of-reference compression.
//! - `opaque_arrays.rs`: arrays of other types.

mod decode;
mod encode;
mod hash_partitioning;
mod integer_encoding;
mod opaque_arrays;

#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::encode;
pub use hash_partitioning::{HashPartitioning, PARTITION_LEVELS, PARTITIONS};

/// Column kinds, as they are encoded.
mod column_kind {
    pub(super) const BOOLS: u8 = 0;
    pub(super) const INTS: u8 = 1;
    pub(super) const WIDE_INTS: u8 = 2;
    pub(super) const FLOATS: u8 = 3;
    pub(super) const TEXTS: u8 = 4;
    pub(super) const CODES: u8 = 5;
    pub(super) const OPAQUE: u8 = 6;
}
