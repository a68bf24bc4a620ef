//! Values of settings: parsing, checks, canonical form and display.

use syntax::quote_list;
use types::text::DateOrder;
use types::{Condition, SessionZone, SqlError, SqlResult};

use super::definition::{Definition, ValueKind};

/// Bytes after which names are truncated, as PostgreSQL truncates identifiers.
const NAME_BYTES_MAX: usize = 63;

impl Definition {
    /// Checks that the setting can have a value, and returns the value in canonical form.
    pub(super) fn canonicalize(&self, value: &str) -> SqlResult<String> {
        self.check_changeable()?;
        match self.kind {
            ValueKind::Bool => match parse_bool(value) {
                Some(true) => Ok("on".to_owned()),
                Some(false) => Ok("off".to_owned()),
                None => Err(SqlError::new(
                    Condition::InvalidParameterValue,
                    format!("parameter \"{}\" requires a Boolean value", self.name),
                )),
            },
            ValueKind::Integer { min, max, unit } => {
                let number = parse_integer(value, unit).ok_or_else(|| self.invalid_value(value))?;
                if !(min..=max).contains(&number) {
                    let shown = unit.map_or_else(String::new, |unit| format!(" {unit}"));
                    return Err(SqlError::new(
                        Condition::InvalidParameterValue,
                        format!(
                            "{number}{shown} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                            self.name
                        ),
                    ));
                }
                Ok(number.to_string())
            }
            ValueKind::Enum(values) => {
                let found = values.iter().find(|allowed| allowed.eq_ignore_ascii_case(value.trim()));
                found.map(|found| (*found).to_owned()).ok_or_else(|| {
                    self.invalid_value(value).with_hint(format!("Available values: {}.", values.join(", ")))
                })
            }
            ValueKind::Text => Ok(value.to_owned()),
            ValueKind::PrintableText => Ok(to_printable_ascii(value)),
            ValueKind::ShortText(bytes_max) => {
                if value.len() <= bytes_max {
                    return Ok(value.to_owned());
                }
                let message = format!("invalid value for parameter \"{}\": it has {} bytes", self.name, value.len());
                Err(SqlError::new(Condition::InvalidParameterValue, message)
                    .with_detail(format!("It can have at most {bytes_max} bytes.")))
            }
            ValueKind::Names => {
                let names = split_list(value)
                    .ok_or_else(|| self.invalid_value(value).with_detail("List syntax is invalid."))?;
                Ok(quote_list(&names))
            }
            ValueKind::Zone => match SessionZone::parse(value.trim()) {
                Ok(zone) => Ok(zone.name()),
                Err(_) => Err(self.invalid_value(value)),
            },
            ValueKind::DateStyle => {
                parse_date_style(value).ok_or_else(|| self.invalid_value(value)).and_then(|style| {
                    style.ok_or_else(|| {
                        SqlError::unsupported(format!("setting \"DateStyle\" to \"{value}\": dates are shown as ISO"))
                    })
                })
            }
            ValueKind::Encoding => {
                // PostgreSQL compares letters and digits only: clients send 'utf-8' with its quotes.
                let name: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
                if ["utf8", "unicode"].contains(&name.to_ascii_lowercase().as_str()) {
                    return Ok(self.boot.to_owned());
                }
                Err(SqlError::unsupported(format!("setting \"{}\" to \"{value}\"", self.name))
                    .with_detail(format!("The only value of \"{}\" is \"{}\".", self.name, self.boot)))
            }
            ValueKind::Fixed(spellings) => {
                let value = value.trim();
                let same = spellings.iter().any(|spelling| spelling.eq_ignore_ascii_case(value))
                    || matches!((self.boot, parse_bool(value)), ("on", Some(true)) | ("off", Some(false)))
                    || (self.boot == "0" && parse_integer(value, Some("ms")) == Some(0));
                if same {
                    return Ok(self.boot.to_owned());
                }
                Err(SqlError::unsupported(format!("setting \"{}\" to \"{value}\"", self.name))
                    .with_detail(format!("The only value of \"{}\" is \"{}\".", self.name, self.boot)))
            }
        }
    }

