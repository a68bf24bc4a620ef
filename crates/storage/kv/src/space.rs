//! The key spaces: ordered maps side by side that one batch writes together.

/// One ordered map of the store. The discriminant is the byte stored on disk: never reuse or renumber one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// What exists: databases, schemas, tables, views, roles.
    Catalog = b'C',
    /// Which shards a table has, with their statistics.
    Shards = b'S',
    /// From when on a shard is no longer part of its table.
    ShardEnds = b'E',
    /// What became of transactions that clients have named.
    Transactions = b'T',
    /// Objects being written and not yet committed.
    Uploads = b'U',
    /// Objects no snapshot needs any more, waiting to be deleted.
    Garbage = b'O',
    /// Sequences and high-water marks.
    Sequences = b'Q',
    /// Facts about the store itself: format, instance, last commit.
    Meta = b'm',
    /// Row store generations of a table.
    Generations = b'G',
    /// Fresh rows.
    Rows = b'R',
    /// Secondary index entries of fresh rows.
    Indexes = b'X',
    /// Where the row of a primary key lives.
    Locators = b'P',
    /// Pages of a table's long shard list.
    Manifests = b'M',
    /// Deleted rows of a shard, one entry each.
    Deletes = b'D',
    /// Deleted rows of a shard, as bitmaps.
    DeleteBitmaps = b'B',
    /// Superseded row versions waiting to be dropped.
    Superseded = b'V',
    /// What was written, until it has been copied elsewhere.
    Log = b'L',
    /// Tables that were dropped and can still be brought back.
    Dropped = b'K',
}

impl Space {
    /// Every space, in the order of its byte.
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

    /// The byte that stands for this space on disk.
    #[must_use]
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// The space that a byte on disk stands for.
    #[must_use]
    pub fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|space| space.byte() == byte)
    }

    /// The name of the table that holds this space in a `redb` file.
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

    /// The name of the table that held this space in a `redb` file before values had checksums.
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
