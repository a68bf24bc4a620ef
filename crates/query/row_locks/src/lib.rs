//! Checks before rows are written: waits for locks of tables and keys, and checks unique keys and foreign keys.
//!
//! Never writes a row. Constraints are checked under the locks, against everything committed by then. If another
//! transaction came first, the result is [`Attempt::Again`], and the session plans and runs the statement again.
//!
//! - `attempt.rs`: the outcome of a statement, done or to be run again,
//! - `lock.rs`: waits for locks, with their timeout, cancellation and errors,
//! - `constraints.rs`: the check of new rows against all constraints,
//! - `unique.rs`, `foreign.rs`: unique keys and foreign keys,
//! - `shown.rs`: keys as error details show them.
//!
//! Row locks are taken where a statement finds its rows: in `dml` (`modify/`, `write/gathered.rs`).

mod attempt;
mod constraints;
mod foreign;
mod lock;
mod shown;
mod unique;

pub use attempt::Attempt;
pub use constraints::{NewRow, check};
pub use foreign::{key_index, referred};
pub use lock::{Waits, from_lock, lock_for_rows, lock_tables, refused};
pub use unique::{newest, taken};
