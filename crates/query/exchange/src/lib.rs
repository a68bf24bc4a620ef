//! One query on several workers, by the library `datafusion-distributed`, which nobody else in Kiln knows: but that `compile` tells where rows of others come in.
//!
//! Never chooses workers and never knows a session. No row is read twice, because each part of a table is one worker's: `leaf.rs` divides scans so.
//!
//! Start at `plan.rs`, which makes a query's plan one of several stages, or one task that is all of it (`whole.rs`).
//!
//! - Stages: `reason.rs` says what keeps a query here, `values.rs` finds values of subqueries before; the library cuts operators where rows change places
//!   (`joins.rs`, `shape.rs`).
//! - Rows that stay where they are: those of tables that are distributed on a key, or that every worker has (`in_place.rs`, `located.rs`, `within.rs`), or
//!   one side of a join (`owners.rs`).
//! - Scans: `leaf.rs` divides them among workers, by the shares that `assign.rs` computes.
//! - The way: `codec/` writes a part of the plan, `channel.rs` sends it over connections that others open (`open.rs`), `worker.rs` sets it up at the other end,
//!   `stage.rs` runs it under the query's settings and limits (`facts.rs`), `head.rs` is the last part, run by who asked.
//! - What comes back beside rows: `failure.rs` brings errors as what they were, `reports.rs` what tasks did.
//! - `ahead.rs` is what workers do about shards that no query has read yet.

mod active;
mod ahead;
mod assign;
mod channel;
pub mod codec;
mod compiled;
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
pub use self::compiled::{compiled, is_compiled};
pub use self::failure::lost_worker;
pub use self::joins::JoinExchange;
pub use self::owners::ToOwnersExec;
pub use self::plan::{Distribution, Exchange, Planning, Purpose};
pub use self::prepared::{Place, Prepared};
pub use self::reason::{Reason, Undistributed, can_leave};
pub use self::reports::{Report, Reports};
pub use self::resources::QueryResources;
pub use self::shown::{Shown, is_distributed, shown};
pub use self::spread::Spread;
pub use self::within::{WithinTasksExec, meets_within_tasks};
pub use self::worker::{Worker, WorkerShare};
