//! Parses and validates the options of COPY, with PostgreSQL's errors.

use syntax::statement::{CopyDirection, OptionValue, StatementOption};
use types::{Condition, SqlError, SqlResult};

use super::{CopyFormat, CopyHeader, CopyOptions, ForcedColumns, OnError};

/// Options as written, before defaults that depend on the format are applied.
#[derive(Default)]
struct WrittenOptions {
    format: Option<CopyFormat>,
    header: Option<CopyHeader>,
    delimiter: Option<String>,
    null: Option<String>,
    default: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: ForcedColumns,
    force_not_null: ForcedColumns,
    force_null: ForcedColumns,
    on_error: Option<OnError>,
    reject_limit: Option<u64>,
    has_encoding: bool,
}

/// Parses the options of a COPY in `direction`.
///
/// # Errors
/// SQLSTATE 42601 for an option that does not exist, is repeated or has a malformed value; 22023 for an invalid
/// value; 0A000 for combinations that PostgreSQL does not support, and for encodings other than UTF-8.
pub(crate) fn parse_options(options: &[StatementOption], direction: CopyDirection) -> SqlResult<CopyOptions> {
    let mut written = WrittenOptions::default();
    let mut seen: Vec<&str> = Vec::new();
    for option in options {
        let name = option.name.value.as_str();
        if seen.contains(&name) {
            return Err(syntax_error("conflicting or redundant options"));
        }
        seen.push(name);
        written.set_option(name, option.value.as_ref(), direction)?;
    }
    written.validate(direction)
}

impl WrittenOptions {
    fn set_option(&mut self, name: &str, value: Option<&OptionValue>, direction: CopyDirection) -> SqlResult<()> {
        match name {
            "format" => self.format = Some(format(text(name, value)?)?),
            // FREEZE has no effect: loaded rows need no freezing.
            "freeze" => {
                boolean(name, value)?;
            }
            "delimiter" => self.delimiter = Some(text(name, value)?.to_owned()),
            "null" => self.null = Some(text(name, value)?.to_owned()),
            "default" => self.default = Some(text(name, value)?.to_owned()),
            "header" => self.header = Some(header(value, direction)?),
            "quote" => self.quote = Some(text(name, value)?.to_owned()),
            "escape" => self.escape = Some(text(name, value)?.to_owned()),
            "force_quote" => self.force_quote = columns(name, value)?,
            "force_not_null" => self.force_not_null = columns(name, value)?,
            "force_null" => self.force_null = columns(name, value)?,
            "encoding" => {
                encoding(text(name, value)?)?;
                self.has_encoding = true;
            }
            "on_error" => self.on_error = Some(on_error(text(name, value)?, direction)?),
            "reject_limit" => self.reject_limit = Some(reject_limit(text(name, value)?)?),
            "log_verbosity" => {
                let level = text(name, value)?;
                match level {
                    "default" => {}
                    "silent" | "verbose" => return Err(SqlError::unsupported(format_args!("LOG_VERBOSITY {level}"))),
                    _ => return Err(invalid_option_error(format!("COPY LOG_VERBOSITY \"{level}\" not recognized"))),
                }
            }
            other => return Err(syntax_error(format!("option \"{other}\" not recognized"))),
        }
        Ok(())
    }

