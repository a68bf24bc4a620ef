//! Lock modes and their conflict tables, as in PostgreSQL.

/// Modes of a table lock, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// Modes of a row lock, from the weakest to the strongest; each conflicts with everything that weaker ones conflict
/// with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLock {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

/// Modes of a key lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyLock {
    /// Requires the key to remain as it is: a foreign key references it.
    Shared,
    /// Adds or removes the key.
    Exclusive,
}

/// A mode of any lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    Table(TableLock),
    Row(RowLock),
    Key(KeyLock),
}

/// Lock mode as bit sets, for fast conflict checks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModeBits {
    /// The mode's own bit.
    pub(super) bit: u8,
    /// Modes that conflict if another transaction holds them.
    pub(super) conflicts: u8,
    /// Modes that include the requested one if the transaction holds them already.
    pub(super) covered_by: u8,
}

impl TableLock {
    /// All modes, weakest first.
    pub const ALL: [TableLock; 8] = [
        TableLock::AccessShare,
        TableLock::RowShare,
        TableLock::RowExclusive,
        TableLock::ShareUpdateExclusive,
        TableLock::Share,
        TableLock::ShareRowExclusive,
        TableLock::Exclusive,
        TableLock::AccessExclusive,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(super) const fn mode_bits(self) -> ModeBits {
        let conflicts = match self {
            TableLock::AccessShare => 0b1000_0000,
            TableLock::RowShare => 0b1100_0000,
            TableLock::RowExclusive => 0b1111_0000,
            TableLock::ShareUpdateExclusive => 0b1111_1000,
            TableLock::Share => 0b1110_1100,
            TableLock::ShareRowExclusive => 0b1111_1100,
            TableLock::Exclusive => 0b1111_1110,
            TableLock::AccessExclusive => 0b1111_1111,
        };
        // Table modes do not include each other: `pg_locks` shows each acquired mode.
        ModeBits { bit: self.bit(), conflicts, covered_by: self.bit() }
    }
}

impl RowLock {
    /// All modes, weakest first.
    pub const ALL: [RowLock; 4] = [RowLock::KeyShare, RowLock::Share, RowLock::NoKeyUpdate, RowLock::Update];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(super) const fn mode_bits(self) -> ModeBits {
        let conflicts = match self {
            RowLock::KeyShare => 0b1000,
            RowLock::Share => 0b1100,
            RowLock::NoKeyUpdate => 0b1110,
            RowLock::Update => 0b1111,
        };
        ModeBits { bit: self.bit(), conflicts, covered_by: !(self.bit() - 1) }
    }
}

impl KeyLock {
    /// All modes, weakest first.
    pub const ALL: [KeyLock; 2] = [KeyLock::Shared, KeyLock::Exclusive];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(super) const fn mode_bits(self) -> ModeBits {
        let conflicts = match self {
            KeyLock::Shared => 0b10,
            KeyLock::Exclusive => 0b11,
        };
        ModeBits { bit: self.bit(), conflicts, covered_by: !(self.bit() - 1) }
    }
}

impl LockMode {
    /// Returns the mode's name in `pg_locks` and in PostgreSQL's messages.
    #[must_use]
    pub const fn postgres_name(self) -> &'static str {
        match self {
            LockMode::Table(TableLock::AccessShare) | LockMode::Row(RowLock::KeyShare) => "AccessShareLock",
            LockMode::Table(TableLock::RowShare) | LockMode::Row(RowLock::Share) => "RowShareLock",
            LockMode::Table(TableLock::RowExclusive) => "RowExclusiveLock",
            LockMode::Table(TableLock::ShareUpdateExclusive) => "ShareUpdateExclusiveLock",
            LockMode::Table(TableLock::Share) | LockMode::Key(KeyLock::Shared) => "ShareLock",
            LockMode::Table(TableLock::ShareRowExclusive) => "ShareRowExclusiveLock",
            LockMode::Table(TableLock::Exclusive)
            | LockMode::Row(RowLock::NoKeyUpdate)
            | LockMode::Key(KeyLock::Exclusive) => "ExclusiveLock",
            LockMode::Table(TableLock::AccessExclusive) | LockMode::Row(RowLock::Update) => "AccessExclusiveLock",
        }
    }
}
