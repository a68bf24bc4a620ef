//! Lexer of PostgreSQL's SQL. Text of any kind has tokens; nothing is an error.

#[cfg(test)]
mod tests;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Keyword or identifier without quotes.
    Word,
    /// Identifier in double quotes.
    QuotedName,
    /// String constant of any form.
    Text,
    /// Number, or a parameter such as `$1`.
    Number,
    /// Any other character.
    Symbol(char),
}

/// Token, and the bytes of the text that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    /// Returns the token as written.
    pub(crate) fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.start..self.end]
    }

    /// Returns the name that a word or a quoted identifier stands for, and `None` for other tokens.
    pub(crate) fn name(&self, sql: &str) -> Option<String> {
        match self.kind {
            TokenKind::Word => Some(self.text(sql).to_lowercase()),
            TokenKind::QuotedName => Some(self.text(sql).trim_matches('"').replace("\"\"", "\"")),
            TokenKind::Text | TokenKind::Number | TokenKind::Symbol(_) => None,
        }
    }
}

/// Returns the first token at or after a position. Blanks and comments before it are skipped.
pub(crate) fn next_token(sql: &str, from: usize) -> Option<Token> {
    let start = skip_blanks(sql, from);
    let text = &sql[start..];
    let first = text.chars().next()?;
    let (kind, length) = match first {
        '\'' => (TokenKind::Text, quoted_length(text, b'\'', false)),
        '"' => (TokenKind::QuotedName, quoted_length(text, b'"', false)),
        '$' => dollar_token(text),
        letter if is_word_start(letter) => word_token(text),
        digit if digit.is_ascii_digit() => (TokenKind::Number, span(text, |c| c.is_ascii_alphanumeric() || c == '.')),
        symbol => (TokenKind::Symbol(symbol), symbol.len_utf8()),
    };
    Some(Token { kind, start, end: start + length })
}

/// Returns the position of the first character that is neither blank nor in a comment.
fn skip_blanks(sql: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let text = &sql[at..];
        at += if text.starts_with("--") {
            text.find('\n').unwrap_or(text.len())
        } else if text.starts_with("/*") {
            block_comment_length(text.as_bytes())
        } else {
            match span(text, char::is_whitespace) {
                0 => return at,
                blanks => blanks,
            }
        };
    }
}

/// Returns the length of a comment that may contain others.
fn block_comment_length(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        match text.get(at..at + 2) {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the length of a quoted text with its quotes; a doubled quote does not end it.
fn quoted_length(text: &str, quote: u8, has_escapes: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        let is_pair =
            if bytes[at] == quote { bytes.get(at + 1) == Some(&quote) } else { has_escapes && bytes[at] == b'\\' };
        if bytes[at] == quote && !is_pair {
            return at + 1;
        }
        at += if is_pair { 2 } else { 1 };
    }
    text.len()
}

fn word_token(text: &str) -> (TokenKind, usize) {
    let length = span(text, is_word_part);
    let is_prefix =
        length == 1 && text[1..].starts_with('\'') && text.starts_with(['e', 'E', 'b', 'B', 'x', 'X', 'n', 'N']);
    if is_prefix {
        let has_escapes = text.starts_with(['e', 'E']);
        (TokenKind::Text, 1 + quoted_length(&text[1..], b'\'', has_escapes))
    } else {
        (TokenKind::Word, length)
    }
}

/// Reads a dollar-quoted text, a parameter, or the sign alone.
fn dollar_token(text: &str) -> (TokenKind, usize) {
    let digits = span(&text[1..], |c| c.is_ascii_digit());
    if 0 < digits {
        return (TokenKind::Number, 1 + digits);
    }
    let tag = span(&text[1..], |c| c != '$' && is_word_part(c));
    let delimiter_length = tag + 2;
    if text.as_bytes().get(tag + 1) != Some(&b'$') {
        return (TokenKind::Symbol('$'), 1);
    }
    let (delimiter, body) = text.split_at(delimiter_length);
    (TokenKind::Text, body.find(delimiter).map_or(text.len(), |end| end + 2 * delimiter_length))
}

fn is_word_start(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_' || !letter.is_ascii()
}

fn is_word_part(letter: char) -> bool {
    is_word_start(letter) || letter.is_ascii_digit() || letter == '$'
}

/// Returns the length of the longest beginning in which the test holds for every character.
fn span(text: &str, holds: impl Fn(char) -> bool) -> usize {
    text.find(|c| !holds(c)).unwrap_or(text.len())
}
