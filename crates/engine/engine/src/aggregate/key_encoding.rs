//! Group keys encoded as 64-bit words, so that equal keys have equal words.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, StringViewArray};

use super::aggregate_state::narrowest_data;
use crate::{Bitmap, Bounds, Column, ColumnData, Dictionary, Error, NONE, PhysicalType, Result, StringInterner};

/// Encoding of a key's values as words, and back. The first batch determines the form unless it is known before.
#[derive(Debug, Default)]
pub(super) enum KeyEncoding {
    #[default]
    /// No batch has come yet.
    Unknown,
    Bools,
    Ints,
    /// 128-bit integers, as two words: the lower half, then the upper.
    Wide,
    Floats,
    /// Strings, numbered by the worker.
    Texts(Box<KeyDictionary>),
    /// Strings, numbered by a dictionary common to all workers. Only merged groups have this form, never a batch.
    SharedTexts(Arc<Dictionary>),
}

/// Column of words, one for each row, and their bounds.
#[derive(Debug)]
pub(super) struct KeyWords {
    pub(super) values: Arc<Vec<i64>>,
    /// Smallest and largest possible word; `None` if words use all 64 bits.
    pub(super) bounds: Option<Bounds>,
}

/// String dictionary of a worker's key: distinct strings, numbered as they come.
#[derive(Debug, Default)]
pub(super) struct KeyDictionary {
    interner: StringInterner,
    /// Translations of the dictionaries of input columns, by [`Dictionary::id`].
    translations: HashMap<u64, Arc<CodeTranslation>>,
}

/// Translation of an input dictionary: the number of each of its codes.
#[derive(Debug)]
struct CodeTranslation {
    numbers: Vec<i64>,
    /// Whether each number equals its code: the common case, as blocks often have the same strings in the same order.
    is_identity: bool,
}

/// Maximum number of input dictionaries whose translations are cached.
const TRANSLATIONS_MAX: usize = 1_024;

impl From<PhysicalType> for KeyEncoding {
    fn from(form: PhysicalType) -> Self {
        match form {
            PhysicalType::Bools => Self::Bools,
            PhysicalType::Ints => Self::Ints,
            PhysicalType::WideInts => Self::Wide,
            PhysicalType::Floats => Self::Floats,
            PhysicalType::Texts => Self::Texts(Box::default()),
            // Opaque values are no keys: encoding them fails next.
            PhysicalType::Opaque => Self::Unknown,
        }
    }
}

