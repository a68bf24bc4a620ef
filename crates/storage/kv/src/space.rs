//! Key spaces: the separate ordered maps of a store, which one batch can change together.

/// A key space: one ordered map of the store. The discriminant is the byte stored on disk: never reuse or renumber one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// Catalog objects: databases, schemas, tables, views, roles.
    Catalog = b'C',
    /// Shards of each table, with their statistics.
    Shards = b'S',
    /// Commit timestamps at which shards were removed from their tables.
    ShardEnds = b'E',
    /// Outcomes of transactions that carried a client's statement token.
    Transactions = b'T',
    /// Objects that are being uploaded and that no commit references yet.
    Uploads = b'U',
    /// Objects that no table references any more, until they are deleted from object storage.
    Garbage = b'O',
    /// Sequences and high-water marks.
    Sequences = b'Q',
    /// Metadata of the store: format, instance, last commit.
    Meta = b'm',
    /// Row store generations of each table.
    Generations = b'G',
    /// Fresh rows: those not yet flushed to Parquet.
    Rows = b'R',
    /// Secondary index entries of fresh rows.
    Indexes = b'X',
    /// Locations of rows by primary key.
    Locators = b'P',
    /// Pages of a table's long shard list.
    Manifests = b'M',
    /// Deleted rows of shards, one entry per row.
    Deletes = b'D',
    /// Delete bitmaps of shards.
    DeleteBitmaps = b'B',
    /// Superseded row versions, until they are dropped.
    Superseded = b'V',
    /// Records of the store's own writes, until they are archived to object storage.
    Log = b'L',
    /// Dropped tables that UNDROP can still restore.
    Dropped = b'K',
}

impl Space {
    /// All spaces, in the order of their bytes.
    pub const ALL: [Self; 18] = [
        Self::DeleteBitmaps,
        Self::Catalog,
        Self::Deletes,
        Self::ShardEnds,
        Self::Generations,
        Self::Dropped,
        Self::Log,
        Self::Manifests,
        Self::Garbage,
        Self::Locators,
        Self::Sequences,
        Self::Rows,
        Self::Shards,
        Self::Transactions,
        Self::Uploads,
        Self::Superseded,
        Self::Indexes,
        Self::Meta,
    ];

    /// Returns the byte that identifies the space on disk.
    #[must_use]
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// Returns the space that a byte on disk identifies; `None` for an unknown byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|space| space.byte() == byte)
    }

    /// Returns the name of the table that holds the space in a `redb` file.
    pub(crate) fn table_name(self) -> &'static str {
        match self {
            Self::Catalog => "C.2",
            Self::Shards => "S.2",
            Self::ShardEnds => "E.2",
            Self::Transactions => "T.2",
            Self::Uploads => "U.2",
            Self::Garbage => "O.2",
            Self::Sequences => "Q.2",
            Self::Meta => "m.2",
            Self::Generations => "G.2",
            Self::Rows => "R.2",
            Self::Indexes => "X.2",
            Self::Locators => "P.2",
            Self::Manifests => "M.2",
            Self::Deletes => "D.2",
            Self::DeleteBitmaps => "B.2",
            Self::Superseded => "V.2",
            Self::Log => "L.2",
            Self::Dropped => "K.2",
        }
    }

    /// Returns the name of the table that held the space in `redb` files of formats 1 and 2, without value checksums.
    pub(crate) fn unchecked_table_name(self) -> &'static str {
        match self {
            Self::Catalog => "C",
            Self::Shards => "S",
            Self::ShardEnds => "E",
            Self::Transactions => "T",
            Self::Uploads => "U",
            Self::Garbage => "O",
            Self::Sequences => "Q",
            Self::Meta => "m",
            Self::Generations => "G",
            Self::Rows => "R",
            Self::Indexes => "X",
            Self::Locators => "P",
            Self::Manifests => "M",
            Self::Deletes => "D",
            Self::DeleteBitmaps => "B",
            Self::Superseded => "V",
            Self::Log => "L",
            Self::Dropped => "K",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_space_has_its_own_byte_and_the_list_is_in_byte_order() {
        assert!(Space::ALL.windows(2).all(|pair| pair[0].byte() < pair[1].byte()));
        for space in Space::ALL {
            assert_eq!(space.unchecked_table_name().as_bytes(), [space.byte()]);
            assert_eq!(space.table_name(), format!("{}.2", space.unchecked_table_name()));
        }
    }
}
