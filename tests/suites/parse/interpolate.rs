//! Variables of psql: `:name`, `:'name'` and `:"name"` in SQL and in the arguments of commands.

use std::collections::BTreeMap;

use crate::sql::{Token, TokenKind, next_token};

#[cfg(test)]
mod tests;

/// Variables of a script, by name.
pub(super) type Variables = BTreeMap<String, String>;

/// Replaces variables in SQL. Unknown ones stay as they are, as in psql.
pub(super) fn interpolate(sql: &str, variables: &Variables) -> String {
    let (mut replaced, mut copied, mut at) = (String::new(), 0, 0);
    let mut colons = 0;
    while let Some(token) = next_token(sql, at) {
        let is_adjacent = token.start == at;
        at = token.end;
        if token.kind == TokenKind::Symbol(':') {
            colons = if is_adjacent { colons + 1 } else { 1 };
            continue;
        }
        // Two colons are a cast.
        if let (true, Some(value)) = (colons == 1 && is_adjacent, variable(&token, sql, variables)) {
            replaced.push_str(&sql[copied..token.start - 1]);
            replaced.push_str(&value);
            copied = token.end;
        }
        colons = 0;
    }
    replaced.push_str(&sql[copied..]);
    replaced
}

/// Returns the value of the variable that a token after a colon names, quoted as the token is.
fn variable(token: &Token, sql: &str, variables: &Variables) -> Option<String> {
    let text = token.text(sql);
    match token.kind {
        TokenKind::Word => variables.get(text).cloned(),
        TokenKind::Text => {
            variables.get(text.trim_matches('\'')).map(|value| format!("'{}'", value.replace('\'', "''")))
        }
        TokenKind::QuotedName => {
            variables.get(text.trim_matches('"')).map(|value| format!("\"{}\"", value.replace('"', "\"\"")))
        }
        TokenKind::Number | TokenKind::Symbol(_) => None,
    }
}

/// Splits the arguments of a command: blanks separate them, quotes are removed, variables are replaced.
pub(super) fn arguments(text: &str, variables: &Variables) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut remaining = text;
    while let Some(first) = remaining.chars().next() {
        if first.is_whitespace() {
            arguments.extend(current.take());
            remaining = &remaining[first.len_utf8()..];
            continue;
        }
        let (part, length) = argument_part(remaining, first, variables);
        current.get_or_insert_default().push_str(&part);
        remaining = &remaining[length..];
    }
    arguments.extend(current);
    arguments
}

/// Returns the value of a quoted text, a variable or a character, and its length as written.
fn argument_part(text: &str, first: char, variables: &Variables) -> (String, usize) {
    let end_of_quote = text[first.len_utf8()..].find('\'').map(|end| end + 2);
    match (first, end_of_quote) {
        ('\'', Some(length)) => (text[1..length - 1].to_owned(), length),
        (':', _) => {
            let value = next_token(text, 1).filter(|token| token.start == 1).and_then(|token| {
                let value = variable(&token, text, variables)?;
                Some((value, token.end))
            });
            value.unwrap_or_else(|| (first.to_string(), 1))
        }
        _ => (first.to_string(), first.len_utf8()),
    }
}
