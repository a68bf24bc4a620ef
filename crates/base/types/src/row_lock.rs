//! Row lock modes of SELECT … FOR UPDATE and similar clauses, UPDATE and DELETE.

/// Mode of a row lock, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// FOR KEY SHARE: prevents deletion and changes of key columns. Foreign key checks take it on the referenced row.
    KeyShare,
    /// FOR SHARE: prevents deletion and any change.
    Share,
    /// FOR NO KEY UPDATE: allows the owner to change non-key columns.
    NoKeyUpdate,
    /// FOR UPDATE: allows the owner to change any column and to delete the row.
    Update,
}

/// Behavior on a row that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LockWait {
    /// Wait for the lock.
    #[default]
    Block,
    /// Fail with `55P03`.
    NoWait,
    /// Skip the row.
    SkipLocked,
}

impl LockMode {
    /// Whether this mode is compatible with a lock in mode `held` of another transaction.
    #[must_use]
    pub fn is_compatible_with(self, held: LockMode) -> bool {
        match (self.min(held), self.max(held)) {
            (LockMode::KeyShare, stronger) => stronger != LockMode::Update,
            (weaker, stronger) => (weaker, stronger) == (LockMode::Share, LockMode::Share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{self, KeyShare, NoKeyUpdate, Share, Update};

    #[test]
    fn modes_conflict_as_in_postgresql() {
        let goes = |a: LockMode| {
            [KeyShare, Share, NoKeyUpdate, Update].map(|b| (a.is_compatible_with(b), b.is_compatible_with(a)))
        };
        assert_eq!(goes(KeyShare).map(|(it, _)| it), [true, true, true, false]);
        assert_eq!(goes(Share).map(|(it, _)| it), [true, true, false, false]);
        assert_eq!(goes(NoKeyUpdate).map(|(it, _)| it), [true, false, false, false]);
        assert_eq!(goes(Update).map(|(it, _)| it), [false; 4]);
        assert!([KeyShare, Share, NoKeyUpdate, Update].iter().all(|mode| goes(*mode).iter().all(|(a, b)| a == b)));
    }
}
