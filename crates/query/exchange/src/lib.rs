//! One query on several workers, by the library `datafusion-distributed`, which nobody else in Kiln knows: but that it tells compilers where rows of others come in.
//!
//! `plan.rs` makes a query's plan one of several stages, where `reason.rs` finds nothing that keeps it here
//! and it reads enough, else one task that is all of it (`whole.rs`); values of subqueries are found before (`values.rs`). The library cuts operators where
//! rows change places (`joins.rs`, `shape.rs`), which those of tables that are distributed on a key need not (`in_place.rs`, `located.rs`, `within.rs`), or of two sides one
//! (`owners.rs`), asks
//! how a scan is divided (`leaf.rs`, `assign.rs`) and sends each worker its part, written by `codec/`, over
//! connections that others open (`channel.rs`, `open.rs`). `worker.rs` is at the other end: it has the engine run the part (`stage.rs`) under the query's
//! settings and limits (`facts.rs`); the last part is run by who asked (`head.rs`). `failure.rs` brings errors back as
//! what they were, `reports.rs` what tasks did, `ahead.rs` is what workers do about shards that no query has read yet.

mod active;
mod ahead;
mod assign;
mod channel;
pub mod codec;
mod facts;
mod failure;
mod head;
mod in_place;
mod joins;
mod keys;
mod leaf;
mod located;
mod open;
mod owners;
mod plan;
mod prepared;
mod reason;
mod reports;
mod resources;
mod shape;
mod shown;
mod spread;
mod stage;
mod values;
mod whole;
mod within;
mod worker;

pub use self::ahead::{AheadUse, NewShards, pieces};
pub use self::assign::{Cluster, Without};
pub use self::channel::{ByteStream, Channels, Dial};
pub use self::codec::message_bytes;
pub use self::failure::lost_worker;
pub use self::joins::JoinExchange;
pub use self::owners::ToOwnersExec;
pub use self::plan::{Distribution, Exchange, Planning, Purpose};
pub use self::prepared::{Place, Prepared};
pub use self::reason::{Reason, can_leave};
pub use self::reports::{Report, Reports};
pub use self::resources::QueryResources;
pub use self::shown::{Shown, is_distributed, shown};
pub use self::spread::Spread;
pub use self::within::{WithinTasksExec, meets_within_tasks};
pub use self::worker::{Worker, WorkerShare};
