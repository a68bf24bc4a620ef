//! Errors of encoding and decoding blocks.

/// Failure to encode or decode a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a valid block.
    #[error("damaged block or dictionary: {0}")]
    Damaged(&'static str),
    /// Another version wrote the block: the column has to be encoded again from its shard.
    #[error("block has format version {0}, which this version of Kiln cannot read")]
    UnsupportedVersion(u16),
    /// The values exceed a limit of a block or dictionary.
    #[error("values do not fit into a block: {0}")]
    TooLarge(&'static str),
    /// The block's values have another type than the caller requested.
    #[error("the block's values have another type than the caller requested")]
    TypeMismatch,
}

/// Result of encoding or decoding a block.
pub type Result<T> = std::result::Result<T, Error>;
