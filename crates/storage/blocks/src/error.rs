//! What can be wrong with a block.

/// Why a block was not written or not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are no block of this version, or were changed since they were written.
    #[error("damaged block: {0}")]
    Damaged(&'static str),
    /// Written by another version: the column has to be made again from its shard.
    #[error("block of format version {0}")]
    Version(u16),
    /// More than a block holds.
    #[error("too much for one block: {0}")]
    TooLarge(&'static str),
    /// The block holds values of another kind than was asked for.
    #[error("the block holds other values than was asked for")]
    Kind,
}

/// The result of everything here that reads or writes blocks.
pub type Result<T> = std::result::Result<T, Error>;
