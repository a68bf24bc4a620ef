//! Hand-written histories with the anomalies that the checker must and must not report.

use super::check::{Anomaly, Level, check};
use super::history::{Op, TransactionEnd, Txn};

fn append(key: u32, value: u64) -> Op {
    Op::Append { key, value }
}

fn read(key: u32, list: &[u64]) -> Op {
    Op::Read { key, list: list.to_vec() }
}

fn committed(ops: Vec<Op>) -> Txn {
    Txn { ops, end: TransactionEnd::Committed }
}

fn aborted(ops: Vec<Op>) -> Txn {
    Txn { ops, end: TransactionEnd::Aborted }
}

#[track_caller]
fn finds(history: Vec<Txn>, expected: &[Anomaly]) {
    let mut found: Vec<Anomaly> =
        check(&history, Level::Serializable).into_iter().map(|(anomaly, _)| anomaly).collect();
    found.dedup();
    assert_eq!(found, expected, "{:?}", check(&history, Level::Serializable));
}

#[test]
fn a_serial_history_has_nothing() {
    finds(
        vec![
            committed(vec![append(1, 1), append(2, 2)]),
            committed(vec![read(1, &[1]), append(1, 3), read(1, &[1, 3])]),
            aborted(vec![append(1, 4)]),
            committed(vec![read(1, &[1, 3]), read(2, &[2])]),
        ],
        &[],
    );
}

#[test]
fn writes_in_a_circle_are_g0() {
    finds(
        vec![
            committed(vec![append(1, 1), append(2, 2)]),
            committed(vec![append(1, 3), append(2, 4)]),
            committed(vec![read(1, &[1, 3]), read(2, &[4, 2])]),
        ],
        &[Anomaly::G0],
    );
}

#[test]
fn an_aborted_append_that_is_seen_is_g1a() {
    finds(vec![aborted(vec![append(1, 1)]), committed(vec![read(1, &[1])])], &[Anomaly::G1a]);
}

#[test]
fn half_a_transaction_that_is_seen_is_g1b() {
    finds(
        vec![
            committed(vec![append(1, 1), append(1, 2)]),
            committed(vec![read(1, &[1])]),
            committed(vec![read(1, &[1, 2])]),
        ],
        // The reader of the first half also reads what the same transaction overwrites.
        &[Anomaly::G1b, Anomaly::GSingle],
    );
}

#[test]
fn two_that_see_each_other_are_g1c() {
    finds(
        vec![
            committed(vec![append(1, 1), read(2, &[2])]),
            committed(vec![append(2, 2), read(1, &[1])]),
            committed(vec![read(1, &[1]), read(2, &[2])]),
        ],
        &[Anomaly::G1c],
    );
}

#[test]
fn a_skewed_read_is_g_single() {
    let history = vec![
        committed(vec![append(1, 1), append(2, 2)]),
        committed(vec![read(1, &[]), read(2, &[2])]),
        committed(vec![read(1, &[1]), read(2, &[2])]),
    ];
    assert_eq!(check(&history, Level::ReadCommitted), []);
    assert_eq!(check(&history, Level::RepeatableRead).len(), 1);
    finds(history, &[Anomaly::GSingle]);
}

#[test]
fn a_lost_update_is_g_single() {
    finds(
        vec![
            committed(vec![read(1, &[]), append(1, 1)]),
            committed(vec![read(1, &[]), append(1, 2)]),
            committed(vec![read(1, &[1, 2])]),
        ],
        &[Anomaly::GSingle],
    );
}

#[test]
fn a_skewed_write_is_g2() {
    let history = vec![
        committed(vec![read(1, &[]), append(2, 2)]),
        committed(vec![read(2, &[]), append(1, 1)]),
        committed(vec![read(1, &[1]), read(2, &[2])]),
    ];
    assert_eq!(check(&history, Level::RepeatableRead), []);
    finds(history, &[Anomaly::G2]);
}

#[test]
fn lists_that_do_not_continue_each_other_are_incompatible() {
    finds(
        vec![
            committed(vec![append(1, 1)]),
            committed(vec![append(1, 2)]),
            committed(vec![read(1, &[2])]),
            committed(vec![read(1, &[1, 2])]),
        ],
        &[Anomaly::Incompatible],
    );
    finds(vec![committed(vec![append(1, 1)]), committed(vec![read(1, &[1, 1])])], &[Anomaly::Incompatible]);
    finds(vec![committed(vec![read(1, &[9])])], &[Anomaly::Incompatible]);
}

#[test]
fn an_acknowledged_append_that_is_gone_is_lost() {
    finds(
        vec![committed(vec![append(1, 1)]), committed(vec![append(1, 2)]), committed(vec![read(1, &[2])])],
        &[Anomaly::Lost],
    );
    let in_doubt = Txn { ops: vec![append(1, 1)], end: TransactionEnd::Unknown };
    finds(vec![in_doubt.clone(), committed(vec![read(1, &[])])], &[]);
    finds(vec![in_doubt, committed(vec![read(1, &[1])])], &[]);
    // An aborted transaction's reads of its own appends prove nothing.
    let undone = Txn { ops: vec![append(1, 1), read(1, &[1])], end: TransactionEnd::Unknown };
    finds(vec![undone, committed(vec![append(1, 2)]), committed(vec![read(1, &[2])])], &[]);
}

#[test]
fn who_does_not_see_its_own_append_is_told() {
    finds(vec![committed(vec![append(1, 1), read(1, &[])]), committed(vec![read(1, &[1])])], &[Anomaly::Internal]);
}
