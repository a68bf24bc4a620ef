//! Types shared by all crates.
//!
//! The crate does no I/O and knows neither DataFusion nor files. A type moves here when a second crate needs it.
//!
//! In reading order:
//! - `sql_type.rs`, `arrow_field.rs`: SQL types and their Arrow types; `ids.rs`: identities of objects, rows and
//!   commits
//! - `error.rs`, `sqlstate.rs`, `error_causes.rs`: errors for clients and their SQLSTATEs
//! - `text/`: text forms of all types; `numeric.rs`, `interval.rs`, `date_part.rs`, `time_zone.rs`: PostgreSQL's
//!   arithmetic on them
//! - `clock.rs`, `random.rs`, `disk_space.rs`: time, randomness and disk space behind traits, for simulation
//! - `interrupt.rs`, `stack_limit.rs`, `planning_memory.rs`, `value_memory.rs`, `allocation_counters.rs`: cancellation,
//!   stack and memory limits of a statement
//! - `conjunct_order.rs`: adaptive order of filter conditions
//! - `row_lock.rs`, `time_travel.rs`, `on_commit.rs`, `cache_policy.rs`, `object_names.rs`, `service_health.rs`: small shared
//!   types
//! - `failpoint.rs`, `injected_bug.rs`: fault injection for tests; `sample_values.rs`: values of all types for
//!   conformance tests

pub mod allocation_counters;
pub mod arrow_field;
pub mod cache_policy;
pub mod clock;
pub mod conjunct_order;
pub mod date_part;
pub mod disk_space;
pub mod error;
pub mod error_causes;
pub mod failpoint;
pub mod ids;
pub mod injected_bug;
pub mod interrupt;
pub mod interval;
pub mod numeric;
pub mod object_names;
pub mod on_commit;
pub mod planning_memory;
pub mod random;
pub mod row_lock;
#[doc(hidden)]
pub mod sample_values;
pub mod service_health;
pub mod sql_type;
mod sqlstate;
pub mod stack_limit;
pub mod text;
pub mod time_travel;
pub mod time_zone;
pub mod value_memory;

pub use cache_policy::CachePolicy;
pub use clock::{Clock, ManualClock, SystemClock};
pub use conjunct_order::ConjunctOrder;
pub use date_part::DatePart;
pub use disk_space::{Disk, DiskReserve};
pub use error::{Condition, SqlError, SqlResult};
pub use error_causes::with_causes;
pub use failpoint::Failpoint;
pub use ids::{ColumnId, CommitTs, Oid, QueryId, RowId, ShardId};
pub use injected_bug::InjectedBug;
pub use interval::Interval;
pub use object_names::ObjectNames;
pub use on_commit::OnCommit;
pub use random::{Random, SystemRandom};
pub use row_lock::{LockMode, LockWait};
pub use service_health::ServiceHealth;
pub use sql_type::{SqlType, TypeGroup};
pub use time_travel::TimeTravelTarget;
pub use time_zone::SessionZone;
pub use value_memory::ValueMemoryCounter;
