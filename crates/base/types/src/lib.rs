//! The words every crate shares: ids, SQL types, conditions, numeric and date arithmetic in PostgreSQL's manner, clock and randomness, and the
//! bounds of a statement's work: its stack, its cancel, its memory.
//!
//! Never does I/O, and knows neither DataFusion nor files. A type moves here on its second user, never on its first.
//!
//! Start at `sql_type.rs` for what a column can hold and `error.rs` for what a client can be told.

pub mod allocated;
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
pub mod moment;
pub mod mutation;
pub mod numeric;
pub mod object_names;
pub mod on_commit;
pub mod random;
pub mod row_lock;
pub mod sql_type;
mod sqlstate;
pub mod stack;
pub mod text;
pub mod value_guard;
pub mod zone;

pub use cache_policy::CachePolicy;
pub use causes::with_causes;
pub use clock::{Clock, ManualClock, SystemClock};
pub use conjuncts::Conjuncts;
pub use date_part::DatePart;
pub use disk::{Disk, Reserve};
pub use error::{Condition, SqlError, SqlResult};
pub use failpoint::Failpoint;
pub use health::Health;
pub use ids::{ColumnId, CommitTs, Oid, QueryId, RowId, ShardId};
pub use interval::Interval;
pub use moment::Moment;
pub use mutation::Mutation;
pub use object_names::ObjectNames;
pub use on_commit::OnCommit;
pub use random::{Random, SystemRandom};
pub use row_lock::{LockMode, LockWait};
pub use sql_type::SqlType;
pub use value_guard::ValueGuard;
pub use zone::SessionZone;