    /// Formats a canonical text with its unit, as SHOW prints it.
    pub(super) fn format(&self, text: &str) -> String {
        const TIMES: [(&str, i64); 4] = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)];
        const SIZES: [(&str, i64); 3] = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10)];
        let ValueKind::Integer { unit: Some(least), .. } = self.kind else { return text.to_owned() };
        let steps = if least == "kB" { &SIZES[..] } else { &TIMES[..] };
        match text.parse::<i64>() {
            Ok(number) if number > 0 => steps
                .iter()
                .find(|(_, step)| number % step == 0)
                .map_or_else(|| format!("{number}{least}"), |(unit, step)| format!("{}{unit}", number / step)),
            _ => text.to_owned(),
        }
    }

    fn invalid_value(&self, value: &str) -> SqlError {
        SqlError::new(
            Condition::InvalidParameterValue,
            format!("invalid value for parameter \"{}\": \"{value}\"", self.name),
        )
    }
}

/// Parses a Boolean as PostgreSQL does: `on`, `true`, `yes`, `1` and their opposites, or unique prefixes, in any case.
pub fn parse_bool(text: &str) -> Option<bool> {
    let lower = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if lower == "1" || begins("on", 2) || begins("true", 1) || begins("yes", 1) {
        Some(true)
    } else if lower == "0" || begins("off", 2) || begins("false", 1) || begins("no", 1) {
        Some(false)
    } else {
        None
    }
}

/// Parses an integer, with a unit of time or memory if the setting has one; fractions are rounded.
fn parse_integer(text: &str, unit: Option<&str>) -> Option<i64> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor = match (suffix.trim(), unit) {
        ("", _) => 1.0,
        ("us", Some("ms")) => 0.001,
        ("ms", Some("ms")) => 1.0,
        ("s", Some("ms")) => 1_000.0,
        ("min", Some("ms")) => 60_000.0,
        ("h", Some("ms")) => 3_600_000.0,
        ("d", Some("ms")) => 86_400_000.0,
        ("B", Some("kB")) => 1.0 / 1024.0,
        ("kB", Some("kB")) => 1.0,
        ("MB", Some("kB")) => 1024.0,
        ("GB", Some("kB")) => 1_048_576.0,
        ("TB", Some("kB")) => 1_073_741_824.0,
        _ => return None,
    };
    let value = (number.parse::<f64>().ok()? * factor).round();
    #[expect(clippy::cast_possible_truncation, reason = "checked to lie within i64 just before")]
    (value.abs() < 9e15).then_some(value as i64)
}

/// Splits a comma-separated list of names, folding unquoted ones to lower case; `None` for invalid syntax.
pub(super) fn split_list(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let (name, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '"') if chars.next_if(|(_, c)| *c == '"').is_some() => name.push('"'),
                    (index, '"') => break index + 1,
                    (_, c) => name.push(c),
                }
            };
            (name, quoted[end..].trim_start())
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let name = rest[..end].trim();
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '"') {
                return None;
            }
            (name.to_lowercase(), &rest[end..])
        };
        names.push(truncate_name(name));
        match after.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None if after.is_empty() => return Some(names),
            None => return None,
        }
    }
}

/// Truncates a name to [`NAME_BYTES_MAX`] bytes, between characters.
fn truncate_name(mut name: String) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

/// Replaces characters that are not printable ASCII by `?`, as PostgreSQL does for `application_name`.
fn to_printable_ascii(value: &str) -> String {
    let printable = value.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    truncate_name(printable)
}

/// Parses `DateStyle`: the outer `None` for an invalid value, the inner for an output style that Kiln does not support.
fn parse_date_style(value: &str) -> Option<Option<String>> {
    let mut order = "MDY";
    let mut iso = true;
    for word in value.split(',') {
        match word.trim().to_ascii_lowercase().as_str() {
            "iso" | "default" => iso = true,
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            "sql" | "german" | "postgres" => iso = false,
            _ => return None,
        }
    }
    Some(iso.then(|| format!("ISO, {order}")))
}

/// Returns the order of day, month and year of a canonical `DateStyle`.
pub(super) fn date_order_of_style(style: &str) -> DateOrder {
    match style.rsplit(", ").next() {
        Some("DMY") => DateOrder::DayMonthYear,
        Some("YMD") => DateOrder::YearMonthDay,
        _ => DateOrder::MonthDayYear,
    }
}
