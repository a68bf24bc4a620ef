//! The numbers of sequences as the functions of a statement ask for them.

use std::fmt::Debug;
use std::sync::Arc;

use catalog::{Sequence, SequencePosition};
use types::Oid;

/// What gives a session its numbers. They are given at once: no transaction takes one back.
pub trait SequenceNumbers: Debug + Send + Sync {
    /// The next `count` numbers; `None` where the sequence ends before. The last one is the session's current number.
    fn next(&self, sequence: &Arc<Sequence>, count: usize) -> Option<Vec<i64>>;

    /// Makes the sequence go on from `value`, with the one after it if that counts as given.
    fn set(&self, sequence: &Arc<Sequence>, value: i64, is_called: bool);

    /// How far the sequence has come.
    fn position(&self, sequence: &Sequence) -> SequencePosition;

    /// The number that the session was given last from the sequence.
    fn current(&self, sequence: Oid) -> Option<i64>;

    /// The sequence that the session was given a number from last, with the number.
    fn last(&self) -> Option<(Oid, i64)>;
}

/// Sequences that give nothing, for tests and tools.
#[derive(Debug, Default)]
pub struct NoNumbers;

impl SequenceNumbers for NoNumbers {
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
