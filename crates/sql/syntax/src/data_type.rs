//! Grammar of type names, with modifiers and array brackets.

use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, Ident, IntervalFields, ObjectName, TimezoneInfo,
};
use types::SqlResult;

use super::lex::Token;
use super::token_cursor::Cursor;
use crate::keyword::{KeywordCategory, category};

impl Cursor<'_> {
    /// Parses a type: `numeric(10, 2)`, `timestamp with time zone`, `pg_catalog.int4[]`.
    pub(super) fn data_type(&mut self) -> SqlResult<DataType> {
        if self.next_is("setof") {
            return Err(self.unsupported("SETOF"));
        }
        let element = self.simple_type()?;
        let mut is_array = false;
        let mut length = None;
        if self.eat("array") {
            is_array = true;
            if self.eat_symbol('[') {
                length = Some(self.integer()?);
                self.expect_symbol(']')?;
            }
        } else {
            // PostgreSQL treats `int[][]` as `int[]`.
            while self.eat_symbol('[') {
                is_array = true;
                if !self.is_symbol(']') {
                    length = Some(self.integer()?);
                }
                self.expect_symbol(']')?;
            }
        }
        let length = length.and_then(|length| u64::try_from(length).ok());
        Ok(if is_array { DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), length)) } else { element })
    }

    /// Parses a type without array brackets.
    pub(super) fn simple_type(&mut self) -> SqlResult<DataType> {
        let word = self.next_word().filter(|_| *self.peek_at(1) != Token::Symbol('.'));
        if let Some(word) = word
            && let Some(known) = self.keyword_type(word)?
        {
            return Ok(known);
        }
        let first = if word.is_some_and(|word| category(word) == Some(KeywordCategory::ColumnName)) {
            return Err(self.syntax_error());
        } else {
            self.type_name()?
        };
        let name = self.qualified_name(first)?;
        let modifiers = self.type_modifiers()?;
        Ok(named_type(name, modifiers))
    }

    /// Parses a type whose name is a keyword with a grammar of its own.
    fn keyword_type(&mut self, word: &str) -> SqlResult<Option<DataType>> {
        let known = match word {
            "boolean" => self.advance_and_return(DataType::Boolean),
            "smallint" => self.advance_and_return(DataType::SmallInt(None)),
            "int" => self.advance_and_return(DataType::Int(None)),
            "integer" => self.advance_and_return(DataType::Integer(None)),
            "bigint" => self.advance_and_return(DataType::BigInt(None)),
            "real" => self.advance_and_return(DataType::Real),
            "double" if self.word_at(1) == Some("precision") => {
                self.next_index += 2;
                DataType::DoublePrecision
            }
            "float" => {
                self.next_index += 1;
                match self.optional_precision()? {
                    Some(bits) => DataType::Float(ExactNumberInfo::Precision(bits)),
                    None => DataType::Float(ExactNumberInfo::None),
                }
            }
            "numeric" => {
                self.next_index += 1;
                DataType::Numeric(self.number_info()?)
            }
            "decimal" => {
                self.next_index += 1;
                DataType::Decimal(self.number_info()?)
            }
            "dec" => {
                self.next_index += 1;
                DataType::Dec(self.number_info()?)
            }
            "varchar" => {
                self.next_index += 1;
                DataType::Varchar(self.character_length()?)
            }
            "national" if matches!(self.word_at(1), Some("character" | "char")) => {
                self.next_index += 1;
                self.character()?
            }
            "character" | "char" | "nchar" => self.character()?,
            "bit" => {
                self.next_index += 1;
                let varying = self.eat("varying");
                let length = self.optional_precision()?;
                if varying { DataType::BitVarying(length) } else { DataType::Bit(length) }
            }
            "timestamp" => {
                self.next_index += 1;
                let precision = self.optional_precision()?;
                DataType::Timestamp(precision, self.time_zone()?)
            }
            "time" => {
                self.next_index += 1;
                let precision = self.optional_precision()?;
                DataType::Time(precision, self.time_zone()?)
            }
            "interval" => {
                self.next_index += 1;
                let (fields, precision) = self.interval_type()?;
                DataType::Interval { fields, precision }
            }
            _ => return Ok(None),
        };
        Ok(Some(known))
    }

    fn advance_and_return(&mut self, known: DataType) -> DataType {
        self.next_index += 1;
        known
    }

    /// Parses `character [varying] [(n)]` or a short form of it.
    fn character(&mut self) -> SqlResult<DataType> {
        self.next_index += 1;
        if self.eat("varying") {
            return Ok(DataType::CharacterVarying(self.character_length()?));
        }
        Ok(DataType::Character(self.character_length()?))
    }

    fn character_length(&mut self) -> SqlResult<Option<CharacterLength>> {
        let length = self.optional_precision()?;
        Ok(length.map(|length| CharacterLength::IntegerLength { length, unit: None }))
    }

    /// Parses an optional `(n)`.
    fn optional_precision(&mut self) -> SqlResult<Option<u64>> {
        if !self.eat_symbol('(') {
            return Ok(None);
        }
        let number = self.integer()?;
        self.expect_symbol(')')?;
        Ok(u64::try_from(number).ok())
    }

    /// Parses an optional `(p)` or `(p, s)`.
    fn number_info(&mut self) -> SqlResult<ExactNumberInfo> {
        if !self.eat_symbol('(') {
            return Ok(ExactNumberInfo::None);
        }
        let precision = u64::try_from(self.signed_integer()?).unwrap_or(0);
        let info = if self.eat_symbol(',') {
            ExactNumberInfo::PrecisionAndScale(precision, self.signed_integer()?)
        } else {
            ExactNumberInfo::Precision(precision)
        };
        self.expect_symbol(')')?;
        Ok(info)
    }

    fn time_zone(&mut self) -> SqlResult<TimezoneInfo> {
        if self.eat("with time zone") {
            return Ok(TimezoneInfo::WithTimeZone);
        }
        if self.eat("without time zone") {
            return Ok(TimezoneInfo::WithoutTimeZone);
        }
        Ok(TimezoneInfo::None)
    }

    /// Parses the fields and the precision of an interval type, after `interval`.
    fn interval_type(&mut self) -> SqlResult<(Option<IntervalFields>, Option<u64>)> {
        if self.is_symbol('(') {
            return Ok((None, self.optional_precision()?));
        }
        let fields = self.interval_fields();
        let seconds = matches!(
            fields,
            Some(
                IntervalFields::Second
                    | IntervalFields::DayToSecond
                    | IntervalFields::HourToSecond
                    | IntervalFields::MinuteToSecond
            )
        );
        let precision = if seconds { self.optional_precision()? } else { None };
        Ok((fields, precision))
    }

    /// Parses optional interval fields: `year`, `day to second`.
    pub(super) fn interval_fields(&mut self) -> Option<IntervalFields> {
        const INTERVAL_FIELDS: [(&str, IntervalFields); 13] = [
            ("year to month", IntervalFields::YearToMonth),
            ("day to hour", IntervalFields::DayToHour),
            ("day to minute", IntervalFields::DayToMinute),
            ("day to second", IntervalFields::DayToSecond),
            ("hour to minute", IntervalFields::HourToMinute),
            ("hour to second", IntervalFields::HourToSecond),
            ("minute to second", IntervalFields::MinuteToSecond),
            ("year", IntervalFields::Year),
            ("month", IntervalFields::Month),
            ("day", IntervalFields::Day),
            ("hour", IntervalFields::Hour),
            ("minute", IntervalFields::Minute),
            ("second", IntervalFields::Second),
        ];
        INTERVAL_FIELDS.into_iter().find(|(words, _)| self.eat(words)).map(|(_, fields)| fields)
    }

    /// Parses optional type modifiers: `(…)` after the name of a type.
    fn type_modifiers(&mut self) -> SqlResult<Vec<String>> {
        if !self.is_symbol('(') {
            return Ok(Vec::new());
        }
        self.parenthesized(|cursor| match cursor.peek() {
            Token::Integer(_) | Token::Operator(_) => cursor.signed_integer().map(|number| number.to_string()),
            Token::Text(text) => {
                cursor.next_index += 1;
                Ok(text.clone())
            }
            _ => cursor.label().map(|label| label.value),
        })
    }
}

