//! Fields of dates and timestamps, and addition of intervals.

use std::sync::Arc;

use types::text::US_PER_DAY;
use types::{DatePart, Interval};

use super::columnar_value::ColumnarValue;
use crate::{Bounds, Column, ColumnData, Error, Result};

/// Unit in which a date or timestamp is stored, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Days of a date.
    Days,
    /// Microseconds of a timestamp.
    Microseconds,
}

/// Extracts a field from each date or timestamp, as an integer or a `float8`.
pub(super) fn extract(value: ColumnarValue, part: DatePart, unit: TimeUnit, is_float: bool) -> Result<ColumnarValue> {
    let ColumnarValue { column: Column { data: ColumnData::Ints { values, bounds }, validity }, is_scalar } = value
    else {
        return Err(Error::Internal("the argument of EXTRACT is no date or timestamp"));
    };
    let (first, last) = match unit {
        TimeUnit::Days => (bounds.min, bounds.max),
        TimeUnit::Microseconds => (bounds.min.div_euclid(US_PER_DAY.into()), bounds.max.div_euclid(US_PER_DAY.into())),
    };
    if i32::try_from(first).is_err() || i32::try_from(last).is_err() {
        return Err(Error::UncomputableValue("a date is out of range"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the bounds are days of 32 bits")]
    let of = |value: i64| match unit {
        TimeUnit::Days => part.extract(value as i32, 0),
        TimeUnit::Microseconds => part.extract(value.div_euclid(US_PER_DAY) as i32, value.rem_euclid(US_PER_DAY)),
    };
    let parts = values.iter().map(|value| of(*value));
    let data = if is_float {
        #[expect(clippy::cast_precision_loss, reason = "parts of dates are small")]
        ColumnData::Floats(Arc::new(parts.map(|part| part as f64).collect()))
    } else {
        let values: Vec<i64> = parts.collect();
        let (min, max) = values.iter().fold((0, 0), |(min, max), value| ((*value).min(min), (*value).max(max)));
        ColumnData::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } }
    };
    Ok(ColumnarValue { column: Column { data, validity }, is_scalar })
}

/// Adds an interval to each date or timestamp.
pub(super) fn add_interval(value: ColumnarValue, unit: TimeUnit, by: Interval) -> Result<ColumnarValue> {
    let ColumnarValue { column: Column { data: ColumnData::Ints { values, bounds }, validity }, is_scalar } = value
    else {
        return Err(Error::Internal("an interval is added to no date or timestamp"));
    };
    let units: i64 = match unit {
        TimeUnit::Days => US_PER_DAY,
        TimeUnit::Microseconds => 1,
    };
    let later = |us: i64| by.add_to_timestamp(us).ok();
    let end = |end: i128| i64::try_from(end).ok().and_then(|end| later(end.checked_mul(units)?));
    let ends = end(bounds.min).zip(end(bounds.max));
    // Adding months may move several days to the last day of a shorter month and keeps their time of day, so results
    // may exceed the shifted bounds by up to a day.
    let slack = if by.months == 0 { 0 } else { i128::from(US_PER_DAY) };
    let bounds =
        ends.map_or(Bounds::I64, |(min, max)| Bounds { min: i128::from(min) - slack, max: i128::from(max) + slack });
    let shift = (by.months == 0).then(|| i64::from(by.days).checked_mul(US_PER_DAY)?.checked_add(by.microseconds));
    let values = match (shift.flatten(), ends) {
        // Results between two valid bounds are valid.
        (Some(shift), Some(_)) => values.iter().map(|value| value * units + shift).collect(),
        _ => {
            let is_null = |row: usize| validity.as_ref().is_some_and(|bits| !bits.get(row));
            let moment = |(row, value): (usize, &i64)| match value.checked_mul(units).and_then(later) {
                Some(moment) => Ok(moment),
                None if is_null(row) => Ok(ends.map_or(0, |(min, _)| min)),
                None => Err(Error::UncomputableValue("a timestamp is out of range")),
            };
            values.iter().enumerate().map(moment).collect::<Result<Vec<_>>>()?
        }
    };
    Ok(ColumnarValue {
        column: Column { data: ColumnData::Ints { values: Arc::new(values), bounds }, validity },
        is_scalar,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_added_within_bounds() {
        let hour = US_PER_DAY / 24;
        // The timestamps 2001-01-30 23:00, 2001-01-31 01:00 and 2001-03-01 00:00.
        let all = [11_352 * US_PER_DAY + 23 * hour, 11_353 * US_PER_DAY + hour, 11_382 * US_PER_DAY];
        let bounds = Bounds { min: all[0].into(), max: all[2].into() };
        let value = Column::new(ColumnData::Ints { values: Arc::new(all.to_vec()), bounds });
        for by in [Interval::new(1, 0, 0), Interval::new(-1, 3, -hour), Interval::new(0, 40, hour)] {
            let given =
                add_interval(ColumnarValue { column: value.clone(), is_scalar: false }, TimeUnit::Microseconds, by)
                    .unwrap();
            let ColumnData::Ints { values, bounds } = &given.column.data else { panic!("moments") };
            assert_eq!(values.as_slice(), all.map(|us| by.add_to_timestamp(us).unwrap()), "{by:?}");
            assert!(values.iter().all(|us| bounds.min <= (*us).into() && i128::from(*us) <= bounds.max), "{by:?}");
        }
        let last =
            Column::new(ColumnData::Ints { values: Arc::new(vec![2_932_896]), bounds: Bounds::from_value(2_932_896) });
        let last = || ColumnarValue { column: last.clone(), is_scalar: false };
        assert!(add_interval(last(), TimeUnit::Days, Interval::new(0, 0, hour)).is_ok());
        assert!(matches!(
            add_interval(last(), TimeUnit::Days, Interval::new(0, 1, 0)),
            Err(Error::UncomputableValue(_))
        ));
    }

    #[test]
    fn parts_of_moments_before_1970() {
        // One minute and one second before 1970.
        let values = Arc::new(vec![-61_000_000]);
        let value = Column::new(ColumnData::Ints { values, bounds: Bounds::from_value(-61_000_000) });
        for (of, expected) in [(DatePart::Hour, 23), (DatePart::Minute, 58), (DatePart::Year, 1969)] {
            let value = ColumnarValue { column: value.clone(), is_scalar: false };
            let computed = extract(value, of, TimeUnit::Microseconds, false).unwrap();
            let ColumnData::Ints { values, .. } = &computed.column.data else { panic!("numbers") };
            assert_eq!(values.as_slice(), [expected], "{of:?}");
        }
    }
}
