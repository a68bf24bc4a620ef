//! Keys as words of 64 bits: equal keys have equal words.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, StringViewArray};

use super::state::narrowest;
use crate::{Bits, Bounds, Column, Data, Error, Form, NONE, Result, Strings, TextNumbers};

/// How a key's values became words, to make values of words again. Takes its form from the first batch.
#[derive(Debug, Default)]
pub(super) enum KeyForm {
    #[default]
    Unknown,
    Bools,
    Ints,
    /// Two words.
    Wide,
    Floats,
    Texts(Box<Numbered>),
    /// Codes of strings that all groups share; no batch has this form.
    Codes(Arc<Strings>),
}

/// One word of each row, and the least and greatest there may be.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) values: Arc<Vec<i64>>,
    /// `None` where they are spread over all 64 bits.
    pub(super) bounds: Option<Bounds>,
}

/// Strings, each with a number.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    numbers: TextNumbers,
    /// The numbers of shared strings' codes.
    remembered: HashMap<u64, Arc<CodeNumbers>>,
}

/// The numbers of shared strings, by their codes.
#[derive(Debug)]
struct CodeNumbers {
    numbers: Vec<i64>,
    /// Each is its code: most often, as blocks have the same strings in the same order.
    are_codes: bool,
}

/// Strings' codes that are remembered.
const REMEMBERED_MAX: usize = 1_024;

impl From<Form> for KeyForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Bools => Self::Bools,
            Form::Ints => Self::Ints,
            Form::Wide => Self::Wide,
            Form::Floats => Self::Floats,
            Form::Texts => Self::Texts(Box::default()),
            // Its words are asked for next, and there are none.
            Form::Opaque => Self::Unknown,
        }
    }
}

impl KeyForm {
    /// The same form, without a value yet.
    pub(super) fn empty(&self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Bools => Self::Bools,
            Self::Ints => Self::Ints,
            Self::Wide => Self::Wide,
            Self::Floats => Self::Floats,
            Self::Texts(_) => Self::Texts(Box::default()),
            Self::Codes(strings) => Self::Codes(Arc::clone(strings)),
        }
    }

    /// Whether words are values, in their order.
    pub(super) fn is_integer(&self) -> bool {
        matches!(self, Self::Ints)
    }

    /// How many words a value has; with what there is a null.
    pub(super) fn words(&self) -> usize {
        if matches!(self, Self::Wide) { 2 } else { 1 }
    }

    /// Takes the form of a column.
    pub(super) fn take(&mut self, column: &Column) {
        if matches!(self, Self::Unknown) {
            *self = Self::from(Form::of(column));
        }
    }

    /// The words of a column's rows; that of a NULL is 0.
    pub(super) fn of(&mut self, column: &Column) -> Result<Vec<Words>> {
        let valid = column.validity.as_deref();
        Ok(match (self, &column.data) {
            (Self::Bools, Data::Bools(bits)) => {
                let values = (0..bits.rows()).map(|row| i64::from(bits.get(row))).collect();
                vec![cleared(Arc::new(values), Some(Bounds { min: 0, max: 1 }), valid)]
            }
            (Self::Ints, Data::Ints { values, bounds }) => vec![cleared(Arc::clone(values), Some(*bounds), valid)],
            (Self::Wide, Data::Ints { values, bounds }) => vec![
                cleared(Arc::clone(values), Some(*bounds), valid),
                cleared(Arc::new(values.iter().map(|value| value >> 63).collect()), Some(upper_halves(*bounds)), valid),
            ],
            (Self::Wide, Data::Wide(values)) => wide(values, valid),
            (Self::Floats, Data::Floats(values)) => {
                let values = values.iter().map(|value| float_word(*value)).collect();
                vec![cleared(Arc::new(values), None, valid)]
            }
            (Self::Texts(numbered), Data::Codes { codes, strings }) => {
                let numbers = numbered.of_strings(strings)?;
                let values = if numbers.are_codes {
                    codes.iter().map(|code| i64::from(*code)).collect()
                } else {
                    let number = |code: &u32| numbers.numbers.get(*code as usize).copied().unwrap_or_default();
                    codes.iter().map(number).collect()
                };
                vec![cleared(Arc::new(values), Some(numbered.bounds()), valid)]
            }
            (Self::Texts(numbered), Data::Texts(texts)) => {
                let mut values = Vec::with_capacity(texts.len());
                for row in 0..texts.len() {
                    let is_null = valid.is_some_and(|bits| !bits.get(row));
                    values.push(if is_null { 0 } else { numbered.numbers.number(texts.value(row))?.into() });
                }
                vec![Words { values: Arc::new(values), bounds: Some(numbered.bounds()) }]
            }
            _ => return Err(Error::Form("keys of several forms")),
        })
    }

    /// The strings whose numbers words are; `None` where words are no numbers of strings.
    pub(super) fn texts(&self) -> Option<&TextNumbers> {
        if let Self::Texts(numbered) = self { Some(&numbered.numbers) } else { None }
    }

    /// The words of the values that another's words stand for; `is_null` tells of a key's last word whether its value here is NULL.
    pub(super) fn translate(
        &mut self,
        other: &Self,
        words: &mut [i64],
        stride: usize,
        at: usize,
        is_null: impl Fn(i64) -> bool,
    ) -> Result<()> {
        if matches!(self, Self::Unknown) {
            *self = other.empty();
        }
        let (Self::Texts(mine), Self::Texts(theirs)) = (&mut *self, other) else {
            return if std::mem::discriminant(self) == std::mem::discriminant(other) {
                Ok(())
            } else {
                Err(Error::Form("keys of several forms"))
            };
        };
        let mut numbers = vec![NONE; theirs.numbers.len()];
        for key in words.chunks_exact_mut(stride) {
            // A NULL has the word 0 everywhere, whatever string has the number 0.
            let nulls = key[stride - 1];
            let word = &mut key[at];
            if !is_null(nulls) {
                let at = usize::try_from(*word).ok().filter(|at| *at < numbers.len());
                let at = at.ok_or(Error::Form("a string's number"))?;
                if numbers[at] == NONE {
                    numbers[at] = mine.numbers.number(theirs.numbers.get(at))?;
                }
                *word = numbers[at].into();
            }
        }
        Ok(())
    }

    /// The values of words: of each group the word or words at `at`.
    pub(super) fn values(&self, words: &[i64], stride: usize, at: usize) -> Result<Data> {
        let firsts = || words.iter().skip(at).step_by(stride).copied();
        Ok(match self {
            Self::Unknown => Data::Ints { values: Arc::default(), bounds: Bounds::of(0) },
            Self::Bools => {
                let values: Vec<i64> = firsts().collect();
                Data::Bools(Arc::new(Bits::of_values(&values, |value| value != 0)))
            }
            Self::Ints => {
                let values: Vec<i64> = firsts().collect();
                let (min, max) = values.iter().fold((0, 0), |(min, max), value| (*value.min(&min), *value.max(&max)));
                Data::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } }
            }
            Self::Wide => {
                let seconds = words.iter().skip(at + 1).step_by(stride);
                #[expect(clippy::cast_sign_loss, reason = "the lower half of 128 bits")]
                let value = |(low, high): (i64, &i64)| i128::from(*high) << 64 | i128::from(low as u64);
                narrowest(firsts().zip(seconds).map(value).collect())
            }
            #[expect(clippy::cast_sign_loss, reason = "a word is the bits of a number")]
            Self::Floats => Data::Floats(Arc::new(firsts().map(|word| f64::from_bits(word as u64)).collect())),
            Self::Texts(numbered) => {
                Data::Codes { codes: codes(firsts())?, strings: Strings::new(numbered.numbers.array()) }
            }
            Self::Codes(strings) => Data::Codes { codes: codes(firsts())?, strings: Arc::clone(strings) },
        })
    }

    /// As [`KeyForm::values`], of few groups: strings that none of them has are left alone.
    pub(super) fn few_values(&self, words: &[i64], stride: usize, at: usize) -> Result<Data> {
        let Self::Texts(numbered) = self else { return self.values(words, stride, at) };
        let text = |word: &i64| {
            let number = usize::try_from(*word).ok().filter(|number| *number < numbered.numbers.len());
            number.map_or("", |number| numbered.numbers.get(number))
        };
        let texts = words.iter().skip(at).step_by(stride).map(text);
        Ok(Data::Texts(StringViewArray::from_iter_values(texts)))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Texts(numbered) => numbered.numbers.memory_bytes(),
            _ => 0,
        }
    }
}

