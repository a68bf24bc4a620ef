//! Lexer: splits text into tokens, by the rules of PostgreSQL's scanner.
//!
//! Unquoted names are folded to lower case, all names are truncated to 63 bytes, and escapes in strings are resolved,
//! so that the parser need not know how something was written.

mod operator_token;
mod string_literal;

use sqlparser::tokenizer::{Location, Span};
use types::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Maximum length of a name in bytes; longer names are truncated.
const NAME_BYTES_MAX: usize = 63;

/// Token of the query text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// Keyword or unquoted name, in lower case.
    Word(String),
    /// Name in double quotes.
    Quoted(String),
    /// Digits only.
    Integer(String),
    /// Number with a decimal point or an exponent.
    Decimal(String),
    /// String constant of any form.
    Text(String),
    /// `B'…'` or `X'…'`, as the letter in lower case and the digits.
    Bits(String),
    /// Parameter with its dollar sign: `$1`.
    Parameter(String),
    /// `( ) [ ] , ; : .`, or a character that begins no token.
    Symbol(char),
    /// Operator, or `::`, `:=`, `=>`, `..`; `!=` is stored as `<>`.
    Operator(String),
    End,
}

/// Token with its position.
#[derive(Debug, Clone)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    /// Byte range in the query string.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Lines and columns in its statement, both from 1.
    pub(super) span: Span,
}

/// Splits a query string into tokens, including the `;` after each statement; the last is [`Token::End`].
///
/// # Errors
/// `42601` and other syntax errors, with the position of an unterminated token or a malformed number.
pub(super) fn lex(sql: &str) -> SqlResult<Vec<Lexeme>> {
    let mut lexer = Lexer { sql, position: 0 };
    let mut lexemes = Vec::with_capacity(sql.len() / 4 + 1);
    let mut place = PositionTracker { byte: 0, location: START_LOCATION };
    let mut statement_begins = true;
    loop {
        lexer.skip_blanks()?;
        if statement_begins {
            place = PositionTracker { byte: lexer.position, location: START_LOCATION };
        }
        let start = lexer.position;
        let token = lexer.token()?;
        let begin = place.advance(sql, start);
        let end = place.advance(sql, lexer.position);
        statement_begins = token == Token::Symbol(';');
        let last = token == Token::End;
        lexemes.push(Lexeme { token, start, end: lexer.position, span: Span::new(begin, end) });
        if last {
            return Ok(lexemes);
        }
    }
}

const START_LOCATION: Location = Location { line: 1, column: 1 };

/// Line and column of a byte position that only moves forward.
struct PositionTracker {
    byte: usize,
    location: Location,
}

impl PositionTracker {
    fn advance(&mut self, sql: &str, to: usize) -> Location {
        for c in sql[self.byte..to].chars() {
            if c == '\n' {
                self.location = Location { line: self.location.line + 1, column: 1 };
            } else {
                self.location.column += 1;
            }
        }
        self.byte = to;
        self.location
    }
}

/// Lexer state; `at` is the position of the next byte.
struct Lexer<'a> {
    sql: &'a str,
    position: usize,
}

