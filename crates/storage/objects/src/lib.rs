//! Object storage: a durable local folder, S3, GCS and Azure behind one handle; conditional puts, retries, the claim on a storage prefix, fault injection.
//!
//! Never knows what is inside an object and never decides which objects are needed: `shards` and `txn` do. Never overwrites
//! what somebody else wrote without being asked to: `put_if_absent` and `put_if_matches` tell one's own lost answer from
//! another's win.
//!
//! Start at `objects/` for the handle everybody holds, `local/` for the folder, `claim/` for who may write where;
//! `conformance.rs` is what every storage must pass, `fault/` how tests make one fail.

mod claim;
#[doc(hidden)]
pub mod conformance;
mod error;
mod fault;
mod local;
mod objects;
mod open;
mod retry;
mod writer;

pub use claim::Claim;
pub use error::{Error, Result};
pub use fault::{Fault, FaultStore, Pace};
pub use local::{FolderDisk, LocalStore};
pub use objects::{Object, Objects, Version};
pub use writer::Writer;