/// Converts a type name that is no keyword to `sqlparser`'s own variant where there is one, else to `Custom`.
fn named_type(name: ObjectName, modifiers: Vec<String>) -> DataType {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    let last = match parts.as_slice() {
        [last] => Some(*last),
        [schema, last] if schema.value == "pg_catalog" => Some(*last),
        _ => None,
    };
    // The quoted type "char" is not the keyword char.
    let known = last.filter(|last| last.value != "char").and_then(|last| standard_type(&last.value, &modifiers));
    known.unwrap_or(DataType::Custom(name, modifiers))
}

fn standard_type(name: &str, modifiers: &[String]) -> Option<DataType> {
    let number = |at: usize| modifiers.get(at).and_then(|text: &String| text.parse::<u64>().ok());
    let precision = match modifiers.len() {
        0 => None,
        1 => Some(number(0)?),
        _ => return numeric(name, modifiers),
    };
    let without_modifier = |known: DataType| precision.is_none().then_some(known);
    match name {
        "bool" => without_modifier(DataType::Bool),
        "int2" => without_modifier(DataType::Int2(None)),
        "int4" => without_modifier(DataType::Int4(None)),
        "int8" => without_modifier(DataType::Int8(None)),
        "float4" => without_modifier(DataType::Float4),
        "float8" => without_modifier(DataType::Float8),
        "text" => without_modifier(DataType::Text),
        "bytea" => without_modifier(DataType::Bytea),
        "uuid" => without_modifier(DataType::Uuid),
        "date" => without_modifier(DataType::Date),
        "json" => without_modifier(DataType::JSON),
        "jsonb" => without_modifier(DataType::JSONB),
        "regclass" => without_modifier(DataType::Regclass),
        "varchar" => {
            Some(DataType::Varchar(precision.map(|length| CharacterLength::IntegerLength { length, unit: None })))
        }
        "timestamptz" => Some(DataType::Timestamp(precision, TimezoneInfo::Tz)),
        "timetz" => Some(DataType::Time(precision, TimezoneInfo::Tz)),
        "timestamp" => Some(DataType::Timestamp(precision, TimezoneInfo::None)),
        "time" => Some(DataType::Time(precision, TimezoneInfo::None)),
        "interval" => Some(DataType::Interval { fields: None, precision }),
        "numeric" => numeric(name, modifiers),
        _ => None,
    }
}

fn numeric(name: &str, modifiers: &[String]) -> Option<DataType> {
    if name != "numeric" {
        return None;
    }
    Some(DataType::Numeric(match modifiers {
        [] => ExactNumberInfo::None,
        [precision] => ExactNumberInfo::Precision(precision.parse().ok()?),
        [precision, scale] => ExactNumberInfo::PrecisionAndScale(precision.parse().ok()?, scale.parse().ok()?),
        _ => return None,
    }))
}
