//! The ordered transactional key-value store under the catalog: the trait `TxKv`, `redb` behind it, and a simulated one that can crash.
//!
//! Never knows what keys and values mean and never decides visibility: `catalog` and `txn` do. Never retries a failed write:
//! the first one poisons the store, and what is on disk decides when it is opened again.
//!
//! Start at `tx_kv.rs` for the contract and `key/` for how keys are made; `conformance.rs` is the contract as a test that
//! every backend runs.

mod batch;
#[doc(hidden)]
pub mod conformance;
#[cfg(test)]
mod crash_disk;
mod error;
pub mod key;
pub mod log;
pub mod redb;
pub mod sim;
mod space;
mod tx_kv;
pub mod wal;

pub use batch::{BATCH_BYTES_MAX, Batch, KEY_BYTES_MAX, Op, VALUE_BYTES_MAX};
pub use error::{Error, Result};
pub use space::Space;
pub use tx_kv::{Direction, Entries, Entry, KeyRange, TxKv};
