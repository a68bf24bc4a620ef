//! What clients did and saw: transactions of appends to lists and reads of them.

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// A number that is appended nowhere else.
    Append {
        key: u32,
        value: u64,
    },
    Read {
        key: u32,
        list: Vec<u64>,
    },
}

/// How a transaction ended, as its client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Committed,
    Aborted,
    /// The connection broke at COMMIT: only the server knows.
    Unknown,
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Txn {
    pub(super) ops: Vec<Op>,
    pub(super) end: End,
}

impl Txn {
    /// Its appends to `key`, in order.
    pub(super) fn appends(&self, key: u32) -> impl Iterator<Item = u64> + '_ {
        self.ops.iter().filter_map(move |op| match op {
            Op::Append { key: to, value } if *to == key => Some(*value),
            _ => None,
        })
    }
}
