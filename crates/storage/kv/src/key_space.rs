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
    PendingUploads = b'U',
    /// Objects that no table references any more, until they are deleted from object storage.
    GarbageObjects = b'O',
    /// Sequences and high-water marks.
    Sequences = b'Q',
    /// Metadata of the store: format, instance, last commit.
    StoreMetadata = b'm',
    /// Row store generations of each table.
    RowStoreGenerations = b'G',
    /// Rows that are not yet flushed to Parquet.
    UnflushedRows = b'R',
    /// Secondary index entries of unflushed rows.
    IndexEntries = b'X',
    /// Locations of rows by primary key.
    RowLocators = b'P',
    /// Pages of a table's long shard list.
    Manifests = b'M',
    /// Deleted rows of shards, one entry per row.
    DeletedRows = b'D',
    /// Delete bitmaps of shards.
    DeleteBitmaps = b'B',
    /// Superseded row versions, until they are dropped.
    SupersededRows = b'V',
    /// Records of the store's own writes, until they are archived to object storage.
    LogicalLog = b'L',
    /// Dropped tables that UNDROP can still restore.
    DroppedTables = b'K',
}

impl Space {
    /// All spaces, in the order of their bytes.
    pub const ALL: [Self; 18] = [
        Self::DeleteBitmaps,
        Self::Catalog,
        Self::DeletedRows,
        Self::ShardEnds,
        Self::RowStoreGenerations,
        Self::DroppedTables,
        Self::LogicalLog,
        Self::Manifests,
        Self::GarbageObjects,
        Self::RowLocators,
        Self::Sequences,
        Self::UnflushedRows,
        Self::Shards,
        Self::Transactions,
        Self::PendingUploads,
        Self::SupersededRows,
        Self::IndexEntries,
        Self::StoreMetadata,
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
            Self::PendingUploads => "U.2",
            Self::GarbageObjects => "O.2",
            Self::Sequences => "Q.2",
            Self::StoreMetadata => "m.2",
            Self::RowStoreGenerations => "G.2",
            Self::UnflushedRows => "R.2",
            Self::IndexEntries => "X.2",
            Self::RowLocators => "P.2",
            Self::Manifests => "M.2",
            Self::DeletedRows => "D.2",
            Self::DeleteBitmaps => "B.2",
            Self::SupersededRows => "V.2",
            Self::LogicalLog => "L.2",
            Self::DroppedTables => "K.2",
        }
    }

    /// Returns the name of the table that held the space in `redb` files of formats 1 and 2, without value checksums.
    pub(crate) fn unchecked_table_name(self) -> &'static str {
        match self {
            Self::Catalog => "C",
            Self::Shards => "S",
            Self::ShardEnds => "E",
            Self::Transactions => "T",
            Self::PendingUploads => "U",
            Self::GarbageObjects => "O",
            Self::Sequences => "Q",
            Self::StoreMetadata => "m",
            Self::RowStoreGenerations => "G",
            Self::UnflushedRows => "R",
            Self::IndexEntries => "X",
            Self::RowLocators => "P",
            Self::Manifests => "M",
            Self::DeletedRows => "D",
            Self::DeleteBitmaps => "B",
            Self::SupersededRows => "V",
            Self::LogicalLog => "L",
            Self::DroppedTables => "K",
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