    fn validate(self, direction: CopyDirection) -> SqlResult<CopyOptions> {
        let format = self.format.unwrap_or_default();
        match format {
            CopyFormat::Binary => self.check_without_text("BINARY")?,
            CopyFormat::Parquet => self.check_without_text("PARQUET")?,
            CopyFormat::Text | CopyFormat::Csv => {}
        }
        let is_csv = format == CopyFormat::Csv;
        let delimiter = self.delimiter(is_csv)?;
        let null = self.null.clone().unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() });
        check_marker(&null, "null")?;
        if let Some(default) = &self.default {
            check_marker(default, "default")?;
        }
        if !is_csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
            return Err(invalid_option_error(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
        }
        if matches!(format, CopyFormat::Binary | CopyFormat::Parquet)
            && self.header.is_some_and(|header| header != CopyHeader::Absent)
        {
            let mode = if format == CopyFormat::Binary { "BINARY" } else { "PARQUET" };
            return Err(unsupported_option_error(format!("cannot specify HEADER in {mode} mode")));
        }
        let (quote, escape) = self.quote_and_escape(is_csv, delimiter)?;
        self.check_forced(is_csv, direction)?;
        let quote_in_use = is_csv.then_some(quote);
        check_distinct(&null, "NULL", delimiter, quote_in_use)?;
        if let Some(default) = &self.default {
            if direction == CopyDirection::To {
                return Err(unsupported_option_error("COPY DEFAULT only available using COPY FROM"));
            }
            check_distinct(default, "DEFAULT", delimiter, quote_in_use)?;
            if *default == null {
                return Err(unsupported_option_error(
                    "NULL specification and DEFAULT specification cannot be the same",
                ));
            }
        }
        let on_error = self.on_error.unwrap_or_default();
        if format == CopyFormat::Binary && on_error != OnError::Stop {
            return Err(syntax_error("only ON_ERROR STOP is allowed in BINARY mode"));
        }
        if self.reject_limit.is_some() && on_error != OnError::Ignore {
            return Err(invalid_option_error("COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE"));
        }
        Ok(CopyOptions {
            format,
            header: self.header.unwrap_or_default(),
            delimiter,
            null,
            default: self.default,
            quote,
            escape,
            force_quote: self.force_quote,
            force_not_null: self.force_not_null,
            force_null: self.force_null,
            on_error,
            reject_limit: self.reject_limit,
        })
    }

    /// Rejects text options for binary formats.
    fn check_without_text(&self, mode: &str) -> SqlResult<()> {
        let signs = [("DELIMITER", &self.delimiter), ("NULL", &self.null), ("DEFAULT", &self.default)];
        match signs.into_iter().find(|(_, written)| written.is_some()) {
            Some((name, _)) => Err(syntax_error(format!("cannot specify {name} in {mode} mode"))),
            None if mode == "PARQUET" && self.has_encoding => {
                Err(syntax_error(format!("cannot specify ENCODING in {mode} mode")))
            }
            None => Ok(()),
        }
    }

    fn delimiter(&self, is_csv: bool) -> SqlResult<u8> {
        let delimiter = match self.delimiter.as_deref().map(str::as_bytes) {
            None if is_csv => b',',
            None => b'\t',
            Some([one]) => *one,
            Some(_) => return Err(unsupported_option_error("COPY delimiter must be a single one-byte character")),
        };
        if matches!(delimiter, b'\n' | b'\r') {
            return Err(invalid_option_error("COPY delimiter cannot be newline or carriage return"));
        }
        Ok(delimiter)
    }

    /// Returns the quote and the escape character, which are used by CSV only.
    fn quote_and_escape(&self, is_csv: bool, delimiter: u8) -> SqlResult<(u8, u8)> {
        if !is_csv && self.quote.is_some() {
            return Err(unsupported_option_error("COPY quote available only in CSV mode"));
        }
        let quote = match self.quote.as_deref().map(str::as_bytes) {
            None => b'"',
            Some([one]) => *one,
            Some(_) => return Err(unsupported_option_error("COPY quote must be a single one-byte character")),
        };
        if is_csv && delimiter == quote {
            return Err(invalid_option_error("COPY delimiter and quote must be different"));
        }
        if !is_csv && self.escape.is_some() {
            return Err(unsupported_option_error("COPY escape available only in CSV mode"));
        }
        let escape = match self.escape.as_deref().map(str::as_bytes) {
            None => quote,
            Some([one]) => *one,
            Some(_) => return Err(unsupported_option_error("COPY escape must be a single one-byte character")),
        };
        Ok((quote, escape))
    }

    fn check_forced(&self, is_csv: bool, direction: CopyDirection) -> SqlResult<()> {
        let forced = [
            ("quote", &self.force_quote, CopyDirection::To),
            ("not null", &self.force_not_null, CopyDirection::From),
            ("null", &self.force_null, CopyDirection::From),
        ];
        for (name, columns, wanted) in forced {
            if *columns == ForcedColumns::None {
                continue;
            }
            if !is_csv {
                return Err(unsupported_option_error(format!("COPY force {name} available only in CSV mode")));
            }
            if direction != wanted {
                let way = if wanted == CopyDirection::To { "TO" } else { "FROM" };
                return Err(unsupported_option_error(format!("COPY force {name} only available using COPY {way}")));
            }
        }
        Ok(())
    }
}

fn format(name: &str) -> SqlResult<CopyFormat> {
    match name {
        "text" => Ok(CopyFormat::Text),
        "csv" => Ok(CopyFormat::Csv),
        "binary" => Ok(CopyFormat::Binary),
        "parquet" => Ok(CopyFormat::Parquet),
        other => Err(invalid_option_error(format!("COPY format \"{other}\" not recognized"))),
    }
}

