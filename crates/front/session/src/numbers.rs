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
pub(crate) struct Numbers {
    transactions: Arc<Transactions>,
    given: Mutex<Given>,
}

/// Numbers that `currval` and `lastval` return.
#[derive(Debug, Default)]
struct Given {
    current: HashMap<Oid, i64>,
    last: Option<Oid>,
}

impl Numbers {
    pub(crate) fn new(transactions: Arc<Transactions>) -> Self {
        Self { transactions, given: Mutex::default() }
    }

    /// Forgets all numbers of the session: DISCARD SEQUENCES.
    pub(crate) fn forget(&self) {
        *self.given.lock() = Given::default();
    }
}

impl SequenceNumbers for Numbers {
    fn next(&self, sequence: &Arc<Sequence>, count: usize) -> Option<Vec<i64>> {
        let mut numbers = Vec::with_capacity(count);
        let outcome = self.transactions.next_numbers(sequence, count, &mut numbers);
        if let Some(&number) = numbers.last() {
            let mut given = self.given.lock();
            given.current.insert(sequence.oid, number);
            given.last = Some(sequence.oid);
        }
        outcome.ok().map(|()| numbers)
    }

    fn set(&self, sequence: &Arc<Sequence>, value: i64, is_called: bool) {
        self.transactions.set_sequence(sequence, value, is_called);
        if is_called {
            self.given.lock().current.insert(sequence.oid, value);
        }
    }

    fn position(&self, sequence: &Sequence) -> SequencePosition {
        self.transactions.sequence_position(sequence)
    }

    fn current(&self, sequence: Oid) -> Option<i64> {
        self.given.lock().current.get(&sequence).copied()
    }

    fn last(&self) -> Option<(Oid, i64)> {
        let given = self.given.lock();
        given.last.and_then(|oid| Some((oid, *given.current.get(&oid)?)))
    }
}
