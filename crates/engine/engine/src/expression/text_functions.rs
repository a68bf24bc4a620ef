//! Functions of one string, computed once per dictionary entry for dictionary-encoded columns.

use std::sync::Arc;

use arrow::array::{Array, StringViewArray, StringViewBuilder};
use blocks::{TextCondition, TextMatcher};
use types::ValueMemoryCounter;

use super::ExpressionState;
use super::columnar_value::ColumnarValue;
use super::evaluation_state::{ArgumentDomain, function_id, look_up};
use crate::{Bitmap, Bounds, Column, ColumnData, Dictionary, Error, Result, StringInterner};

/// Function of one string. It never fails, except for results of 1 GB and more and when memory runs out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TextFunction {
    /// Whether the string fulfils a condition.
    Matches(TextCondition),
    /// Number of characters.
    Length,
    /// Conversion to upper case.
    Upper,
    /// Conversion to lower case.
    Lower,
    /// Substring from character `from`, counted from 1, up to but excluding character `end`.
    Substring { from: i64, end: i64 },
    /// String without leading (`at_start`) and trailing (`at_end`) characters that occur in `cut`.
    Trim { characters: String, at_start: bool, at_end: bool },
    /// String with a prefix and a suffix added.
    Affix { prefix: String, suffix: String },
}

/// Call of a string function, with the id under which its results are cached.
#[derive(Debug, Clone)]
pub struct TextCall {
    id: u64,
    function: TextFunction,
}

/// Maximum ratio of dictionary entries to rows for which results per entry are cached.
const ENTRIES_PER_ROW_MAX: usize = 16;

impl TextCall {
    /// Creates a call with a new id.
    #[must_use]
    pub fn new(function: TextFunction) -> Self {
        Self { id: function_id(), function }
    }

    /// Returns the function.
    pub(super) fn function(&self) -> &TextFunction {
        &self.function
    }

    /// Computes the function for each row.
    pub(super) fn compute(&self, value: ColumnarValue, memory: &mut ExpressionState) -> Result<ColumnarValue> {
        let ColumnarValue { column, is_scalar } = value;
        let computed = match &column.data {
            ColumnData::Dictionary { dictionary: strings, .. } if strings.is_empty() => {
                self.function.apply(std::iter::repeat_n("", column.rows()))?
            }
            ColumnData::Dictionary { indices: codes, dictionary: strings }
                if strings.len() <= codes.len().max(64) * ENTRIES_PER_ROW_MAX =>
            {
                let domain = ArgumentDomain::Strings(strings.id());
                let table = memory.result_table(self.id, domain, || self.function.apply_to_dictionary(strings))?;
                look_up(table, codes)?.column
            }
            ColumnData::Dictionary { indices: codes, dictionary: strings } => {
                self.function.apply(codes.iter().map(|code| strings.get(*code)))?
            }
            ColumnData::Texts(texts) => self.function.apply((0..texts.len()).map(|row| texts.value(row)))?,
            _ => return Err(Error::Internal("the argument of a string function is not a string")),
        };
        Ok(ColumnarValue { column: Column { validity: column.validity, ..computed }, is_scalar })
    }
}

impl TextFunction {
    /// Computes the function for an iterator of strings.
    fn apply<'a>(&self, strings: impl ExactSizeIterator<Item = &'a str>) -> Result<Column> {
        let mut text = String::new();
        Ok(Column::new(match self {
            Self::Matches(condition) => {
                let matcher = TextMatcher::new(condition);
                let (rows, mut strings) = (strings.len(), strings);
                let is_true = |_| strings.next().is_some_and(|string| matcher.matches(string.as_bytes()));
                ColumnData::Bools(Arc::new(Bitmap::from_fn(rows, is_true)))
            }
            Self::Length => {
                let length = |string: &str| string.chars().count() as i64;
                let values: Vec<i64> = strings.map(length).collect();
                let bounds = Bounds { min: 0, max: values.iter().max().copied().unwrap_or(0).into() };
                ColumnData::Ints { values: Arc::new(values), bounds }
            }
            shape => {
                let (mut builder, mut guard) =
                    (StringViewBuilder::with_capacity(strings.len()), ValueMemoryCounter::default());
                for string in strings {
                    let shaped = shape.apply_to_string(string, &mut text);
                    guard.add_text(shaped.len())?;
                    builder.append_value(shaped);
                }
                ColumnData::Texts(builder.finish())
            }
        }))
    }

    /// Computes the function for all entries of a dictionary. If the results are strings, they form a dictionary of
    /// distinct entries.
    fn apply_to_dictionary(&self, strings: &Dictionary) -> Result<Column> {
        let values = strings.values();
        let all = (0..values.len()).map(|code| values.value(code));
        if matches!(self, Self::Matches(_) | Self::Length) {
            return self.apply(all);
        }
        let (mut numbers, mut text, mut guard) =
            (StringInterner::default(), String::new(), ValueMemoryCounter::default());
        let code = |string| {
            let shaped = self.apply_to_string(string, &mut text);
            guard.add_text(shaped.len())?;
            numbers.intern(shaped)
        };
        let codes = all.map(code).collect::<Result<Vec<_>>>()?;
        let strings = Dictionary::new(StringViewArray::from_iter_values(numbers.iter()));
        Ok(Column::new(ColumnData::Dictionary { indices: Arc::new(codes), dictionary: strings }))
    }

    /// Returns the resulting string, built in `text` if it is not a part of the argument.
    fn apply_to_string<'a>(&self, string: &'a str, text: &'a mut String) -> &'a str {
        match self {
            Self::Upper => *text = string.to_uppercase(),
            Self::Lower => *text = string.to_lowercase(),
            Self::Affix { prefix: before, suffix: after } => {
                text.clear();
                [before, string, after].into_iter().for_each(|part| text.push_str(part));
            }
            Self::Substring { from, end } => return substring(string, *from, *end),
            Self::Trim { characters: cut, at_start, at_end } => {
                let is_cut = |character: char| cut.contains(character);
                let string = if *at_start { string.trim_start_matches(is_cut) } else { string };
                return if *at_end { string.trim_end_matches(is_cut) } else { string };
            }
            Self::Matches(_) | Self::Length => return string,
        }
        text
    }
}

