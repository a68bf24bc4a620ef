//! A row as a JSON object on one line: columns in their order, each value in JSON's own kind where it has one.

use tokio_postgres::types::{Kind, Type};

/// How values of a column stand in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a string of PostgreSQL's text form.
    Text,
    Boolean,
    /// With all of its digits; what JSON has no number for (`NaN`, `Infinity`) is a string.
    Number,
    /// As it is: a JSON document.
    Document,
}

impl Form {
    pub(crate) fn of(sql_type: &Type) -> Form {
        match *sql_type {
            _ if !matches!(sql_type.kind(), Kind::Simple) => Form::Text,
            Type::BOOL => Form::Boolean,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => {
                Form::Number
            }
            Type::JSON | Type::JSONB => Form::Document,
            _ => Form::Text,
        }
    }
}

/// One object and its line end.
pub(super) fn row(columns: &[String], forms: &[Form], values: &[Option<String>], text: &mut String) {
    text.push('{');
    for (at, (name, value)) in columns.iter().zip(values).enumerate() {
        if 0 < at {
            text.push(',');
        }
        text.push_str(&string(name));
        text.push(':');
        match (value.as_deref(), forms.get(at).copied().unwrap_or(Form::Text)) {
            (None, _) => text.push_str("null"),
            (Some("t"), Form::Boolean) => text.push_str("true"),
            (Some("f"), Form::Boolean) => text.push_str("false"),
            (Some(value), Form::Number) if is_number(value) => text.push_str(value),
            // A line end in a document is space: its strings hold none.
            (Some(value), Form::Document) => text.push_str(&value.replace(['\n', '\r'], " ")),
            (Some(value), _) => text.push_str(&string(value)),
        }
    }
    text.push_str("}\n");
}

fn string(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// Whether a number's text is JSON's too: PostgreSQL's are, but for those that are none.
fn is_number(value: &str) -> bool {
    value.ends_with(|last: char| last.is_ascii_digit())
}
