//! Cuts text into statements and backslash commands, as psql does: at `;` outside quotes, comments and dollar quotes.

#[cfg(test)]
mod tests;

/// A piece of input that can run on its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Statement(String),
    /// A line that begins with a backslash, without it.
    Command(String),
}

/// The complete pieces of `text`, and what is left after the last of them.
pub(crate) fn split(text: &str) -> (Vec<Piece>, String) {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        if let Some(command) = trimmed.strip_prefix('\\') {
            let (line, after) = command.split_once('\n').unwrap_or((command, ""));
            pieces.push(Piece::Command(line.trim().to_owned()));
            rest = after;
            continue;
        }
        let Some(end) = statement_end(trimmed) else { return (pieces, trimmed.to_owned()) };
        let (statement, after) = trimmed.split_at(end);
        if statement.trim_matches(|c: char| c == ';' || c.is_whitespace()).is_empty() {
            rest = after;
            continue;
        }
        pieces.push(Piece::Statement(statement.to_owned()));
        rest = after;
    }
}

/// Byte position just past the first `;` that ends a statement.
fn statement_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b';' => return Some(at + 1),
            b'\'' => quoted(bytes, at, b'\'', escapes(bytes, at))?,
            b'"' => quoted(bytes, at, b'"', false)?,
            b'-' if bytes[at..].starts_with(b"--") => at + text[at..].find('\n')?,
            b'/' if bytes[at..].starts_with(b"/*") => comment(bytes, at)?,
            b'$' => dollar_quoted(text, at)?,
            _ => at + 1,
        };
    }
    None
}

/// Whether the quote at `at` opens an `E'…'` string, in which a backslash escapes.
fn escapes(bytes: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|index| bytes[index]);
    matches!(before(1), Some(b'e' | b'E'))
        && !before(2).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quoted(bytes: &[u8], start: usize, quote: u8, escapes: bool) -> Option<usize> {
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

/// Block comments nest in SQL.
fn comment(bytes: &[u8], start: usize) -> Option<usize> {
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

fn dollar_quoted(text: &str, start: usize) -> Option<usize> {
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