/// Returns the characters from `from`, counted from 1, up to but excluding `end`.
fn substring(string: &str, from: i64, end: i64) -> &str {
    let from = from.max(1);
    let place = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
    let (skip, take) = (place(from - 1), place(end.saturating_sub(from).max(0)));
    let byte = |text: &str, characters: usize| match text.is_ascii() {
        true => characters.min(text.len()),
        false => text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at),
    };
    let rest = &string[byte(string, skip)..];
    &rest[..byte(rest, take)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRINGS: [&str; 6] = ["", "  green ", "Ünï", "special unrequests", "50%", "zz"];

    /// Returns the strings as a plain and as a dictionary-encoded column, with a NULL.
    fn columns() -> [Column; 2] {
        let validity = Some(Arc::new(Bitmap::from_fn(STRINGS.len(), |row| row != 5)));
        let texts = StringViewArray::from_iter_values(STRINGS);
        let codes =
            ColumnData::Dictionary { indices: Arc::new((0..6).collect()), dictionary: Dictionary::new(texts.clone()) };
        [ColumnData::Texts(texts), codes].map(|data| Column { data, validity: validity.clone() })
    }

    fn shown(column: &Column) -> Vec<String> {
        let value = |row: usize| match &column.data {
            _ if !column.is_valid(row) => "NULL".to_owned(),
            ColumnData::Texts(texts) => texts.value(row).to_owned(),
            ColumnData::Dictionary { indices: codes, dictionary: strings } => strings.get(codes[row]).to_owned(),
            ColumnData::Ints { values, .. } => values[row].to_string(),
            ColumnData::Bools(bits) => bits.get(row).to_string(),
            other => panic!("{other:?}"),
        };
        (0..column.rows()).map(value).collect()
    }

    #[test]
    fn strings_of_rows_and_of_dictionaries_give_the_same() {
        let like = TextCondition::Like { pattern: blocks::LikePattern::parse("%e%s%").unwrap(), is_negated: false };
        let trim = |at_start, at_end| TextFunction::Trim { characters: " ".to_owned(), at_start, at_end };
        let enclosed = TextFunction::Affix { prefix: "<".to_owned(), suffix: "ü>".to_owned() };
        for (function, expected) in [
            (TextFunction::Upper, ["", "  GREEN ", "ÜNÏ", "SPECIAL UNREQUESTS", "50%"]),
            (TextFunction::Lower, ["", "  green ", "ünï", "special unrequests", "50%"]),
            (TextFunction::Length, ["0", "8", "3", "18", "3"]),
            (TextFunction::Substring { from: 2, end: 4 }, ["", " g", "nï", "pe", "0%"]),
            (TextFunction::Substring { from: -1, end: 2 }, ["", " ", "Ü", "s", "5"]),
            (TextFunction::Substring { from: 3, end: i64::MAX }, ["", "green ", "ï", "ecial unrequests", "%"]),
            (TextFunction::Substring { from: 3, end: 1 }, [""; 5]),
            (trim(true, true), ["", "green", "Ünï", "special unrequests", "50%"]),
            (trim(false, true), ["", "  green", "Ünï", "special unrequests", "50%"]),
            (enclosed, ["<ü>", "<  green ü>", "<Ünïü>", "<special unrequestsü>", "<50%ü>"]),
            (TextFunction::Matches(like), ["false", "false", "false", "true", "false"]),
        ] {
            let call = TextCall::new(function);
            for column in columns() {
                let computed =
                    call.compute(ColumnarValue::from_column(column), &mut ExpressionState::default()).unwrap();
                let found = shown(&computed.column);
                assert_eq!(found[..5], expected, "{call:?}");
                assert_eq!(found[5], "NULL", "{call:?}");
            }
        }
    }

    #[test]
    fn a_dictionary_of_results_has_each_once() {
        let strings = Dictionary::new(StringViewArray::from_iter_values(["ab", "ac", "b"]));
        let column = Column::new(ColumnData::Dictionary { indices: Arc::new(vec![0, 1, 2, 0]), dictionary: strings });
        let call = TextCall::new(TextFunction::Substring { from: 1, end: 2 });
        let computed = call.compute(ColumnarValue::from_column(column), &mut ExpressionState::default()).unwrap();
        let ColumnData::Dictionary { indices: codes, dictionary: strings } = &computed.column.data else {
            panic!("codes")
        };
        assert_eq!((codes.as_slice(), strings.len()), ([0, 0, 1, 0].as_slice(), 2));
    }
}
