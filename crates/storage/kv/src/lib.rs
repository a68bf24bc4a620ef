//! The ordered, transactional key-value store below the catalog.
//!
//! The store does not know what keys and values mean and does not decide visibility: `catalog` and `txn` do. It never
//! retries a failed write: the first failure poisons the handle, and reopening the store shows which batches are
//! durable.
//!
//! In reading order:
//! - `tx_kv.rs`: the trait [`TxKv`], which every backend implements
//! - `key_space.rs`: the key spaces and their bytes on disk
//! - `write_batch.rs`: atomic write batches
//! - `key/`: order-preserving encoding of composite keys
//! - `redb/`: backend in one file, copy-on-write B-trees
//! - `wal/`: backend of a server, a write-ahead log in front of those B-trees
//! - `logical_log/`: wrapper that also stores each batch as a numbered record, until the record is archived to object storage
//! - `sim/`: simulated backend in memory that can crash
//! - `conformance.rs`: tests of the trait's contract, run by every backend
//! - `error.rs`: the crate's errors

#[doc(hidden)]
pub mod conformance;
#[cfg(test)]
mod crash_disk;
mod error;
pub mod key;
mod key_space;
pub mod logical_log;
pub mod redb;
pub mod sim;
mod tx_kv;
pub mod wal;
mod write_batch;

pub use error::{Error, Result};
pub use key_space::Space;
pub use tx_kv::{Direction, Entries, Entry, KeyRange, TxKv};
pub use write_batch::{BATCH_BYTES_MAX, Batch, KEY_BYTES_MAX, Op, VALUE_BYTES_MAX};