fn header(value: Option<&OptionValue>, direction: CopyDirection) -> SqlResult<CopyHeader> {
    let is_match = value.and_then(OptionValue::text).is_some_and(|text| text.eq_ignore_ascii_case("match"));
    match parse_boolean(value) {
        Some(true) => Ok(CopyHeader::Present),
        Some(false) => Ok(CopyHeader::Absent),
        None if is_match && direction == CopyDirection::To => {
            Err(unsupported_option_error("cannot use \"match\" with HEADER in COPY TO"))
        }
        None if is_match => Ok(CopyHeader::Match),
        None => Err(syntax_error("header requires a Boolean value or \"match\"")),
    }
}

fn on_error(word: &str, direction: CopyDirection) -> SqlResult<OnError> {
    if direction == CopyDirection::To {
        return Err(invalid_option_error("COPY ON_ERROR cannot be used with COPY TO"));
    }
    match word {
        "stop" => Ok(OnError::Stop),
        "ignore" => Ok(OnError::Ignore),
        other => Err(invalid_option_error(format!("COPY ON_ERROR \"{other}\" not recognized"))),
    }
}

fn reject_limit(written: &str) -> SqlResult<u64> {
    let number: i64 = written.parse().map_err(|_| {
        SqlError::new(
            Condition::InvalidTextRepresentation,
            format!("invalid input syntax for type bigint: \"{written}\""),
        )
    })?;
    match u64::try_from(number) {
        Ok(limit) if limit != 0 => Ok(limit),
        _ => Err(invalid_option_error(format!("REJECT_LIMIT ({number}) must be greater than zero"))),
    }
}

/// Checks the encoding; only UTF-8 is supported.
fn encoding(name: &str) -> SqlResult<()> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    match plain.as_str() {
        "utf8" | "unicode" | "sqlascii" => Ok(()),
        "latin1" | "iso88591" | "latin9" | "iso885915" | "win1252" | "windows1252" | "win1250" | "win1251"
        | "eucjp" | "sjis" | "big5" | "gbk" | "gb18030" | "euckr" | "koi8r" | "latin2" | "latin5" => {
            Err(unsupported_option_error(format!("encoding {name} is not supported")))
        }
        _ => Err(invalid_option_error("argument to option \"encoding\" must be a valid encoding name")),
    }
}

fn columns(name: &str, value: Option<&OptionValue>) -> SqlResult<ForcedColumns> {
    match value {
        Some(OptionValue::Star) => Ok(ForcedColumns::All),
        Some(OptionValue::List(names)) => Ok(ForcedColumns::Named(names.clone())),
        _ => Err(invalid_option_error(format!("argument to option \"{name}\" must be a list of column names"))),
    }
}

fn text<'a>(name: &str, value: Option<&'a OptionValue>) -> SqlResult<&'a str> {
    value.and_then(OptionValue::text).ok_or_else(|| syntax_error(format!("{name} requires a parameter")))
}

fn boolean(name: &str, value: Option<&OptionValue>) -> SqlResult<bool> {
    parse_boolean(value).ok_or_else(|| syntax_error(format!("{name} requires a Boolean value")))
}

/// Parses a boolean; an option without a value is on.
fn parse_boolean(value: Option<&OptionValue>) -> Option<bool> {
    match value {
        None => Some(true),
        Some(value) => match value.text()?.to_ascii_lowercase().as_str() {
            "true" | "on" | "1" => Some(true),
            "false" | "off" | "0" => Some(false),
            _ => None,
        },
    }
}

/// Checks that a marker is within one line.
fn check_marker(marker: &str, kind: &str) -> SqlResult<()> {
    if marker.contains(['\n', '\r']) {
        return Err(invalid_option_error(format!("COPY {kind} representation cannot use newline or carriage return")));
    }
    Ok(())
}

/// Checks that a marker contains neither the delimiter nor the quote.
fn check_distinct(marker: &str, kind: &str, delimiter: u8, quote: Option<u8>) -> SqlResult<()> {
    if marker.as_bytes().contains(&delimiter) {
        return Err(unsupported_option_error(format!("COPY delimiter must not appear in the {kind} specification")));
    }
    if quote.is_some_and(|quote| marker.as_bytes().contains(&quote)) {
        return Err(unsupported_option_error(format!(
            "CSV quote character must not appear in the {kind} specification"
        )));
    }
    Ok(())
}

fn syntax_error(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::SyntaxError, message)
}

fn invalid_option_error(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, message)
}

fn unsupported_option_error(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::FeatureNotSupported, message)
}
