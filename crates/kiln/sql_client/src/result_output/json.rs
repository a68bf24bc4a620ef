//! Formatting of a row as a JSON object on one line, with columns in their order and values as JSON types where
//! possible.

use tokio_postgres::types::{Kind, Type};

/// JSON form of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonForm {
    /// String with PostgreSQL's text form of the value.
    Text,
    Boolean,
    /// Number with all its digits. `NaN` and `Infinity`, which are not JSON numbers, are strings.
    Number,
    /// JSON document, unchanged but for line breaks.
    Document,
}

impl JsonForm {
    pub(crate) fn from_type(sql_type: &Type) -> JsonForm {
        match *sql_type {
            _ if !matches!(sql_type.kind(), Kind::Simple) => JsonForm::Text,
            Type::BOOL => JsonForm::Boolean,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => {
                JsonForm::Number
            }
            Type::JSON | Type::JSONB => JsonForm::Document,
            _ => JsonForm::Text,
        }
    }
}

/// Appends a row to `text` as one JSON object and a line break.
pub(super) fn write_row(columns: &[String], forms: &[JsonForm], values: &[Option<String>], text: &mut String) {
    text.push('{');
    for (at, (name, value)) in columns.iter().zip(values).enumerate() {
        if 0 < at {
            text.push(',');
        }
        text.push_str(&json_string(name));
        text.push(':');
        match (value.as_deref(), forms.get(at).copied().unwrap_or(JsonForm::Text)) {
            (None, _) => text.push_str("null"),
            (Some("t"), JsonForm::Boolean) => text.push_str("true"),
            (Some("f"), JsonForm::Boolean) => text.push_str("false"),
            (Some(value), JsonForm::Number) if is_number(value) => text.push_str(value),
            // Line breaks in a JSON document are insignificant, because its strings cannot contain them unescaped.
            (Some(value), JsonForm::Document) => text.push_str(&value.replace(['\n', '\r'], " ")),
            (Some(value), _) => text.push_str(&json_string(value)),
        }
    }
    text.push_str("}\n");
}

fn json_string(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// Returns whether PostgreSQL's text of a number is a JSON number. All are except `NaN` and `Infinity`.
fn is_number(value: &str) -> bool {
    value.ends_with(|last: char| last.is_ascii_digit())
}
