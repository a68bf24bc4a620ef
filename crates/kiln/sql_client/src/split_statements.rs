//! Splitting of text into statements and backslash commands, like psql: at `;` outside quotes, comments and dollar
//! quotes.

#[cfg(test)]
mod tests;

/// Statement or command of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputItem {
    Statement(String),
    /// Backslash command: a line without its leading backslash.
    Command(String),
}

/// Returns the complete statements and commands of `text`, and the incomplete remainder.
pub(crate) fn split_input(text: &str) -> (Vec<InputItem>, String) {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        if let Some(command) = trimmed.strip_prefix('\\') {
            let (line, after) = command.split_once('\n').unwrap_or((command, ""));
            pieces.push(InputItem::Command(line.trim().to_owned()));
            rest = after;
            continue;
        }
        let Some(end) = statement_end(trimmed) else { return (pieces, trimmed.to_owned()) };
        let (statement, after) = trimmed.split_at(end);
        if statement.trim_matches(|c: char| c == ';' || c.is_whitespace()).is_empty() {
            rest = after;
            continue;
        }
        pieces.push(InputItem::Statement(statement.to_owned()));
        rest = after;
    }
}

/// Returns the byte position after the first `;` that ends a statement.
fn statement_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b';' => return Some(at + 1),
            b'\'' => quoted_end(bytes, at, b'\'', is_escape_string(bytes, at))?,
            b'"' => quoted_end(bytes, at, b'"', false)?,
            b'-' if bytes[at..].starts_with(b"--") => at + text[at..].find('\n')?,
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at)?,
            b'$' => dollar_quoted_end(text, at)?,
            _ => at + 1,
        };
    }
    None
}

/// Returns whether the quote at `at` opens an `E'…'` string, in which a backslash escapes.
fn is_escape_string(bytes: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|index| bytes[index]);
    matches!(before(1), Some(b'e' | b'E'))
        && !before(2).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the position after the quoted text that starts at `start`, or `None` if it is not terminated.
fn quoted_end(bytes: &[u8], start: usize, quote: u8, escapes: bool) -> Option<usize> {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        if (byte == b'\\' && escapes) || (byte == quote && bytes.get(at + 1) == Some(&quote)) {
            at += 2;
        } else if byte == quote {
            return Some(at + 1);
        } else {
            at += 1;
        }
    }
    None
}

/// Returns the position after the block comment that starts at `start`. Block comments nest in SQL.
fn comment_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// Returns the position after the dollar-quoted text that starts at `start`, or after the `$` if it opens none.
fn dollar_quoted_end(text: &str, start: usize) -> Option<usize> {
    let after = &text[start + 1..];
    let tag_length = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let starts_with_digit = after.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if starts_with_digit || after.as_bytes().get(tag_length) != Some(&b'$') {
        return Some(start + 1);
    }
    let tag = &text[start..start + tag_length + 2];
    let body = start + tag.len();
    Some(body + text[body..].find(tag)? + tag.len())
}
