//! Model checker: explores every order of writes, flushes, compactions, cleanings and crashes on the rows of one table,
//! within bounds.
//!
//! This is a model of the protocol, not of its code: rows are numbers, and a version is the commit that wrote it.
//! Beside the protocol's state, a world contains the true rows, and after every step each reader must see exactly
//! these. Each [`OmittedRule`] removes one rule of the protocol: if the checker did not detect it, the rule would be
//! superfluous or the bounds too small.
//!
//! Rows are read by key. What a serializable transaction has read must be unchanged at its commit
//! (`serializable_reads.rs`).
//!
//! Reading order:
//!
//! - `table_rows.rs`: snapshots and their changes
//! - `world_state.rs`: the whole state and its invariants
//! - `durable_store.rs`: the durable state
//! - `row_moves.rs`: flushes and compactions
//! - `transaction.rs`, `serializable_reads.rs`: transactions of several statements
//! - `steps.rs`: the possible steps
//! - `breadth_first_search.rs`: the breadth-first search
//! - `omitted_rule.rs`: rules that can be removed

mod breadth_first_search;
mod durable_store;
mod omitted_rule;
mod row_moves;
mod serializable_reads;
mod steps;
mod table_rows;
mod transaction;
mod world_state;

use breadth_first_search::{Bounds, Explored, explore};
use omitted_rule::OmittedRule;
use transaction::Level;

/// Autocommit statements, flushes and one compaction.
const PLAIN: Bounds = Bounds {
    rows: 1,
    commits: 6,
    transactions: 0,
    seals: 2,
    compactions: 1,
    crashes: 0,
    pins: 0,
    truncates: 0,
    everything: true,
    levels: &[Level::RepeatableRead, Level::ReadCommitted],
    states: 3_000_000,
};

/// Additionally crashes, old snapshots and TRUNCATE.
const STORED: Bounds = Bounds { crashes: 1, pins: 1, truncates: 1, ..PLAIN };
/// Several rows in a layer and a shard.
const ROWS: Bounds = Bounds { rows: 2, commits: 7, seals: 1, crashes: 1, ..PLAIN };
/// A transaction of several statements while rows move.
const TRANSACTION: Bounds = Bounds { transactions: 1, ..PLAIN };
const TRUNCATE: Bounds = Bounds { transactions: 1, truncates: 1, commits: 5, ..PLAIN };
/// Two such transactions.
const TRANSACTIONS: Bounds = Bounds { transactions: 2, commits: 3, ..PLAIN };

/// A serializable transaction, while rows move and others write.
const SERIALIZABLE: Bounds =
    Bounds { rows: 2, commits: 5, transactions: 1, seals: 1, levels: &[Level::Serializable], ..PLAIN };
/// A serializable transaction beside another one that began before rows moved.
const SKEW: Bounds = Bounds {
    rows: 2,
    commits: 6,
    transactions: 2,
    seals: 1,
    levels: &[Level::ReadCommitted, Level::Serializable],
    everything: false,
    ..PLAIN
};

#[test]
fn every_reader_sees_the_truth() {
    let mut all = vec![STORED, ROWS, TRANSACTION, TRUNCATE, TRANSACTIONS, SERIALIZABLE];
    if std::env::var_os("KILN_NIGHTLY").is_some() {
        all.extend([
            Bounds { commits: 7, seals: 3, compactions: 2, ..STORED },
            Bounds { commits: 7, compactions: 2, ..TRANSACTION },
            Bounds { transactions: 1, commits: 6, crashes: 0, ..ROWS },
            Bounds { commits: 5, ..TRANSACTIONS },
            SKEW,
        ]);
    }
    for bounds in all {
        match explore(bounds, None) {
            Ok(Explored { states, is_complete }) => {
                println!("{states} worlds, {bounds:?}");
                assert!(is_complete && 1_000 < states, "too many or hardly any worlds within {bounds:?}");
            }
            Err(violation) => panic!("{violation}"),
        }
    }
}

#[test]
fn every_rule_is_needed() {
    for bug in OmittedRule::ALL {
        let bounds = match bug {
            OmittedRule::CompactionKeepsOldPositions => ROWS,
            OmittedRule::NoRowLocks => Bounds { commits: 4, ..TRANSACTIONS },
            OmittedRule::TruncateNotDetected => TRUNCATE,
            OmittedRule::ReadsNotValidated
            | OmittedRule::FreshReadsAssumedUnflushed
            | OmittedRule::MovesNotRecorded => SERIALIZABLE,
            OmittedRule::WritesRecordedAtOldPositions => SKEW,
            OmittedRule::OwnRowsNotRebound
            | OmittedRule::RebindingStopsAtFlush
            | OmittedRule::MovesForgottenEarly
            | OmittedRule::MovesAfterSnapshotFollowed
            | OmittedRule::ConcurrentChangesNotDetected
            | OmittedRule::FlushedVersionIgnored
            | OmittedRule::FlushedRowTakenForDeleted
            | OmittedRule::PositionOfNewestSnapshotUsed
            | OmittedRule::SavepointRowsNotRebound
            | OmittedRule::OwnRowsDoNotHideCommitted => TRANSACTION,
            _ => STORED,
        };
        match explore(bounds, Some(bug)) {
            Ok(Explored { states, .. }) => panic!("{bug:?} was not caught in {states} worlds"),
            Err(violation) => println!("{bug:?}: {violation}"),
        }
    }
}
