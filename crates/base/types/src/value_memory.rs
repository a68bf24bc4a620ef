//! Memory limits and cancellation for functions that create large values.
//!
//! Memory pools count only memory of operators. The values that one call of a function creates from a batch exist
//! before an operator can count them, and creating them can take long. Code that creates values therefore reports their
//! sizes here and fails when its statement is canceled, the process is out of memory, or its step exceeds its limit.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::{Condition, SqlError, SqlResult};

/// Exclusive maximum of a value's length in bytes, as in PostgreSQL.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Bytes between two checks.
const CHECK_INTERVAL_BYTES: usize = 1 << 20;
/// Rows between two checks. With the limit of bytes, checks are milliseconds apart even for slow functions.
const CHECK_INTERVAL_ROWS: usize = 256;

/// Function that fails if the statement of the current thread is canceled or the process may not allocate the given
/// number of bytes (0 for small values).
pub type AllocationCheck = fn(usize) -> SqlResult<()>;

static ALLOCATION_CHECK: OnceLock<AllocationCheck> = OnceLock::new();

/// Sets the allocation check of this process. Only the first call has an effect.
pub fn set_allocation_check(check: AllocationCheck) {
    ALLOCATION_CHECK.get_or_init(|| check);
}

/// Returns the error `54000` for a value that is too long.
#[must_use]
pub fn too_long_error() -> SqlError {
    SqlError::new(Condition::ProgramLimitExceeded, "requested length too large")
        .with_detail("A value has less than 1 GB.")
}

/// Memory limit of a step.
#[derive(Debug, Clone, Copy)]
struct StepLimit {
    /// Bytes that the step may still create.
    remaining_bytes: usize,
    /// Whether the step has requested more.
    is_exceeded: bool,
}

impl StepLimit {
    const NONE: Self = Self { remaining_bytes: usize::MAX, is_exceeded: false };
}

thread_local! {
    static STEP: Cell<StepLimit> = const { Cell::new(StepLimit::NONE) };
}

/// Runs `step` with a limit of about `bytes` for the values that it creates on this thread; returns its result and
/// whether it exceeded the limit. In that case it has failed and should be repeated with fewer rows. Values of a nested
/// step do not count for the outer one.
pub fn run_with_memory_limit<T>(bytes: usize, step: impl FnOnce() -> T) -> (T, bool) {
    let before = RestoreOuterLimit(STEP.replace(StepLimit { remaining_bytes: bytes, is_exceeded: false }));
    let outcome = step();
    let is_exceeded = STEP.get().is_exceeded;
    drop(before);
    (outcome, is_exceeded)
}

/// Guard that restores the limit of the outer step.
struct RestoreOuterLimit(StepLimit);

impl Drop for RestoreOuterLimit {
    fn drop(&mut self) {
        STEP.set(self.0);
    }
}

/// Checks whether values of `bytes` in total may be created.
///
/// # Errors
/// `57014` if the statement is canceled, `53200` if the process is out of memory or the step's limit is exceeded.
pub fn check(bytes: usize) -> SqlResult<()> {
    let step = STEP.get();
    if step.remaining_bytes < bytes {
        STEP.set(StepLimit { is_exceeded: true, ..step });
        return Err(
            SqlError::new(Condition::OutOfMemory, "out of memory").with_detail("The values of a batch are too large.")
        );
    }
    // Small values are always allowed.
    let large = if bytes < CHECK_INTERVAL_BYTES { 0 } else { bytes };
    ALLOCATION_CHECK.get().map_or(Ok(()), |check| check(large))
}

/// Counter of the values that one call creates, with periodic checks.
#[derive(Debug, Default)]
pub struct ValueMemoryCounter {
    /// Rows since the last check.
    rows: usize,
    /// Bytes since the last check.
    bytes: usize,
}

