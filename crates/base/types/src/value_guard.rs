//! Bounds the values that functions make of a batch's rows: such values end with the cancel of their statement, with the process's memory, and where
//! a step makes more of them than it may.
//!
//! Pools of memory count what operators hold. What one call of a function makes of thousands of rows is there before any operator has seen it, and takes
//! as long as its values are large. So whoever makes values asks while it makes them.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::{Condition, SqlError, SqlResult};

/// No value is as long as this, as in PostgreSQL.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Questions are asked after so many bytes, and after so many rows: those that take long take milliseconds.
const BYTES_BETWEEN: usize = 1 << 20;
const ROWS_BETWEEN: usize = 256;

/// Says whether the statement that this thread works for may go on, and whether the process may hold so many bytes more: 0 where no large values are made.
pub type Permission = fn(usize) -> SqlResult<()>;

static PERMISSION: OnceLock<Permission> = OnceLock::new();

/// Sets who answers in this process. Only the first call has an effect.
pub fn answer_by(permission: Permission) {
    PERMISSION.get_or_init(|| permission);
}

/// The error of a value that is too long.
#[must_use]
pub fn too_long() -> SqlError {
    SqlError::new(Condition::ProgramLimitExceeded, "requested length too large")
        .with_detail("A value has less than 1 GB.")
}

/// The bytes that a step may still make, and whether it has asked for more.
#[derive(Debug, Clone, Copy)]
struct StepBound {
    left_bytes: usize,
    is_exceeded: bool,
}

impl StepBound {
    const NONE: Self = Self { left_bytes: usize::MAX, is_exceeded: false };
}

thread_local! {
    static STEP: Cell<StepBound> = const { Cell::new(StepBound::NONE) };
}

/// Does `step`, whose guarded values have at most `bytes`, roughly; whether that was too little. It has failed then, and is to be done for fewer rows. The
/// bound is this thread's; of a step within a step nothing counts for the outer one.
pub fn within<T>(bytes: usize, step: impl FnOnce() -> T) -> (T, bool) {
    let before = Restored(STEP.replace(StepBound { left_bytes: bytes, is_exceeded: false }));
    let outcome = step();
    let is_exceeded = STEP.get().is_exceeded;
    drop(before);
    (outcome, is_exceeded)
}

struct Restored(StepBound);

impl Drop for Restored {
    fn drop(&mut self) {
        STEP.set(self.0);
    }
}

/// Asks before values of so many bytes together are made.
///
/// # Errors
/// `57014` where nobody waits for the statement any more, `53200` where the process has no memory for them, and where the step may not make so many.
pub fn check(bytes: usize) -> SqlResult<()> {
    let step = STEP.get();
    if step.left_bytes < bytes {
        STEP.set(StepBound { is_exceeded: true, ..step });
        return Err(
            SqlError::new(Condition::OutOfMemory, "out of memory").with_detail("A step makes too large values.")
        );
    }
    // Small values are made whatever others hold.
    let large = if bytes < BYTES_BETWEEN { 0 } else { bytes };
    PERMISSION.get().map_or(Ok(()), |permission| permission(large))
}

/// Counts the values that one call makes, and asks now and then.
#[derive(Debug, Default)]
pub struct ValueGuard {
    rows: usize,
    bytes: usize,
}

impl ValueGuard {
    /// Counts one more value, which has `bytes` of its own.
    ///
    /// # Errors
    /// As [`check`].
    #[inline]
    pub fn add(&mut self, bytes: usize) -> SqlResult<()> {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        // Both limits are powers of two: one comparison is enough, and this is asked of each value.
        if (self.rows * (BYTES_BETWEEN / ROWS_BETWEEN)) | self.bytes < BYTES_BETWEEN { Ok(()) } else { self.ask() }
    }

    /// As [`ValueGuard::add`], for a text that may be too long.
    ///
    /// # Errors
    /// `54000` if it is, and as [`check`].
    #[inline]
    pub fn add_text(&mut self, bytes: usize) -> SqlResult<()> {
        if VALUE_BYTES_MAX <= bytes { Err(too_long()) } else { self.add(bytes) }
    }

    /// As [`ValueGuard::add`], for memory that is free again before the step ends.
    ///
    /// # Errors
    /// As [`check`].
    #[inline]
    pub fn add_scratch(&mut self, bytes: usize) -> SqlResult<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < BYTES_BETWEEN { Ok(()) } else { check(std::mem::take(&mut self.bytes)) }
    }

    #[cold]
    fn ask(&mut self) -> SqlResult<()> {
        let made = std::mem::take(self).bytes;
        check(made)?;
        let step = STEP.get();
        STEP.set(StepBound { left_bytes: step.left_bytes.saturating_sub(made), ..step });
        Ok(())
    }
}

/// Asks before one value of known length is made.
///
/// # Errors
/// `54000` where no value may be as long, and as [`check`].
#[inline]
pub fn check_length(bytes: usize) -> SqlResult<()> {
    match bytes {
        0..BYTES_BETWEEN => Ok(()),
        BYTES_BETWEEN..VALUE_BYTES_MAX => check(bytes),
        _ => Err(too_long()),
    }
}

/// Asks before `bytes` are put behind a text: where that is long, each time it becomes twice as long. All that is put there has to be asked for.
///
/// # Errors
/// As [`check_length`].
#[inline]
pub fn check_growth(text: &str, bytes: usize) -> SqlResult<()> {
    let length = text.len().saturating_add(bytes);
    let is_asked = length < VALUE_BYTES_MAX && length.checked_ilog2() == text.len().checked_ilog2();
    if length < BYTES_BETWEEN || is_asked { Ok(()) } else { check_length(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_makes_no_more_than_it_may() {
        let make = |count: usize, bytes: usize| {
            let mut guard = ValueGuard::default();
            (0..count).try_for_each(|_| guard.add_text(bytes))
        };
        let (made, is_exceeded) = within(10 << 20, || make(9, 1 << 20));
        assert!(made.is_ok() && !is_exceeded);
        let (made, is_exceeded) = within(10 << 20, || make(20, 1 << 20));
        assert!(made.is_err() && is_exceeded);
        // Small values are counted together, and those of several calls.
        let (made, is_exceeded) = within(1 << 20, || make(8_192, 100).and_then(|()| make(8_192, 100)));
        assert!(made.is_err() && is_exceeded);
        // Who knows a length asks before.
        let (made, is_exceeded) = within(2 << 20, || check_length(3 << 20));
        assert!(made.is_err() && is_exceeded);
        assert!(within(1 << 20, || make(1, 1 << 29)).1);
        assert!(within(1 << 20, || make(2, usize::MAX / 2)).0.is_err());
        // A step in a step has a bound of its own.
        let ((), is_exceeded) = within(1 << 20, || assert!(within(usize::MAX, || make(20, 1 << 20)).0.is_ok()));
        assert!(!is_exceeded);
        assert_eq!(make(20, 1 << 20), Ok(()));
        assert_eq!(make(1, VALUE_BYTES_MAX).unwrap_err().condition, Condition::ProgramLimitExceeded);
        // A little may be written between the questions.
        let (mut text, piece) = (String::new(), "y".repeat(64 << 20));
        let push = |text: &mut String| {
            check_growth(text, piece.len())?;
            text.push_str(&piece);
            text.push('x');
            SqlResult::Ok(())
        };
        assert!((0..16).any(|_| push(&mut text).is_err()), "{}", text.len());
        assert_eq!(check_length(VALUE_BYTES_MAX).unwrap_err().condition, Condition::ProgramLimitExceeded);
    }
}
