//! Rows of random values, and batches of random physical representation.

use std::sync::Arc;

use arrow::array::StringViewArray;

use super::Random;
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, PhysicalType};

#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(i128),
    Float(f64),
    Text(String),
}

impl Value {
    pub(super) fn equals(&self, other: &Self, nulls_are_equal: bool) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => nulls_are_equal,
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => self == other,
        }
    }
}

/// Distribution of the values of a key column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keys {
    Bools,
    Dense,
    Sparse,
    Extreme,
    /// Numbers that randomly use 64 or 128 bits.
    Mixed,
    Huge,
    Floats,
    Texts,
}

impl Keys {
    pub(super) fn form(self) -> PhysicalType {
        match self {
            Self::Bools => PhysicalType::Bools,
            Self::Dense | Self::Sparse | Self::Extreme => PhysicalType::Ints,
            Self::Mixed | Self::Huge => PhysicalType::WideInts,
            Self::Floats => PhysicalType::Floats,
            Self::Texts => PhysicalType::Texts,
        }
    }

    pub(super) fn value(self, spread: u64, chance: &mut Random) -> Value {
        let small = i128::from(chance.below(spread));
        match self {
            Self::Bools => Value::Bool(small % 2 == 0),
            Self::Dense => Value::Number(small - 7),
            Self::Sparse => Value::Number(small * 1_000_003_000_017 - 5_000_000),
            Self::Extreme => Value::Number(match small {
                0 => i128::from(i64::MIN),
                1 => i128::from(i64::MAX),
                2 => i128::from(i64::MIN) + 1,
                3 => i128::from(i64::MAX) - 1,
                small => small - 5,
            }),
            Self::Mixed => Value::Number(small * 3),
            Self::Huge => Value::Number((small - 2) * (i128::MAX / 100_000) + small % 3),
            Self::Floats => Value::Float(match small {
                0 => f64::NAN,
                1 => -f64::NAN,
                2 => 0.0,
                3 => -0.0,
                4 => f64::INFINITY,
                5 => f64::NEG_INFINITY,
                small => small as f64 / 8.0 - 1.0,
            }),
            Self::Texts => Value::Text(match small {
                0 => String::new(),
                small if small % 2 == 0 => format!("a text that is longer than a view {small}"),
                small => format!("t{small}"),
            }),
        }
    }
}

/// Converts values to a column with a randomly chosen representation.
pub(super) fn column(values: &[Value], form: PhysicalType, chance: &mut Random) -> Column {
    let validity = if values.contains(&Value::Null) || chance.below(4) == 0 {
        Some(Arc::new(Bitmap::from_fn(values.len(), |row| values[row] != Value::Null)))
    } else {
        None
    };
    let number = |value: &Value| if let Value::Number(number) = value { *number } else { 3 };
    let text = |value: &Value| if let Value::Text(text) = value { text.clone() } else { String::new() };
    let data = match form {
        PhysicalType::Opaque => panic!("opaque values are not compared"),
        PhysicalType::Bools => {
            ColumnData::Bools(Arc::new(Bitmap::from_fn(values.len(), |row| values[row] != Value::Bool(false))))
        }
        PhysicalType::WideInts
            if chance.below(2) == 0 || values.iter().any(|value| i64::try_from(number(value)).is_err()) =>
        {
            ColumnData::WideInts(Arc::new(values.iter().map(number).collect()))
        }
        PhysicalType::Ints | PhysicalType::WideInts => ColumnData::Ints {
            values: Arc::new(values.iter().map(|value| i64::try_from(number(value)).expect("narrow")).collect()),
            bounds: Bounds::I64,
        },
        PhysicalType::Floats => {
            let float = |value: &Value| if let Value::Float(float) = value { *float } else { f64::NAN };
            ColumnData::Floats(Arc::new(values.iter().map(float).collect()))
        }
        PhysicalType::Texts if chance.below(3) == 0 => {
            ColumnData::Texts(StringViewArray::from_iter_values(values.iter().map(text)))
        }
        PhysicalType::Texts => {
            let mut strings: Vec<String> = values.iter().filter(|value| **value != Value::Null).map(text).collect();
            strings.sort();
            strings.dedup();
            if chance.below(2) == 0 {
                strings.reverse();
            }
            let code = |value: &Value| strings.iter().position(|string| *string == text(value)).unwrap_or(0) as u32;
            let codes = values.iter().map(code).collect();
            ColumnData::Dictionary {
                indices: Arc::new(codes),
                dictionary: Dictionary::new(StringViewArray::from_iter_values(&strings)),
            }
        }
    };
    Column { data, validity }
}

pub(super) fn value(column: &Column, row: usize) -> Value {
    if !column.is_valid(row) {
        return Value::Null;
    }
    match &column.data {
        ColumnData::Bools(bits) => Value::Bool(bits.get(row)),
        ColumnData::Ints { values, bounds } => {
            let value = i128::from(values[row]);
            assert!(bounds.min <= value && value <= bounds.max, "{value} out of {bounds:?}");
            Value::Number(value)
        }
        ColumnData::WideInts(values) => Value::Number(values[row]),
        ColumnData::Floats(values) => Value::Float(values[row]),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            Value::Text(strings.get(codes[row]).to_owned())
        }
        ColumnData::Texts(texts) => Value::Text(texts.value(row).to_owned()),
        ColumnData::Opaque(_) => panic!("opaque values are not compared"),
    }
}

pub(super) type Row = Vec<Value>;

/// Returns rows of random keys and a number; `nulls` is the percentage of NULL keys.
pub(super) fn rows(keys: &[Keys], count: usize, spread: u64, nulls: u64, chance: &mut Random) -> Vec<Row> {
    let row = |chance: &mut Random| {
        let key = |keys: &Keys, chance: &mut Random| {
            if chance.below(100) < nulls { Value::Null } else { keys.value(spread, chance) }
        };
        let mut row: Row = keys.iter().map(|keys| key(keys, chance)).collect();
        row.push(Value::Number(i128::from(chance.below(1000))));
        row
    };
    (0..count).map(|_| row(chance)).collect()
}

pub(super) fn forms(keys: &[Keys]) -> Vec<PhysicalType> {
    keys.iter().map(|keys| keys.form()).chain([PhysicalType::Ints]).collect()
}

pub(super) fn batch(rows: &[Row], forms: &[PhysicalType], chance: &mut Random) -> Batch {
    let of = |(position, form): (usize, &PhysicalType)| {
        let values: Vec<Value> = rows.iter().map(|row| row[position].clone()).collect();
        column(&values, *form, chance)
    };
    Batch { rows: rows.len(), columns: forms.iter().enumerate().map(of).collect() }
}

/// Splits rows into batches of random length.
pub(super) fn batches(rows: &[Row], forms: &[PhysicalType], chance: &mut Random) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((1 + chance.below(100) as usize).min(rest.len()));
        batches.push(batch(now, forms, chance));
        rest = later;
    }
    batches
}
