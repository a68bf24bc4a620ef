//! Proves a cycle from the transactions' own reads, independently of the checker's graph.

use super::history::{Op, TransactionEnd, Txn};

/// Returns true if no serial order explains the reads: all are committed, each must precede the next, and the last
/// the first.
pub(super) fn is_proven(history: &[Txn], cycle: &[usize]) -> bool {
    let next = cycle.iter().cycle().skip(1);
    let mut pairs = cycle.iter().zip(next).map(|(&one, &then)| (&history[one], &history[then]));
    1 < cycle.len()
        && pairs.all(|(one, then)| then.end == TransactionEnd::Committed && comes_before(history, one, then))
}

/// Returns true if `one` must precede `then`: lists only grow, so a reader that lacks an append came before it.
fn comes_before(history: &[Txn], one: &Txn, then: &Txn) -> bool {
    let lacks_append = reads(one).any(|(key, list)| then.appends(key).any(|value| !list.contains(&value)));
    let is_seen = reads(then).any(|(key, list)| one.appends(key).any(|value| list.contains(&value)));
    lacks_append
        || is_seen
        || history.iter().any(|txn| reads(txn).any(|(key, list)| is_appended_first(key, list, one, then)))
}

/// Returns true if an append of `one` is in the list before an append of `then`.
fn is_appended_first(key: u32, list: &[u64], one: &Txn, then: &Txn) -> bool {
    let place = |txn: &Txn| txn.appends(key).find_map(|value| list.iter().position(|read| *read == value));
    place(one).zip(place(then)).is_some_and(|(before, after)| before < after)
}

fn reads(txn: &Txn) -> impl Iterator<Item = (u32, &[u64])> {
    txn.ops.iter().filter_map(|op| match op {
        Op::Read { key, list } if txn.end == TransactionEnd::Committed => Some((*key, list.as_slice())),
        _ => None,
    })
}

mod tests {
    use super::*;

    fn history(ops: Vec<Vec<Op>>) -> Vec<Txn> {
        ops.into_iter().map(|ops| Txn { ops, end: TransactionEnd::Committed }).collect()
    }

    fn read(key: u32, list: &[u64]) -> Op {
        Op::Read { key, list: list.to_vec() }
    }

    /// A reader between two writers that missed each other, as PostgreSQL 15.18 has shown at SERIALIZABLE.
    #[test]
    fn a_reader_that_closes_a_cycle_is_proof() {
        let history = history(vec![
            vec![Op::Append { key: 3, value: 6105 }, Op::Append { key: 1, value: 6108 }],
            vec![read(1, &[6063, 6095, 6108]), read(0, &[6078, 6085])],
            vec![Op::Append { key: 0, value: 6104 }, read(1, &[6063, 6095])],
        ]);
        assert!(is_proven(&history, &[0, 1, 2]));
        assert!(!is_proven(&history, &[0, 2, 1]), "the other way round they can be in an order");
    }

    #[test]
    fn transactions_with_an_order_prove_nothing() {
        let history = history(vec![
            vec![Op::Append { key: 1, value: 1 }],
            vec![read(1, &[1]), Op::Append { key: 1, value: 2 }],
            vec![read(1, &[1, 2])],
        ]);
        assert!(!is_proven(&history, &[0, 1, 2]));
        assert!(!is_proven(&history, &[0, 1]));
        assert!(!is_proven(&history, &[2]));
    }

    #[test]
    fn writes_in_a_circle_are_proven_by_who_reads_them() {
        let append = |key, value| Op::Append { key, value };
        let history = history(vec![
            vec![append(1, 1), append(2, 2)],
            vec![append(1, 3), append(2, 4)],
            vec![read(1, &[1, 3]), read(2, &[4, 2])],
        ]);
        assert!(is_proven(&history, &[0, 1]));
    }
}
