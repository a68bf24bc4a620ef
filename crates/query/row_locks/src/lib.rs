//! The checks before rows are changed: locks of tables, rows and keys, and whether keys and references are as constraints want them.
//!
//! Never writes a row: what may be written others write. What is asked of rows is asked of all that is committed by then, under the locks.
//! Where another transaction came first the answer is [`Attempt::Again`], and the session runs the statement again.
//!
//! Start at `lock.rs` for how a statement waits, then `constraints.rs` for what rows must hold to. The rows that a statement changes are locked where it finds
//! them, in `dml` (`modify/`, `write/gathered.rs`).

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
