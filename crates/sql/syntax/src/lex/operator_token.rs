//! Operator tokens: the longest run of operator characters, with PostgreSQL's two exceptions (comments, trailing
//! signs).

use super::Lexer;

/// Characters whose presence allows an operator to end in `+` or `-`.
const SIGN_ENDING_CHARS: [char; 9] = ['~', '!', '@', '#', '^', '&', '|', '`', '?'];

pub(super) fn is_operator_char(c: char) -> bool {
    SIGN_ENDING_CHARS.contains(&c) || matches!(c, '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=')
}

impl Lexer<'_> {
    pub(super) fn operator(&mut self) -> String {
        let rest = self.remaining();
        let mut length = rest.find(|c| !is_operator_char(c)).unwrap_or(rest.len());
        // A comment ends the operator.
        for comment in ["--", "/*"] {
            length = rest[..length].find(comment).unwrap_or(length);
        }
        // `a=-1` is an equality and a unary minus.
        while length > 1
            && rest[..length].ends_with(['+', '-'])
            && !rest[..length].contains(|c| SIGN_ENDING_CHARS.contains(&c) || c == '%')
        {
            length -= 1;
        }
        let operator = match &rest[..length] {
            "!=" => "<>".to_owned(),
            other => other.to_owned(),
        };
        self.position += length;
        operator
    }
}