impl KeyEncoding {
    /// Returns the same form without any strings of its own.
    pub(super) fn empty(&self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Bools => Self::Bools,
            Self::Ints => Self::Ints,
            Self::Wide => Self::Wide,
            Self::Floats => Self::Floats,
            Self::Texts(_) => Self::Texts(Box::default()),
            Self::SharedTexts(strings) => Self::SharedTexts(Arc::clone(strings)),
        }
    }

    /// Returns whether words are the values themselves, in their order.
    pub(super) fn is_integer(&self) -> bool {
        matches!(self, Self::Ints)
    }

    /// Returns the number of words of a value, without the null word.
    pub(super) fn word_count(&self) -> usize {
        if matches!(self, Self::Wide) { 2 } else { 1 }
    }

    /// Adopts the form of a column if none is known yet.
    pub(super) fn adopt_form(&mut self, column: &Column) {
        if matches!(self, Self::Unknown) {
            *self = Self::from(PhysicalType::from_column(column));
        }
    }

    /// Encodes the rows of a column as one or two columns of words; the word of a NULL is 0.
    pub(super) fn encode(&mut self, column: &Column) -> Result<Vec<KeyWords>> {
        let valid = column.validity.as_deref();
        Ok(match (self, &column.data) {
            (Self::Bools, ColumnData::Bools(bits)) => {
                let values = (0..bits.rows()).map(|row| i64::from(bits.get(row))).collect();
                vec![zero_nulls(Arc::new(values), Some(Bounds { min: 0, max: 1 }), valid)]
            }
            (Self::Ints, ColumnData::Ints { values, bounds }) => {
                vec![zero_nulls(Arc::clone(values), Some(*bounds), valid)]
            }
            (Self::Wide, ColumnData::Ints { values, bounds }) => vec![
                zero_nulls(Arc::clone(values), Some(*bounds), valid),
                zero_nulls(
                    Arc::new(values.iter().map(|value| value >> 63).collect()),
                    Some(upper_halves(*bounds)),
                    valid,
                ),
            ],
            (Self::Wide, ColumnData::WideInts(values)) => split_wide(values, valid),
            (Self::Floats, ColumnData::Floats(values)) => {
                let values = values.iter().map(|value| encode_float(*value)).collect();
                vec![zero_nulls(Arc::new(values), None, valid)]
            }
            (Self::Texts(numbered), ColumnData::Dictionary { indices: codes, dictionary: strings }) => {
                let numbers = numbered.translate_dictionary(strings)?;
                let values = if numbers.is_identity {
                    codes.iter().map(|code| i64::from(*code)).collect()
                } else {
                    let number = |code: &u32| numbers.numbers.get(*code as usize).copied().unwrap_or_default();
                    codes.iter().map(number).collect()
                };
                vec![zero_nulls(Arc::new(values), Some(numbered.bounds()), valid)]
            }
            (Self::Texts(numbered), ColumnData::Texts(texts)) => {
                let mut values = Vec::with_capacity(texts.len());
                for row in 0..texts.len() {
                    let is_null = valid.is_some_and(|bits| !bits.get(row));
                    values.push(if is_null { 0 } else { numbered.interner.intern(texts.value(row))?.into() });
                }
                vec![KeyWords { values: Arc::new(values), bounds: Some(numbered.bounds()) }]
            }
            _ => return Err(Error::Internal("the physical type of a group key changed between batches")),
        })
    }

    /// Returns the numbered strings; `None` if words are not numbers of a worker's strings.
    pub(super) fn numbered_texts(&self) -> Option<&StringInterner> {
        if let Self::Texts(numbered) = self { Some(&numbered.interner) } else { None }
    }

    /// Translates the words at index `at` of keys that `other` encoded. `is_null` returns whether the value is NULL,
    /// given the null word of its key.
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
                Err(Error::Internal("two workers encoded the same group key with different physical types"))
            };
        };
        let mut numbers = vec![NONE; theirs.interner.len()];
        for key in words.chunks_exact_mut(stride) {
            // The word of a NULL is 0 for every worker, although 0 also numbers a string.
            let nulls = key[stride - 1];
            let word = &mut key[at];
            if !is_null(nulls) {
                let at = usize::try_from(*word).ok().filter(|at| *at < numbers.len());
                let at = at.ok_or(Error::Internal("the number that encodes a string group key has no string"))?;
                if numbers[at] == NONE {
                    numbers[at] = mine.interner.intern(theirs.interner.get(at))?;
                }
                *word = numbers[at].into();
            }
        }
        Ok(())
    }

    /// Decodes the values of all groups from the words at index `at` of their keys.
    pub(super) fn decode(&self, words: &[i64], stride: usize, at: usize) -> Result<ColumnData> {
        let firsts = || words.iter().skip(at).step_by(stride).copied();
        Ok(match self {
            Self::Unknown => ColumnData::Ints { values: Arc::default(), bounds: Bounds::from_value(0) },
            Self::Bools => {
                let values: Vec<i64> = firsts().collect();
                ColumnData::Bools(Arc::new(Bitmap::from_values(&values, |value| value != 0)))
            }
            Self::Ints => {
                let values: Vec<i64> = firsts().collect();
                let (min, max) = values.iter().fold((0, 0), |(min, max), value| (*value.min(&min), *value.max(&max)));
                ColumnData::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } }
            }
            Self::Wide => {
                let seconds = words.iter().skip(at + 1).step_by(stride);
                #[expect(clippy::cast_sign_loss, reason = "the lower half of 128 bits")]
                let value = |(low, high): (i64, &i64)| i128::from(*high) << 64 | i128::from(low as u64);
                narrowest_data(firsts().zip(seconds).map(value).collect())
            }
            #[expect(clippy::cast_sign_loss, reason = "a word is the bits of a number")]
            Self::Floats => ColumnData::Floats(Arc::new(firsts().map(|word| f64::from_bits(word as u64)).collect())),
            Self::Texts(numbered) => ColumnData::Dictionary {
                indices: to_codes(firsts())?,
                dictionary: Dictionary::new(numbered.interner.to_array()),
            },
            Self::SharedTexts(strings) => {
                ColumnData::Dictionary { indices: to_codes(firsts())?, dictionary: Arc::clone(strings) }
            }
        })
    }

    /// Decodes the values of few groups, like [`KeyEncoding::decode`], but copies only the strings that these groups
    /// have.
    pub(super) fn decode_few(&self, words: &[i64], stride: usize, at: usize) -> Result<ColumnData> {
        let Self::Texts(numbered) = self else { return self.decode(words, stride, at) };
        let text = |word: &i64| {
            let number = usize::try_from(*word).ok().filter(|number| *number < numbered.interner.len());
            number.map_or("", |number| numbered.interner.get(number))
        };
        let texts = words.iter().skip(at).step_by(stride).map(text);
        Ok(ColumnData::Texts(StringViewArray::from_iter_values(texts)))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Texts(numbered) => numbered.interner.memory_bytes(),
            _ => 0,
        }
    }
}

