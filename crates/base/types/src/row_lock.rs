//! How rows are locked: what SELECT … FOR UPDATE and its like ask for, and what UPDATE and DELETE take.

/// How strong a lock on a row is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// The row stays, and its keys stay as they are: what a referring row asks of the one it refers to.
    KeyShare,
    /// The row stays as it is.
    Share,
    /// Columns other than keys may change.
    NoKeyUpdate,
    /// The row may change and go.
    Update,
}

/// What to do about a row that someone else has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LockWait {
    /// Wait for it.
    #[default]
    Block,
    /// Fail with `55P03`.
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

impl LockMode {
    /// Whether a row can be locked so while another transaction has locked it in mode `held`.
    #[must_use]
    pub fn goes_with(self, held: LockMode) -> bool {
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
        let goes = |a: LockMode| [KeyShare, Share, NoKeyUpdate, Update].map(|b| (a.goes_with(b), b.goes_with(a)));
        assert_eq!(goes(KeyShare).map(|(it, _)| it), [true, true, true, false]);
        assert_eq!(goes(Share).map(|(it, _)| it), [true, true, false, false]);
        assert_eq!(goes(NoKeyUpdate).map(|(it, _)| it), [true, false, false, false]);
        assert_eq!(goes(Update).map(|(it, _)| it), [false; 4]);
        assert!([KeyShare, Share, NoKeyUpdate, Update].iter().all(|mode| goes(*mode).iter().all(|(a, b)| a == b)));
    }
}
