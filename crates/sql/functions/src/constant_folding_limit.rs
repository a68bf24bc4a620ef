//! Size limit of values computed by constant folding.
//!
//! A call over constants becomes a constant if its value is small. A larger value is computed when the statement
//! runs, within the query's time and memory limits.

use std::cell::Cell;

use arrow::array::{Array, AsArray};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use types::{Condition, SqlError, SqlResult};

/// Limit on the bytes that a folded call reads or returns; a literal of a typical statement has a few kilobytes.
const FOLDED_BYTES_MAX: usize = 256 << 10;

thread_local! {
    static IS_FOLDING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which folds constants, with the size limit enforced on this thread.
pub fn with_folding_limit<T>(work: impl FnOnce() -> T) -> T {
    let _restored = RestoreFlag(IS_FOLDING.replace(true));
    work()
}

/// Restores the flag when dropped.
struct RestoreFlag(bool);

impl Drop for RestoreFlag {
    fn drop(&mut self) {
        IS_FOLDING.set(self.0);
    }
}

/// Checks that a call may be evaluated: always outside of constant folding, else within the size limit.
///
/// # Errors
/// SQLSTATE 54000 if the call would read or return too large a value; constant folding then leaves the call as it is.
pub(super) fn check(function: &str, arguments: &[ColumnarValue]) -> SqlResult<()> {
    if !IS_FOLDING.get() || max_call_bytes(function, arguments) <= FOLDED_BYTES_MAX {
        return Ok(());
    }
    Err(SqlError::new(
        Condition::ProgramLimitExceeded,
        format!("the value of {function}() is too large for constant folding"),
    ))
}

/// Returns an upper bound on the bytes that a call reads or returns.
fn max_call_bytes(function: &str, arguments: &[ColumnarValue]) -> usize {
    let length = |at: usize| arguments.get(at).map_or(0, argument_bytes);
    let count = |at: usize| arguments.get(at).map_or(0, repeat_count);
    let read = arguments.iter().map(argument_bytes).fold(0, usize::saturating_add);
    let made = match function {
        "repeat" => length(0).saturating_mul(count(1)),
        // A character has at most four bytes.
        "lpad" | "rpad" => count(1).saturating_mul(4),
        "replace" | "regexp_replace" => length(0).saturating_mul(length(2).max(1)),
        "format" => format_widths(arguments).fold(read, usize::saturating_add),
        _ => 0,
    };
    read.max(made)
}

fn argument_bytes(argument: &ColumnarValue) -> usize {
    match argument {
        ColumnarValue::Scalar(value) => value.size(),
        ColumnarValue::Array(values) => values.get_array_memory_size(),
    }
}

fn repeat_count(argument: &ColumnarValue) -> usize {
    match argument {
        ColumnarValue::Scalar(ScalarValue::Int32(Some(count))) => usize::try_from(*count).unwrap_or(0),
        ColumnarValue::Scalar(value) if value.is_null() => 0,
        _ => usize::MAX,
    }
}

/// Returns the possible field widths of a `format()` call: the numbers in its format string, and its integer
/// arguments if the format uses `*`.
fn format_widths(arguments: &[ColumnarValue]) -> impl Iterator<Item = usize> {
    let text = match arguments.first() {
        Some(ColumnarValue::Scalar(value)) => value.try_as_str().flatten().unwrap_or_default(),
        Some(ColumnarValue::Array(values)) => {
            values.as_string_view_opt().filter(|it| it.len() == 1).map_or("", |it| it.value(0))
        }
        None => "",
    };
    let written = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let written: Vec<usize> = written.map(|digits| digits.parse().unwrap_or(usize::MAX)).collect();
    let read = arguments.iter().skip(1).filter_map(|argument| match argument {
        ColumnarValue::Scalar(ScalarValue::Int16(Some(width))) => Some(usize::from(width.unsigned_abs())),
        ColumnarValue::Scalar(ScalarValue::Int32(Some(width))) => usize::try_from(width.unsigned_abs()).ok(),
        ColumnarValue::Scalar(ScalarValue::Int64(Some(width))) => usize::try_from(width.unsigned_abs()).ok(),
        _ => None,
    });
    written.into_iter().chain(read.filter(|_| text.contains('*')).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text.to_owned())))
    }

    fn number(number: i32) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int32(Some(number)))
    }

    #[test]
    fn only_small_values_are_folded() {
        let cases = [
            ("repeat", vec![text("x"), number(1000)], true),
            ("repeat", vec![text("x"), number(500_000_000)], false),
            ("repeat", vec![text("x"), number(-1)], true),
            ("lpad", vec![text("x"), number(10)], true),
            ("rpad", vec![text("x"), number(200_000_000)], false),
            ("replace", vec![text(&"a".repeat(10_000)), text("a"), text(&"b".repeat(10_000))], false),
            ("replace", vec![text("abc"), text("b"), text("x")], true),
            ("format", vec![text("%10s"), text("x")], true),
            ("format", vec![text("%1000000000s"), text("x")], false),
            ("format", vec![text("%*s"), number(1_000_000_000), text("x")], false),
            ("md5", vec![text(&"a".repeat(1 << 20))], false),
            ("concat", vec![text("a"), text("b")], true),
        ];
        for (function, arguments, is_folded) in cases {
            assert_eq!(
                with_folding_limit(|| check(function, &arguments)).is_ok(),
                is_folded,
                "{function} {arguments:?}"
            );
            assert!(check(function, &arguments).is_ok(), "when it runs it is computed");
        }
    }
}
