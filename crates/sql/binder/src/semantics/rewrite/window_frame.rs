//! Offsets of window frames: intervals are rewritten in a format that Arrow parses, and negative offsets are
//! rejected.

use datafusion::sql::sqlparser::ast::{
    self, DataType, Expr, UnaryOperator, Value, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use types::text::parse_interval;
use types::{Condition, Interval, SqlError, SqlResult};

use super::{interval_literal, text};

/// Offset beyond all rows and groups.
const OFFSET_BEYOND_ALL_ROWS: &str = "4294967295";

/// Normalizes the bounds of a frame.
pub(super) fn normalize_frame(frame: &mut WindowFrame) -> SqlResult<()> {
    let units = frame.units;
    normalize_bound(&mut frame.start_bound, units, "starting")?;
    let Some(end) = &mut frame.end_bound else { return Ok(()) };
    normalize_bound(end, units, "ending")?;
    if units != WindowFrameUnits::Range && is_empty_frame(&frame.start_bound, end) {
        for bound in [&mut frame.start_bound, end] {
            if let WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) = bound {
                *distance = Some(Box::new(Expr::Value(Value::Number(OFFSET_BEYOND_ALL_ROWS.to_owned(), false).into())));
            }
        }
    }
    Ok(())
}

/// Returns whether a frame ends before it starts: it is empty, and DataFusion would reject it.
fn is_empty_frame(start: &WindowFrameBound, end: &WindowFrameBound) -> bool {
    use WindowFrameBound as B;
    match (start, end) {
        (B::Preceding(Some(start)), B::Preceding(Some(end))) => {
            literal_row_offset(start).zip(literal_row_offset(end)).is_some_and(|(x, y)| x < y)
        }
        (B::Following(Some(start)), B::Following(Some(end))) => {
            literal_row_offset(start).zip(literal_row_offset(end)).is_some_and(|(x, y)| y < x)
        }
        _ => false,
    }
}

fn literal_row_offset(distance: &Expr) -> Option<u64> {
    let Expr::Value(value) = distance else { return None };
    if let Value::Number(number, _) = &value.value { number.parse().ok() } else { None }
}

fn normalize_bound(bound: &mut WindowFrameBound, units: WindowFrameUnits, which: &str) -> SqlResult<()> {
    let (WindowFrameBound::Preceding(Some(distance)) | WindowFrameBound::Following(Some(distance))) = bound else {
        return Ok(());
    };
    if let Expr::UnaryOp { op: UnaryOperator::Minus, expr } = distance.as_ref()
        && matches!(expr.as_ref(), Expr::Value(value) if matches!(value.value, Value::Number(..)))
    {
        return Err(negative_offset_error(units, which));
    }
    if let Some(span) = parse_interval_literal(distance)? {
        if span.span_us() < 0 {
            return Err(negative_offset_error(units, which));
        }
        let Interval { months, days, microseconds } = span;
        **distance = Expr::Interval(ast::Interval {
            value: Box::new(text(format!("{months} months {days} days {microseconds} microseconds"))),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        });
    }
    Ok(())
}

/// Parses an interval literal.
fn parse_interval_literal(expr: &Expr) -> SqlResult<Option<Interval>> {
    match expr {
        Expr::Interval(interval) => parse_interval_literal(&interval_literal(interval)?),
        Expr::Cast { expr, data_type: DataType::Interval { .. }, .. } => match expr.as_ref() {
            Expr::Value(value) => value.value.clone().into_string().map(|text| parse_interval(&text)).transpose(),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn negative_offset_error(units: WindowFrameUnits, which: &str) -> SqlError {
    let message = match units {
        WindowFrameUnits::Range => "invalid preceding or following size in window function".to_owned(),
        WindowFrameUnits::Rows | WindowFrameUnits::Groups => format!("frame {which} offset must not be negative"),
    };
    SqlError::new(Condition::InvalidPrecedingOrFollowingSize, message)
}
