//! Rows that leave memory for a while: in parts by their keys ([`Parting`]), as bytes ([`encode`], [`decode`]).
//!
//! Rows whose keys are equal are in the same part, of whichever side of a join and in whatever form: a part of a join needs nothing but
//! the same part of the other side, and a group's rows are all in one part.

mod bytes;
mod decode;
mod encode;
mod opaque;
mod parting;

#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::encode;
pub use parting::{LEVELS, PARTS, Parting};

/// Kinds of columns, as bytes say them.
mod kind {
    pub(super) const BOOLS: u8 = 0;
    pub(super) const INTS: u8 = 1;
    pub(super) const WIDE: u8 = 2;
    pub(super) const FLOATS: u8 = 3;
    pub(super) const TEXTS: u8 = 4;
    pub(super) const CODES: u8 = 5;
    pub(super) const OPAQUE: u8 = 6;
}
