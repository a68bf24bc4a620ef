//! The interface to the numbers of sequences, for `nextval` and its siblings.

use std::fmt::Debug;
use std::sync::Arc;

use catalog::{Sequence, SequencePosition};
use types::Oid;

/// Source of a session's sequence numbers. Numbers are consumed at once: a rollback does not return them.
pub trait SequenceNumbers: Debug + Send + Sync {
    /// Consumes the next `count` numbers, the last of which becomes the session's current one; `None` if the sequence
    /// ends before.
    fn next(&self, sequence: &Arc<Sequence>, count: usize) -> Option<Vec<i64>>;

    /// Sets the sequence to `value`; the next number is the one after it if `is_called`.
    fn set(&self, sequence: &Arc<Sequence>, value: i64, is_called: bool);

    /// Returns the present position of the sequence.
    fn position(&self, sequence: &Sequence) -> SequencePosition;

    /// Returns the session's last number of the sequence (`currval`).
    fn current(&self, sequence: Oid) -> Option<i64>;

    /// Returns the sequence that the session used last, with its number (`lastval`).
    fn last(&self) -> Option<(Oid, i64)>;
}

/// Source without any numbers, for tests and tools.
#[derive(Debug, Default)]
pub struct NoSequenceNumbers;

impl SequenceNumbers for NoSequenceNumbers {
    fn next(&self, _sequence: &Arc<Sequence>, _count: usize) -> Option<Vec<i64>> {
        None
    }

    fn set(&self, _sequence: &Arc<Sequence>, _value: i64, _is_called: bool) {}

    fn position(&self, sequence: &Sequence) -> SequencePosition {
        SequencePosition { last_value: sequence.begins, is_called: false, prepaid: 0 }
    }

    fn current(&self, _sequence: Oid) -> Option<i64> {
        None
    }

    fn last(&self) -> Option<(Oid, i64)> {
        None
    }
}
