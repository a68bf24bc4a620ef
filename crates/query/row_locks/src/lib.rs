//! Checks before rows are written: waits for locks of tables and keys, and checks unique keys and foreign keys.
//!
//! Never writes a row. Constraints are checked under the locks, against everything committed by then. If another
//! transaction came first, the result is [`AttemptOutcome::Conflict`], and the session plans and runs the statement
//! again.
//!
//! - `attempt_outcome.rs`: the outcome of a statement, done or to be run again,
//! - `lock_waits.rs`: waits for locks, with their timeout, cancellation and errors,
//! - `constraints.rs`: the check of new rows against all constraints,
//! - `unique_keys.rs`, `foreign_keys.rs`: unique keys and foreign keys,
//! - `key_text.rs`: keys as error details show them.
//!
//! Row locks are taken where a statement finds its rows: in `dml` (`modify/`, `write/gathered.rs`).

mod attempt_outcome;
mod constraints;
mod foreign_keys;
mod key_text;
mod lock_waits;
mod unique_keys;

pub use attempt_outcome::AttemptOutcome;
pub use constraints::{CheckedRow, check_constraints};
pub use foreign_keys::{key_index, still_referenced};
pub use lock_waits::{LockWaits, lock_error, lock_for_rows, lock_tables, serialization_failure};
pub use unique_keys::{lock_and_find_keys, newest_rows};