impl ValueMemoryCounter {
    /// Counts a value of `bytes`.
    ///
    /// # Errors
    /// As [`check`].
    #[inline]
    pub fn add(&mut self, bytes: usize) -> SqlResult<()> {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        // Both limits are powers of two, so one comparison suffices; this runs for each value.
        if (self.rows * (CHECK_INTERVAL_BYTES / CHECK_INTERVAL_ROWS)) | self.bytes < CHECK_INTERVAL_BYTES {
            Ok(())
        } else {
            self.check_counted()
        }
    }

    /// Counts a text of `bytes`, which may exceed the maximum length of a value.
    ///
    /// # Errors
    /// `54000` if it is too long; else as [`check`].
    #[inline]
    pub fn add_text(&mut self, bytes: usize) -> SqlResult<()> {
        if VALUE_BYTES_MAX <= bytes { Err(too_long_error()) } else { self.add(bytes) }
    }

    /// Counts temporary memory, which is freed before the step ends and does not count for its limit.
    ///
    /// # Errors
    /// As [`check`].
    #[inline]
    pub fn add_scratch(&mut self, bytes: usize) -> SqlResult<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes < CHECK_INTERVAL_BYTES { Ok(()) } else { check(std::mem::take(&mut self.bytes)) }
    }

    #[cold]
    fn check_counted(&mut self) -> SqlResult<()> {
        let counted = std::mem::take(self).bytes;
        check(counted)?;
        let step = STEP.get();
        STEP.set(StepLimit { remaining_bytes: step.remaining_bytes.saturating_sub(counted), ..step });
        Ok(())
    }
}

/// Checks whether one value of `bytes` may be created.
///
/// # Errors
/// `54000` if it is too long; else as [`check`].
#[inline]
pub fn check_length(bytes: usize) -> SqlResult<()> {
    match bytes {
        0..CHECK_INTERVAL_BYTES => Ok(()),
        CHECK_INTERVAL_BYTES..VALUE_BYTES_MAX => check(bytes),
        _ => Err(too_long_error()),
    }
}

/// Checks whether `bytes` may be appended to `text`. Must be called for each append; it checks the total length only
/// when that reaches the next power of two.
///
/// # Errors
/// As [`check_length`].
#[inline]
pub fn check_growth(text: &str, bytes: usize) -> SqlResult<()> {
    let length = text.len().saturating_add(bytes);
    let is_asked = length < VALUE_BYTES_MAX && length.checked_ilog2() == text.len().checked_ilog2();
    if length < CHECK_INTERVAL_BYTES || is_asked { Ok(()) } else { check_length(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_makes_no_more_than_it_may() {
        let make = |count: usize, bytes: usize| {
            let mut guard = ValueMemoryCounter::default();
            (0..count).try_for_each(|_| guard.add_text(bytes))
        };
        let (made, is_exceeded) = run_with_memory_limit(10 << 20, || make(9, 1 << 20));
        assert!(made.is_ok() && !is_exceeded);
        let (made, is_exceeded) = run_with_memory_limit(10 << 20, || make(20, 1 << 20));
        assert!(made.is_err() && is_exceeded);
        // Small values are counted together, and those of several calls.
        let (made, is_exceeded) = run_with_memory_limit(1 << 20, || make(8_192, 100).and_then(|()| make(8_192, 100)));
        assert!(made.is_err() && is_exceeded);
        // A known length is checked in advance.
        let (made, is_exceeded) = run_with_memory_limit(2 << 20, || check_length(3 << 20));
        assert!(made.is_err() && is_exceeded);
        assert!(run_with_memory_limit(1 << 20, || make(1, 1 << 29)).1);
        assert!(run_with_memory_limit(1 << 20, || make(2, usize::MAX / 2)).0.is_err());
        // A nested step has its own limit.
        let ((), is_exceeded) = run_with_memory_limit(1 << 20, || {
            assert!(run_with_memory_limit(usize::MAX, || make(20, 1 << 20)).0.is_ok())
        });
        assert!(!is_exceeded);
        assert_eq!(make(20, 1 << 20), Ok(()));
        assert_eq!(make(1, VALUE_BYTES_MAX).unwrap_err().condition, Condition::ProgramLimitExceeded);
        // Small unchecked appends in between are tolerated.
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