fn to_codes(words: impl Iterator<Item = i64>) -> Result<Arc<Vec<u32>>> {
    let code = |word| {
        u32::try_from(word).map_err(|_| Error::Internal("the number that encodes a string group key has no string"))
    };
    Ok(Arc::new(words.map(code).collect::<Result<_>>()?))
}

/// Sets the words of NULLs to 0. The null word tells a NULL from the value 0.
fn zero_nulls(values: Arc<Vec<i64>>, bounds: Option<Bounds>, valid: Option<&Bitmap>) -> KeyWords {
    let Some(valid) = valid else { return KeyWords { values, bounds } };
    let values: Vec<i64> =
        values.iter().enumerate().map(|(row, value)| if valid.get(row) { *value } else { 0 }).collect();
    KeyWords { values: Arc::new(values), bounds: bounds.map(|bounds| bounds.union(Bounds::from_value(0))) }
}

/// Splits 128-bit integers into words: the lower halves first, as a direct index keeps spare room for ascending keys in
/// the first word.
fn split_wide(values: &[i128], valid: Option<&Bitmap>) -> Vec<KeyWords> {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (high, low): (Vec<i64>, Vec<i64>) = values.iter().map(|value| ((value >> 64) as i64, *value as i64)).unzip();
    vec![zero_nulls(Arc::new(low), None, valid), zero_nulls(Arc::new(high), None, valid)]
}

/// Returns the bounds of the upper halves of sign-extended 64-bit integers.
fn upper_halves(bounds: Bounds) -> Bounds {
    Bounds { min: bounds.min >> 64, max: bounds.max >> 64 }
}

/// Encodes a float as a word: -0 and 0 have the same, and so have all NaNs.
pub(crate) fn encode_float(value: f64) -> i64 {
    let one = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN
    } else {
        value
    };
    one.to_bits().cast_signed()
}

impl KeyDictionary {
    /// Returns the bounds of string numbers, including the next one to be assigned.
    fn bounds(&self) -> Bounds {
        Bounds { min: 0, max: self.interner.len() as i128 }
    }

    /// Returns the translation of an input dictionary, numbering its strings unless that is cached.
    fn translate_dictionary(&mut self, strings: &Dictionary) -> Result<Arc<CodeTranslation>> {
        if let Some(numbers) = self.translations.get(&strings.id()) {
            return Ok(Arc::clone(numbers));
        }
        let values = strings.values();
        let number = |code: usize| self.interner.intern(values.value(code)).map(i64::from);
        let numbers = (0..values.len()).map(number).collect::<Result<Vec<i64>>>()?;
        // The codes of an empty dictionary belong to NULLs and may be anything.
        let are_codes = !numbers.is_empty() && (0..).zip(&numbers).all(|(code, number): (i64, &i64)| code == *number);
        let numbers = Arc::new(CodeTranslation { numbers, is_identity: are_codes });
        if TRANSLATIONS_MAX <= self.translations.len() {
            self.translations.clear();
        }
        self.translations.insert(strings.id(), Arc::clone(&numbers));
        Ok(numbers)
    }
}
