//! Number generators of sequences: numbers are allocated in memory below a durable mark. Allocation is not
//! transactional: a rollback returns no number, and no transaction waits for another.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::{CatalogState, Sequence, SequencePosition};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use parking_lot::Mutex;
use types::Oid;

use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Numbers that one durable write reserves beyond the requested ones, as in PostgreSQL; a crash skips at most as many.
const NUMBERS_PER_RESERVATION: i64 = 32;

/// Prefix of the counters' keys, which share the space with the marks of id allocators.
const COUNTER_KEY_PREFIX: &[u8] = b"counter";

/// The end of a sequence that does not cycle.
#[derive(Debug, thiserror::Error)]
#[error("the sequence has reached its last number")]
pub struct SequenceExhausted;

/// Counters of all sequences.
#[derive(Debug)]
pub(crate) struct SequenceCounters {
    /// Counters by [`Sequence::counter`], each with its own lock, so that a durable write for one does not block the
    /// others.
    counters: Mutex<HashMap<Oid, Arc<Mutex<Counter>>>>,
}

#[derive(Debug)]
struct Counter {
    position: SequencePosition,
    /// Definition for which `prepaid` was computed.
    prepaid_for: Option<Arc<Sequence>>,
}

impl SequenceCounters {
    /// Restores the counters from the store and deletes those of sequences that neither exist nor can be restored.
    pub(crate) fn recover(kv: &dyn TxKv, state: &CatalogState) -> Result<Self> {
        let known: HashSet<Oid> = state.sequences().map(|sequence| sequence.counter).collect();
        let mut counters = HashMap::new();
        // UNDROP restores a table's sequences with it.
        let may_come_back =
            kv.scan(Space::DroppedTables, KeyRange::all(), Direction::Forward)?.next().transpose()?.is_some();
        let mut forgotten = Batch::new();
        for entry in kv.scan(Space::Sequences, KeyRange::prefix(COUNTER_KEY_PREFIX), Direction::Forward)? {
            let (key, value) = entry?;
            let oid = read_key(&key)?;
            if !known.contains(&oid) && !may_come_back {
                forgotten.delete(Space::Sequences, key);
                continue;
            }
            let (last_value, is_called) = read_value(&value)?;
            let position = SequencePosition { last_value, is_called, prepaid: 0 };
            counters.insert(oid, Arc::new(Mutex::new(Counter { position, prepaid_for: None })));
        }
        if !forgotten.is_empty() {
            kv.write(forgotten)?;
        }
        Ok(Self { counters: Mutex::new(counters) })
    }

    /// Appends the next `count` numbers to `numbers`; waits for a durable write if they exceed the mark. At the end of
    /// the sequence, the numbers up to it are consumed.
    pub(crate) fn allocate(
        &self,
        kv: &dyn TxKv,
        sequence: &Arc<Sequence>,
        count: usize,
        numbers: &mut Vec<i64>,
    ) -> kv::Result<std::result::Result<(), SequenceExhausted>> {
        let counter = self.counter(sequence);
        let mut counter = counter.lock();
        let mut after = counter.position;
        let mut outcome = Ok(());
        for _ in 0..count {
            let Some(number) = next_value(sequence, &after) else {
                outcome = Err(SequenceExhausted);
                break;
            };
            (after.last_value, after.is_called) = (number, true);
            after.prepaid -= 1;
            numbers.push(number);
        }
        let is_paid = after.prepaid >= 0 && counter.prepaid_for.as_deref() == Some(&**sequence);
        if !is_paid && after != counter.position {
            let ahead = NUMBERS_PER_RESERVATION.max(sequence.cache - 1);
            let mut mark = after;
            for _ in 0..ahead {
                let Some(number) = next_value(sequence, &mark) else { break };
                mark.last_value = number;
            }
            kv.write(counter_batch(sequence.counter, mark.last_value, true))?;
            after.prepaid = ahead;
            counter.prepaid_for = Some(Arc::clone(sequence));
        }
        counter.position = after;
        Ok(outcome)
    }

    /// Sets the counter as `setval` does: the next number is the one after `value` if `is_called`, else `value` itself.
    /// Durable on return.
    pub(crate) fn set(&self, kv: &dyn TxKv, sequence: &Arc<Sequence>, value: i64, is_called: bool) -> kv::Result<()> {
        let counter = self.counter(sequence);
        let mut counter = counter.lock();
        kv.write(counter_batch(sequence.counter, value, is_called))?;
        *counter =
            Counter { position: SequencePosition { last_value: value, is_called, prepaid: 0 }, prepaid_for: None };
        Ok(())
    }

    pub(crate) fn position(&self, sequence: &Sequence) -> SequencePosition {
        let counter = self.counter(sequence);
        counter.lock().position
    }

    fn counter(&self, sequence: &Sequence) -> Arc<Mutex<Counter>> {
        let begin = || {
            let position = SequencePosition { last_value: sequence.begins, is_called: false, prepaid: 0 };
            Arc::new(Mutex::new(Counter { position, prepaid_for: None }))
        };
        Arc::clone(self.counters.lock().entry(sequence.counter).or_insert_with(begin))
    }
}

fn next_value(sequence: &Sequence, position: &SequencePosition) -> Option<i64> {
    if position.is_called { sequence.after(position.last_value) } else { Some(position.last_value) }
}

fn counter_batch(counter: Oid, last_value: i64, is_called: bool) -> Batch {
    let key = [COUNTER_KEY_PREFIX, &counter.0.to_be_bytes()].concat();
    let mut value = vec![u8::from(is_called)];
    value.extend(last_value.to_be_bytes());
    let mut batch = Batch::new();
    batch.put(Space::Sequences, key, value);
    batch
}

fn read_key(key: &[u8]) -> Result<Oid> {
    let number = key.strip_prefix(COUNTER_KEY_PREFIX).and_then(|number| <[u8; 4]>::try_from(number).ok());
    number.map(|number| Oid(u32::from_be_bytes(number))).ok_or(Error::Damaged { what: "counter of a sequence" })
}

fn read_value(value: &[u8]) -> Result<(i64, bool)> {
    let damaged = || Error::Damaged { what: "counter of a sequence" };
    let (&called, number) = value.split_first().ok_or_else(damaged)?;
    let number = <[u8; 8]>::try_from(number).map_err(|_| damaged())?;
    Ok((i64::from_be_bytes(number), called != 0))
}
