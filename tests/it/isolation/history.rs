//! Recorded histories: transactions of list appends and reads.

/// Operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// Append of a unique number.
    Append {
        key: u32,
        value: u64,
    },
    Read {
        key: u32,
        list: Vec<u64>,
    },
}

/// Outcome of a transaction, as reported to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionEnd {
    Committed,
    Aborted,
    /// The connection broke at COMMIT: the outcome is unknown.
    Unknown,
}

/// Recorded transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Txn {
    pub(super) ops: Vec<Op>,
    pub(super) end: TransactionEnd,
}

impl Txn {
    /// Returns its appends to `key`, in order.
    pub(super) fn appends(&self, key: u32) -> impl Iterator<Item = u64> + '_ {
        self.ops.iter().filter_map(move |op| match op {
            Op::Append { key: to, value } if *to == key => Some(*value),
            _ => None,
        })
    }
}
