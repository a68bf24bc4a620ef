//! Parts of dates and of moments.

use std::sync::Arc;

use types::DatePart;
use types::text::US_PER_DAY;

use super::Computed;
use crate::{Bounds, Column, Data, Error, Result};

/// What dates and moments count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    Days,
    Microseconds,
}

/// The part of each value, as a number or as `float8`.
pub(super) fn part(value: Computed, part: DatePart, unit: TimeUnit, is_float: bool) -> Result<Computed> {
    let Computed { column: Column { data: Data::Ints { values, bounds }, validity }, is_scalar } = value else {
        return Err(Error::Form("a date or a moment"));
    };
    let (first, last) = match unit {
        TimeUnit::Days => (bounds.min, bounds.max),
        TimeUnit::Microseconds => (bounds.min.div_euclid(US_PER_DAY.into()), bounds.max.div_euclid(US_PER_DAY.into())),
    };
    if i32::try_from(first).is_err() || i32::try_from(last).is_err() {
        return Err(Error::Value("beyond all dates"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the bounds are days of 32 bits")]
    let of = |value: i64| match unit {
        TimeUnit::Days => part.of(value as i32, 0),
        TimeUnit::Microseconds => part.of(value.div_euclid(US_PER_DAY) as i32, value.rem_euclid(US_PER_DAY)),
    };
    let parts = values.iter().map(|value| of(*value));
    let data = if is_float {
        #[expect(clippy::cast_precision_loss, reason = "parts of dates are small")]
        Data::Floats(Arc::new(parts.map(|part| part as f64).collect()))
    } else {
        let values: Vec<i64> = parts.collect();
        let (min, max) = values.iter().fold((0, 0), |(min, max), value| ((*value).min(min), (*value).max(max)));
        Data::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } }
    };
    Ok(Computed { column: Column { data, validity }, is_scalar })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_moments_before_1970() {
        // A minute and a second before 1970.
        let values = Arc::new(vec![-61_000_000]);
        let value = Column::new(Data::Ints { values, bounds: Bounds::of(-61_000_000) });
        for (of, expected) in [(DatePart::Hour, 23), (DatePart::Minute, 58), (DatePart::Year, 1969)] {
            let value = Computed { column: value.clone(), is_scalar: false };
            let computed = part(value, of, TimeUnit::Microseconds, false).unwrap();
            let Data::Ints { values, .. } = &computed.column.data else { panic!("numbers") };
            assert_eq!(values.as_slice(), [expected], "{of:?}");
        }
    }
}