fn codes(words: impl Iterator<Item = i64>) -> Result<Arc<Vec<u32>>> {
    let code = |word| u32::try_from(word).map_err(|_| Error::Form("a string's number"));
    Ok(Arc::new(words.map(code).collect::<Result<_>>()?))
}

/// Words with 0 where there is a NULL, which the null word tells from a value of 0.
fn cleared(values: Arc<Vec<i64>>, bounds: Option<Bounds>, valid: Option<&Bits>) -> Words {
    let Some(valid) = valid else { return Words { values, bounds } };
    let values: Vec<i64> =
        values.iter().enumerate().map(|(row, value)| if valid.get(row) { *value } else { 0 }).collect();
    Words { values: Arc::new(values), bounds: bounds.map(|bounds| bounds.or(Bounds::of(0))) }
}

/// The words of numbers of 128 bits: their halves, the lower first, so that ascending keys widen the first word's range.
fn wide(values: &[i128], valid: Option<&Bits>) -> Vec<Words> {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (high, low): (Vec<i64>, Vec<i64>) = values.iter().map(|value| ((value >> 64) as i64, *value as i64)).unzip();
    vec![cleared(Arc::new(low), None, valid), cleared(Arc::new(high), None, valid)]
}

/// The upper halves of numbers that 64 bits hold.
fn upper_halves(bounds: Bounds) -> Bounds {
    Bounds { min: bounds.min >> 64, max: bounds.max >> 64 }
}

/// One word for -0 and 0, and one for all that are no numbers.
pub(crate) fn float_word(value: f64) -> i64 {
    let one = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN
    } else {
        value
    };
    one.to_bits().cast_signed()
}

impl Numbered {
    /// Of the numbers there are, and a few that there may be soon.
    fn bounds(&self) -> Bounds {
        Bounds { min: 0, max: self.numbers.len() as i128 }
    }

    /// The numbers of all strings, by their codes.
    fn of_strings(&mut self, strings: &Strings) -> Result<Arc<CodeNumbers>> {
        if let Some(numbers) = self.remembered.get(&strings.id()) {
            return Ok(Arc::clone(numbers));
        }
        let values = strings.values();
        let number = |code: usize| self.numbers.number(values.value(code)).map(i64::from);
        let numbers = (0..values.len()).map(number).collect::<Result<Vec<i64>>>()?;
        // Without strings a code may be any.
        let are_codes = !numbers.is_empty() && (0..).zip(&numbers).all(|(code, number): (i64, &i64)| code == *number);
        let numbers = Arc::new(CodeNumbers { numbers, are_codes });
        if REMEMBERED_MAX <= self.remembered.len() {
            self.remembered.clear();
        }
        self.remembered.insert(strings.id(), Arc::clone(&numbers));
        Ok(numbers)
    }
}
