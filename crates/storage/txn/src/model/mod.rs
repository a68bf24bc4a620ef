//! Every order of what can happen to the rows of one table, within bounds: writing, settling, compacting, cleaning, crashing.
//!
//! A model of the protocol, not of its code: rows are numbers, a version is the commit that wrote it. Beside what the protocol keeps, the
//! world knows the truth, and after every step each reader must see exactly that. Each [`Bug`] takes one rule of the protocol away:
//! were it not caught, the rule would be superfluous or the bounds too small.
//!
//! Rows are read by key; what a serializable transaction has read may not have been changed by its commit (`reads.rs`).
//!
//! Start at `rows.rs` for what a snapshot is and how it changes, then `world.rs` for the steps; `store.rs` is what outlives a crash.

mod bug;
mod explore;
mod moves;
mod reads;
mod rows;
mod steps;
mod store;
mod transaction;
mod world;

use bug::Bug;
use explore::{Bounds, Explored, explore};
use transaction::Level;

/// Statements that are transactions of their own, settling and one compaction.
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

/// Crashes, readers of the past and TRUNCATE in between.
const STORED: Bounds = Bounds { crashes: 1, pins: 1, truncates: 1, ..PLAIN };
/// Several rows in a layer and a shard.
const ROWS: Bounds = Bounds { rows: 2, commits: 7, seals: 1, crashes: 1, ..PLAIN };
/// A transaction of several statements while rows move.
const TRANSACTION: Bounds = Bounds { transactions: 1, ..PLAIN };
const TRUNCATE: Bounds = Bounds { transactions: 1, truncates: 1, commits: 5, ..PLAIN };
/// Two of them.
const TRANSACTIONS: Bounds = Bounds { transactions: 2, commits: 3, ..PLAIN };

/// A transaction that must find at its commit what it has read, while rows move and others write.
const SERIALIZABLE: Bounds =
    Bounds { rows: 2, commits: 5, transactions: 1, seals: 1, levels: &[Level::Serializable], ..PLAIN };
/// Beside another that began when rows lay elsewhere.
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
                assert!(is_complete && 1_000 < states, "too much or nothing is within {bounds:?}");
            }
            Err(violation) => panic!("{violation}"),
        }
    }
}

#[test]
fn every_rule_is_needed() {
    for bug in Bug::ALL {
        let bounds = match bug {
            Bug::CompactKeepsPlaces => ROWS,
            Bug::NoRowLocks => Bounds { commits: 4, ..TRANSACTIONS },
            Bug::TruncateUnnoticed => TRUNCATE,
            Bug::ReadsNotValidated | Bug::FreshReadsStay | Bug::MovesNotNoted => SERIALIZABLE,
            Bug::WritesNotedUnbound => SKEW,
            Bug::NoBinding
            | Bug::BindingStopsAtSettling
            | Bug::MovesForgottenEarly
            | Bug::MovesOfTheFuture
            | Bug::ChangesUnnoticed
            | Bug::VersionIgnored
            | Bug::SettledTakenForDeleted
            | Bug::PlaceOfAnotherSnapshot
            | Bug::SavepointNotBound
            | Bug::OwnRowsDoNotHide => TRANSACTION,
            _ => STORED,
        };
        match explore(bounds, Some(bug)) {
            Ok(Explored { states, .. }) => panic!("{bug:?} was not caught in {states} worlds"),
            Err(violation) => println!("{bug:?}: {violation}"),
        }
    }
}
