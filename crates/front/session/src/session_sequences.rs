//! Sequence numbers of a session: the state behind `nextval`, `setval`, `currval` and `lastval`. A rollback does not
//! reset it.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{Sequence, SequencePosition};
use parking_lot::Mutex;
use session_context::SequenceNumbers;
use txn::Transactions;
use types::Oid;

/// Sequence numbers of one session.
#[derive(Debug)]
pub(crate) struct SessionSequences {
    transactions: Arc<Transactions>,
    last_values: Mutex<LastSequenceValues>,
}

/// Numbers that `currval` and `lastval` return.
#[derive(Debug, Default)]
struct LastSequenceValues {
    current: HashMap<Oid, i64>,
    last: Option<Oid>,
}

impl SessionSequences {
    pub(crate) fn new(transactions: Arc<Transactions>) -> Self {
        Self { transactions, last_values: Mutex::default() }
    }

    /// Forgets all numbers of the session: DISCARD SEQUENCES.
    pub(crate) fn forget(&self) {
        *self.last_values.lock() = LastSequenceValues::default();
    }
}

impl SequenceNumbers for SessionSequences {
    fn next(&self, sequence: &Arc<Sequence>, count: usize) -> Option<Vec<i64>> {
        let mut numbers = Vec::with_capacity(count);
        let outcome = self.transactions.next_sequence_numbers(sequence, count, &mut numbers);
        if let Some(&number) = numbers.last() {
            let mut given = self.last_values.lock();
            given.current.insert(sequence.oid, number);
            given.last = Some(sequence.oid);
        }
        outcome.ok().map(|()| numbers)
    }

    fn set(&self, sequence: &Arc<Sequence>, value: i64, is_called: bool) {
        self.transactions.set_sequence(sequence, value, is_called);
        if is_called {
            self.last_values.lock().current.insert(sequence.oid, value);
        }
    }

    fn position(&self, sequence: &Sequence) -> SequencePosition {
        self.transactions.sequence_position(sequence)
    }

    fn current(&self, sequence: Oid) -> Option<i64> {
        self.last_values.lock().current.get(&sequence).copied()
    }

    fn last(&self) -> Option<(Oid, i64)> {
        let given = self.last_values.lock();
        given.last.and_then(|oid| Some((oid, *given.current.get(&oid)?)))
    }
}
