//! Aggregates of intervals: `sum` and `avg` by component, `min` and `max` by length.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use types::{Interval, SqlError};

use super::sum_avg::TotalKind;
use crate::external;

/// Accumulator of `sum` and `avg` of intervals.
#[derive(Debug)]
pub(super) struct IntervalTotal {
    kind: TotalKind,
    total: Interval,
    count: i64,
}

impl IntervalTotal {
    pub(super) fn new(kind: TotalKind) -> Self {
        Self { kind, total: Interval::default(), count: 0 }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        for span in intervals(values) {
            self.total = self.total.checked_add(span).map_err(external)?;
        }
        Ok(())
    }
}

/// Iterates over the intervals that are not NULL.
fn intervals(values: &ArrayRef) -> impl Iterator<Item = Interval> {
    let spans = values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten();
    spans.map(|span| Interval::from_month_day_nano(span.months, span.days, span.nanoseconds))
}

fn scalar(value: Interval) -> Result<ScalarValue> {
    let (months, days, nanoseconds) = value.to_month_day_nano().map_err(external)?;
    Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanoseconds))))
}

impl Accumulator for IntervalTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])?;
        self.count += i64::try_from(values[0].len() - values[0].null_count())
            .map_err(|_| external(SqlError::internal("avg of intervals: the row count of a batch exceeds 64 bits")))?;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for span in intervals(&values[0]) {
            self.total = self.total.checked_sub(span).map_err(external)?;
            self.count -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(&states[0])?;
        self.count += states[1].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![scalar(self.total)?, ScalarValue::Int64(Some(self.count))])
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        match (self.count, self.kind) {
            (0, _) => Ok(ScalarValue::IntervalMonthDayNano(None)),
            (_, TotalKind::Sum) => scalar(self.total),
            (count, TotalKind::Average) => scalar(self.total.divide(count as f64).map_err(external)?),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Accumulator of `min` or `max` of intervals; the first of several equal ones wins.
#[derive(Debug)]
pub(super) struct IntervalExtreme {
    is_max: bool,
    extreme: Option<Interval>,
}

impl IntervalExtreme {
    pub(super) fn new(is_max: bool) -> Self {
        Self { is_max, extreme: None }
    }
}

impl Accumulator for IntervalExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.extreme =
            intervals(&values[0]).fold(self.extreme, |best, span| Some(longest_or_shortest(best, span, self.is_max)));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.evaluate().map(|best| vec![best])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.extreme.map_or(Ok(ScalarValue::IntervalMonthDayNano(None)), scalar)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

fn longest_or_shortest(best: Option<Interval>, span: Interval, is_max: bool) -> Interval {
    let is_better = |best: &Interval| match is_max {
        true => best.span_us() < span.span_us(),
        false => span.span_us() < best.span_us(),
    };
    best.filter(|best| !is_better(best)).unwrap_or(span)
}

/// Accumulator of `min` or `max` of intervals over a moving window frame.
#[derive(Debug)]
pub(super) struct SlidingIntervalExtreme {
    is_max: bool,
    frame_intervals: VecDeque<Interval>,
}

impl SlidingIntervalExtreme {
    pub(super) fn new(is_max: bool) -> Self {
        Self { is_max, frame_intervals: VecDeque::new() }
    }
}

impl Accumulator for SlidingIntervalExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.frame_intervals.extend(intervals(&values[0]));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.frame_intervals.drain(..intervals(&values[0]).count());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best =
            self.frame_intervals.iter().fold(None, |best, span| Some(longest_or_shortest(best, *span, self.is_max)));
        best.map_or(Ok(ScalarValue::IntervalMonthDayNano(None)), scalar)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_partial_state())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(no_partial_state())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.frame_intervals.capacity() * size_of::<Interval>()
    }
}

/// Builds the internal error for a partial state requested from a window accumulator, which has none.
pub(super) fn no_partial_state() -> DataFusionError {
    external(SqlError::internal(
        "a partial state was requested from an aggregate over a moving window frame, which has none",
    ))
}

/// Returns the comparison key of a value: the length of an interval, other values unchanged.
pub(super) fn comparison_key(value: &ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::IntervalMonthDayNano(Some(span)) => {
            let length = Interval::from_month_day_nano(span.months, span.days, span.nanoseconds).span_us();
            ScalarValue::Decimal128(Some(length), 38, 0)
        }
        other => other.clone(),
    }
}

/// Returns the comparison keys of an array: the lengths of intervals, other arrays unchanged.
pub(super) fn sort_keys(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Interval(_) => {
            let spans = values.as_primitive::<IntervalMonthDayNanoType>().iter();
            let length = |span: IntervalMonthDayNano| {
                Interval::from_month_day_nano(span.months, span.days, span.nanoseconds).span_us()
            };
            Arc::new(spans.map(|span| span.map(length)).collect::<Decimal128Array>())
        }
        _ => Arc::clone(values),
    }
}