impl Lexer<'_> {
    fn remaining(&self) -> &str {
        &self.sql[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.sql.as_bytes().get(self.position + ahead).copied()
    }

    /// Returns `message at or near "text"`, where the text is from `start` to the current position.
    fn error(&self, message: &str, start: usize) -> SqlError {
        error_at(self.sql, message, start, self.position)
    }

    /// Skips white space and comments; returns whether they contain a line break.
    fn skip_blanks(&mut self) -> SqlResult<bool> {
        let mut line_break = false;
        loop {
            match self.byte(0) {
                Some(b'\n' | b'\r') => {
                    line_break = true;
                    self.position += 1;
                }
                Some(b' ' | b'\t' | 0x0b | 0x0c) => self.position += 1,
                Some(b'-') if self.byte(1) == Some(b'-') => {
                    self.position += self.remaining().find(['\n', '\r']).unwrap_or_else(|| self.remaining().len());
                }
                Some(b'/') if self.byte(1) == Some(b'*') => self.skip_comment()?,
                _ => return Ok(line_break),
            }
        }
    }

    /// Skips a `/* … */` comment, which may be nested.
    fn skip_comment(&mut self) -> SqlResult<()> {
        let start = self.position;
        let mut depth = 0_usize;
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    self.position += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.position += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                (Some(_), _) => self.position += 1,
                (None, _) => return Err(self.error("unterminated /* comment", start)),
            }
        }
    }

    fn token(&mut self) -> SqlResult<Token> {
        let Some(c) = self.peek() else { return Ok(Token::End) };
        match c {
            '\'' => self.plain_string().map(Token::Text),
            '"' => self.quoted_name().map(Token::Quoted),
            '$' if self.byte(1).is_some_and(|b| b.is_ascii_digit()) => self.parameter(),
            '$' => match self.dollar_string()? {
                Some(text) => Ok(Token::Text(text)),
                None => Ok(self.symbol('$')),
            },
            '0'..='9' => self.number(),
            '.' if self.byte(1).is_some_and(|b| b.is_ascii_digit()) => self.number(),
            '.' | ':' | '(' | ')' | '[' | ']' | ',' | ';' => {
                for pair in ["..", "::", ":="] {
                    if self.remaining().starts_with(pair) {
                        self.position += pair.len();
                        return Ok(Token::Operator(pair.to_owned()));
                    }
                }
                Ok(self.symbol(c))
            }
            c if operator_token::is_operator_char(c) => Ok(Token::Operator(self.operator())),
            c if is_name_start(c) => self.word(),
            c => Ok(self.symbol(c)),
        }
    }

    fn symbol(&mut self, c: char) -> Token {
        self.position += c.len_utf8();
        Token::Symbol(c)
    }

    /// Reads a name, or a string with a prefix letter.
    fn word(&mut self) -> SqlResult<Token> {
        match (self.byte(0), self.byte(1), self.byte(2)) {
            (Some(b'e' | b'E'), Some(b'\''), _) => return self.escaped_string().map(Token::Text),
            (Some(b'n' | b'N'), Some(b'\''), _) => {
                self.position += 1;
                return self.plain_string().map(Token::Text);
            }
            (Some(b'b' | b'B' | b'x' | b'X'), Some(b'\''), _) => return self.bit_string().map(Token::Bits),
            (Some(b'u' | b'U'), Some(b'&'), Some(b'\'')) => return self.unicode_string().map(Token::Text),
            (Some(b'u' | b'U'), Some(b'&'), Some(b'"')) => return self.unicode_name().map(Token::Quoted),
            _ => {}
        }
        let length = self.remaining().find(|c| !is_name_part(c)).unwrap_or_else(|| self.remaining().len());
        let word = self.remaining()[..length].to_ascii_lowercase();
        self.position += length;
        Ok(Token::Word(truncate_name(word)))
    }

    fn parameter(&mut self) -> SqlResult<Token> {
        let start = self.position;
        self.position += 1;
        self.skip_digits();
        let text = self.sql[start..self.position].to_owned();
        self.refuse_junk("trailing junk after parameter", start)?;
        // PostgreSQL's grammar counts parameters in 32 bits, the wire protocol in 16.
        if text[1..].parse::<u16>().is_err() {
            let message = format!("there is no parameter {text}");
            let position = char_position(self.sql, start);
            return Err(SqlError::new(Condition::UndefinedParameter, message).with_position(position));
        }
        Ok(Token::Parameter(text))
    }

    fn number(&mut self) -> SqlResult<Token> {
        let start = self.position;
        self.skip_digits();
        let mut whole = true;
        // `1..10` is a range of integers.
        if self.byte(0) == Some(b'.') && self.byte(1) != Some(b'.') {
            whole = false;
            self.position += 1;
            self.skip_digits();
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
            if self.byte(1 + sign).is_some_and(|b| b.is_ascii_digit()) {
                whole = false;
                self.position += 1 + sign;
                self.skip_digits();
            }
        }
        let text = self.sql[start..self.position].to_owned();
        self.refuse_junk("trailing junk after numeric literal", start)?;
        Ok(if whole { Token::Integer(text) } else { Token::Decimal(text) })
    }

    fn skip_digits(&mut self) {
        while self.byte(0).is_some_and(|b| b.is_ascii_digit()) {
            self.position += 1;
        }
    }

    fn refuse_junk(&mut self, message: &str, start: usize) -> SqlResult<()> {
        if !self.peek().is_some_and(is_name_start) {
            return Ok(());
        }
        self.position += self.remaining().find(|c| !is_name_part(c)).unwrap_or_else(|| self.remaining().len());
        Err(self.error(message, start))
    }
}

/// Returns `message at or near "text"`, or `at end of input`.
pub(super) fn error_at(sql: &str, message: &str, start: usize, end: usize) -> SqlError {
    let message = match &sql[start..end] {
        "" => format!("{message} at end of input"),
        text => format!("{message} at or near \"{text}\""),
    };
    SqlError::new(Condition::SyntaxError, message).with_position(char_position(sql, start))
}

/// Returns the position of a byte in characters, from 1.
pub(super) fn char_position(sql: &str, byte: usize) -> u32 {
    u32::try_from(sql[..byte].chars().count() + 1).unwrap_or(u32::MAX)
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_name_part(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit() || c == '$'
}

fn truncate_name(mut name: String) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}
