//! Estimates of the values of one column.

use std::sync::Arc;

use datafusion::common::ScalarValue;

/// Estimate of the values of one column of a plan.
#[derive(Debug, Clone)]
pub struct ColumnEstimate {
    /// Number of distinct non-NULL values among the plan's rows.
    pub distinct: f64,
    /// Number of distinct values without conditions on other columns: the set that the other side of a join draws from.
    pub domain: f64,
    /// Fraction of rows that are NULL.
    pub nulls: f64,
    /// Lower bound, for types whose values can be placed on a line.
    pub min: Option<f64>,
    /// Upper bound, likewise.
    pub max: Option<f64>,
    /// Frequent values, each with its fraction of the rows.
    pub frequent: Arc<[(ScalarValue, f64)]>,
    /// Bytes of a value in memory.
    pub width: f64,
}

impl ColumnEstimate {
    /// Creates the estimate of a column of `rows` rows without statistics: all values are distinct.
    #[must_use]
    pub fn unknown(rows: f64) -> Self {
        let distinct = rows.max(1.0);
        Self { distinct, domain: distinct, nulls: 0.0, min: None, max: None, frequent: Arc::new([]), width: 8.0 }
    }

    /// Reduces the distinct values for a random selection of `after` out of `before` rows (Cardenas' formula).
    pub fn select_randomly(&mut self, before: f64, after: f64) {
        if before <= 0.0 || self.distinct <= 0.0 {
            return;
        }
        let rows_per_value = (before / self.distinct).max(1.0);
        let fraction = (after / before).clamp(0.0, 1.0);
        self.distinct = (self.distinct * (1.0 - (1.0 - fraction).powf(rows_per_value))).min(after.max(1.0)).max(1.0);
    }

    /// Reduces the distinct values to a fraction, for a condition on the column itself.
    pub fn scale_distinct(&mut self, share: f64) {
        self.distinct = (self.distinct * share).max(1.0);
        self.domain = (self.domain * share).max(1.0);
        self.frequent = Arc::new([]);
    }

    /// Intersects the bounds with a range; the distinct values must be reduced separately, see [`ColumnEstimate::scale_distinct`].
    pub fn intersect_bounds(&mut self, low: f64, high: f64) {
        if let (Some(min), Some(max)) = (self.min, self.max)
            && low.max(min) <= high.min(max)
        {
            (self.min, self.max) = (Some(low.max(min)), Some(high.min(max)));
        }
    }

    /// Restricts the column to a range; `before` is its estimate without any condition.
    pub fn restrict_to_range(&mut self, before: &ColumnEstimate, low: f64, high: f64) {
        if let (Some(min), Some(max)) = (before.min, before.max)
            && min < max
        {
            let share = ((high - low) / (max - min)).clamp(0.0, 1.0);
            self.domain = self.domain.min(before.domain * share).max(1.0);
            self.distinct = self.distinct.min(self.domain);
        }
        let (min, max) = (self.min.map_or(low, |min| min.max(low)), self.max.map_or(high, |max| max.min(high)));
        (self.min, self.max) = if min <= max { (Some(min), Some(max)) } else { (Some(low), Some(high)) };
    }

    /// Estimates the column of a UNION ALL of several inputs.
    #[must_use]
    pub fn union<'a>(inputs: impl Iterator<Item = &'a ColumnEstimate>) -> ColumnEstimate {
        inputs
            .cloned()
            .reduce(|a, b| ColumnEstimate {
                // The inputs of a union mostly draw from one set of values.
                distinct: a.distinct.max(b.distinct),
                domain: a.domain.max(b.domain),
                nulls: f64::midpoint(a.nulls, b.nulls),
                min: a.min.zip(b.min).map(|(a, b)| a.min(b)),
                max: a.max.zip(b.max).map(|(a, b)| a.max(b)),
                frequent: Arc::new([]),
                width: a.width.max(b.width),
            })
            .unwrap_or_else(|| ColumnEstimate::unknown(1.0))
    }
}

/// Returns the position of a value on a line; `None` for NULL and types without one.
#[must_use]
pub fn position(value: &ScalarValue) -> Option<f64> {
    Some(match value {
        ScalarValue::Boolean(value) => f64::from(u8::from((*value)?)),
        ScalarValue::Int16(value) => f64::from((*value)?),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => f64::from((*value)?),
        ScalarValue::Int64(value)
        | ScalarValue::Time64Microsecond(value)
        | ScalarValue::TimestampMicrosecond(value, _) => (*value)? as f64,
        ScalarValue::Float32(value) => f64::from((*value)?),
        ScalarValue::Float64(value) => (*value)?,
        ScalarValue::Decimal128(value, _, scale) => (*value)? as f64 / 10f64.powi(i32::from(*scale)),
        _ => return None,
    })
}
