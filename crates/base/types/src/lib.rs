//! Types shared by all crates.
//!
//! The crate does no I/O and knows neither DataFusion nor files. A type moves here when a second crate needs it.
//!
//! In reading order:
//! - `sql_type.rs`, `arrow_field.rs`: SQL types and their Arrow types; `ids.rs`: identities of objects, rows and
//!   commits
//! - `error.rs`, `sqlstate.rs`, `causes.rs`: errors for clients and their SQLSTATEs
//! - `text/`: text forms of all types; `numeric.rs`, `interval.rs`, `date_part.rs`, `zone.rs`: PostgreSQL's arithmetic
//!   on them
//! - `clock.rs`, `random.rs`, `disk.rs`: time, randomness and disk space behind traits, for simulation
//! - `interrupt.rs`, `stack.rs`, `value_guard.rs`, `allocation_counters.rs`: cancellation, stack and memory limits of a statement
//! - `conjuncts.rs`: adaptive order of filter conditions
//! - `row_lock.rs`, `time_travel.rs`, `on_commit.rs`, `cache_policy.rs`, `object_names.rs`, `health.rs`: small shared types
//! - `failpoint.rs`, `mutation.rs`: fault injection for tests; `samples.rs`: values of all types for conformance tests

pub mod allocation_counters;
pub mod arrow_field;
pub mod cache_policy;
pub mod causes;
pub mod clock;
pub mod conjuncts;
pub mod date_part;
pub mod disk;
pub mod error;
pub mod failpoint;
pub mod health;
pub mod ids;
pub mod interrupt;
pub mod interval;
pub mod mutation;
pub mod numeric;
pub mod object_names;
pub mod on_commit;
pub mod random;
pub mod row_lock;
#[doc(hidden)]
pub mod samples;
pub mod sql_type;
mod sqlstate;
pub mod stack;
pub mod text;
pub mod time_travel;
pub mod value_guard;
pub mod zone;

pub use cache_policy::CachePolicy;
pub use causes::with_causes;
pub use clock::{Clock, ManualClock, SystemClock};
pub use conjuncts::ConjunctOrder;
pub use date_part::DatePart;
pub use disk::{Disk, DiskReserve};
pub use error::{Condition, SqlError, SqlResult};
pub use failpoint::Failpoint;
pub use health::ServiceHealth;
pub use ids::{ColumnId, CommitTs, Oid, QueryId, RowId, ShardId};
pub use interval::Interval;
pub use mutation::Mutation;
pub use object_names::ObjectNames;
pub use on_commit::OnCommit;
pub use random::{Random, SystemRandom};
pub use row_lock::{LockMode, LockWait};
pub use sql_type::{SqlType, TypeGroup};
pub use time_travel::TimeTravelTarget;
pub use value_guard::ValueGuard;
pub use zone::SessionZone;
