//! Aggregates of intervals: `sum` and `avg` part by part, `min` and `max` by length.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use types::{Interval, SqlError};

use super::sum::Kind;
use crate::functions::external;

/// The sum of the intervals so far.
#[derive(Debug)]
pub(super) struct SpanAccumulator {
    kind: Kind,
    total: Interval,
    count: i64,
}

impl SpanAccumulator {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, total: Interval::default(), count: 0 }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        for span in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let span = Interval::from_month_day_nano(span.months, span.days, span.nanoseconds);
            self.total = self.total.checked_add(span).map_err(external)?;
        }
        Ok(())
    }
}

fn scalar(value: Interval) -> Result<ScalarValue> {
    let (months, days, nanoseconds) = value.to_month_day_nano().map_err(external)?;
    Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanoseconds))))
}

impl Accumulator for SpanAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])?;
        self.count += i64::try_from(values[0].len() - values[0].null_count())
            .map_err(|_| external(SqlError::internal("too many rows")))?;
        Ok(())
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
            (_, Kind::Sum) => scalar(self.total),
            (count, Kind::Average) => scalar(self.total.divide(count as f64).map_err(external)?),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The shortest or the longest of the intervals so far; of several alike the first.
#[derive(Debug)]
pub(super) struct ExtremeSpan {
    longest: bool,
    best: Option<Interval>,
}

impl ExtremeSpan {
    pub(super) fn new(longest: bool) -> Self {
        Self { longest, best: None }
    }
}

impl Accumulator for ExtremeSpan {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for span in values[0].as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let span = Interval::from_month_day_nano(span.months, span.days, span.nanoseconds);
            let is_better = self.best.is_none_or(|best| {
                if self.longest { best.span_us() < span.span_us() } else { span.span_us() < best.span_us() }
            });
            if is_better {
                self.best = Some(span);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.evaluate().map(|best| vec![best])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.best.map_or(Ok(ScalarValue::IntervalMonthDayNano(None)), scalar)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// What a value is told apart by: of an interval the length.
pub(super) fn identity(value: &ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::IntervalMonthDayNano(Some(span)) => {
            let length = Interval::from_month_day_nano(span.months, span.days, span.nanoseconds).span_us();
            ScalarValue::Decimal128(Some(length), 38, 0)
        }
        other => other.clone(),
    }
}

/// The lengths of an array of intervals; other arrays as they are.
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
