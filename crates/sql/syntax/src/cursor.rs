//! The tokens of one statement and where the parser stands among them; names, lists and errors, which all grammar needs.

use sqlparser::ast::{Ident, ObjectName, TableVersion};
use types::interrupt;
use types::stack::{self, PLAN_LEVELS, too_complex};
use types::{Condition, SqlError, SqlResult};

use super::lex::{Lexeme, Token, at_or_near, character};
use crate::keyword::{Category, category};
use crate::relation_read::RelationRead;

/// Deepest nesting of expressions, subqueries and joins: a subquery is up to eight levels of a plan.
const DEPTH_MAX: usize = PLAN_LEVELS / 8;

/// Greatest height of a tree of expressions, set operations and joins: `1 + 1 + …` grows without nesting. What it becomes has up to four
/// levels for each.
const HEIGHT_MAX: usize = PLAN_LEVELS / 4;

/// Where the parser stands.
pub(super) struct Cursor<'a> {
    /// The whole query string.
    pub(super) sql: &'a str,
    /// The statement that is being parsed.
    pub(super) origin: Origin<'a>,
    lexemes: &'a [Lexeme],
    pub(super) at: usize,
    depth: usize,
    /// The height of the highest tree that was made at this depth.
    height: usize,
    /// The relations that are read by what was parsed.
    pub(super) relations_read: Vec<RelationRead>,
    /// The statement is a query, whose first SELECT may have INTO.
    pub(super) may_select_into: bool,
    /// The query that is being parsed may be followed by DISTRIBUTE, SORT or CLUSTER: they are no aliases then.
    pub(super) clauses_follow_query: bool,
}

/// The text that a statement comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) text: &'a str,
    /// In characters.
    pub(super) offset: usize,
}

impl<'a> Cursor<'a> {
    /// `lexemes` end in [`Token::End`].
    pub(super) fn new(sql: &'a str, lexemes: &'a [Lexeme], at: usize, origin: Origin<'a>) -> Self {
        Self {
            sql,
            origin,
            lexemes,
            at,
            depth: 0,
            height: 0,
            relations_read: Vec::new(),
            may_select_into: false,
            clauses_follow_query: false,
        }
    }

    /// The statement reads a relation.
    pub(super) fn reads(&mut self, name: &ObjectName, version: Option<&TableVersion>) {
        self.relations_read.push(RelationRead { name: name.clone(), version: version.cloned() });
    }

    /// The lexeme that comes next.
    pub(super) fn lexeme(&self) -> &'a Lexeme {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> &'a Lexeme {
        let last = self.lexemes.len() - 1;
        &self.lexemes[(self.at + count).min(last)]
    }

    /// The lexeme before.
    pub(super) fn last(&self) -> &'a Lexeme {
        &self.lexemes[self.at.saturating_sub(1)]
    }

    pub(super) fn peek(&self) -> &'a Token {
        &self.ahead(0).token
    }

    pub(super) fn peek_at(&self, count: usize) -> &'a Token {
        &self.ahead(count).token
    }

    pub(super) fn advance(&mut self) -> &'a Lexeme {
        let lexeme = self.lexeme();
        if lexeme.token != Token::End {
            self.at += 1;
        }
        lexeme
    }

    /// The keyword or unquoted name that comes next.
    pub(super) fn word(&self) -> Option<&'a str> {
        self.word_at(0)
    }

    pub(super) fn word_at(&self, count: usize) -> Option<&'a str> {
        match self.peek_at(count) {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether these words come next.
    pub(super) fn is(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(at, word)| self.word_at(at) == Some(word))
    }

    /// Takes these words if they come next, all or none.
    pub(super) fn eat(&mut self, words: &str) -> bool {
        let found = self.is(words);
        if found {
            self.at += words.split(' ').count();
        }
        found
    }

    pub(super) fn expect(&mut self, words: &str) -> SqlResult<()> {
        for word in words.split(' ') {
            if !self.eat(word) {
                return Err(self.syntax_error());
            }
        }
        Ok(())
    }

    /// Takes whichever of the words comes next.
    pub(super) fn eat_one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let word = self.word()?;
        let found = words.iter().find(|candidate| **candidate == word)?;
        self.at += 1;
        Some(found)
    }

    pub(super) fn is_symbol(&self, symbol: char) -> bool {
        *self.peek() == Token::Symbol(symbol)
    }

    pub(super) fn eat_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect_symbol(&mut self, symbol: char) -> SqlResult<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// The operator that comes next.
    pub(super) fn operator(&self) -> Option<&'a str> {
        match self.peek() {
            Token::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    pub(super) fn eat_operator(&mut self, operator: &str) -> bool {
        let found = self.operator() == Some(operator);
        if found {
            self.at += 1;
        }
        found
    }

    /// Whether the statement is over.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.peek(), Token::End | Token::Symbol(';'))
    }

    /// `syntax error at or near` what comes next.
    pub(super) fn syntax_error(&self) -> SqlError {
        let lexeme = self.lexeme();
        at_or_near(self.sql, "syntax error", lexeme.start, lexeme.end)
    }

    /// `error` with the position of what comes next.
    pub(super) fn here(&self, error: SqlError) -> SqlError {
        error.with_position(character(self.sql, self.lexeme().start))
    }

    /// `0A000`, at what comes next.
    pub(super) fn unsupported(&self, what: &str) -> SqlError {
        self.here(SqlError::unsupported(what))
    }

    /// Goes one level deeper for as long as `parse` runs.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        interrupt::check()?;
        if self.depth >= DEPTH_MAX {
            return Err(too_complex());
        }
        stack::check()?;
        self.depth += 1;
        let height = std::mem::take(&mut self.height);
        let parsed = parse(self);
        self.depth -= 1;
        self.height = height.max(self.height + 1);
        parsed
    }

    /// What was made at this depth becomes part of something higher without going deeper.
    pub(super) fn grow(&mut self) -> SqlResult<()> {
        self.height += 1;
        if self.height > HEIGHT_MAX { Err(too_complex()) } else { Ok(()) }
    }

    /// One or more, separated by commas.
    pub(super) fn list<T>(&mut self, mut parse: impl FnMut(&mut Self) -> SqlResult<T>) -> SqlResult<Vec<T>> {
        let mut items = vec![parse(self)?];
        while self.eat_symbol(',') {
            items.push(parse(self)?);
        }
        Ok(items)
    }

    /// One or more in parentheses, separated by commas.
    pub(super) fn parenthesized<T>(&mut self, parse: impl FnMut(&mut Self) -> SqlResult<T>) -> SqlResult<Vec<T>> {
        self.expect_symbol('(')?;
        let items = self.list(parse)?;
        self.expect_symbol(')')?;
        Ok(items)
    }

    /// The name of a column, table, schema, role.
    pub(super) fn name(&mut self) -> SqlResult<Ident> {
        self.ident(|category| !matches!(category, Some(Category::Reserved | Category::FunctionOrType)))
    }

    /// A name after a point, or after AS: any word.
    pub(super) fn label(&mut self) -> SqlResult<Ident> {
        self.ident(|_| true)
    }

    /// The name of a type or function.
    pub(super) fn type_name(&mut self) -> SqlResult<Ident> {
        self.ident(|category| !matches!(category, Some(Category::Reserved | Category::ColumnName)))
    }

    fn ident(&mut self, allowed: impl Fn(Option<Category>) -> bool) -> SqlResult<Ident> {
        let lexeme = self.lexeme();
        let (value, quote_style) = match &lexeme.token {
            Token::Quoted(name) => (name, Some('"')),
            Token::Word(word) if allowed(category(word)) => (word, None),
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok(Ident { value: value.clone(), quote_style, span: lexeme.span })
    }

    /// `[[database.]schema.]name`
    pub(super) fn object_name(&mut self) -> SqlResult<ObjectName> {
        let first = self.name()?;
        self.qualified(first)
    }

    /// The rest of a name that begins with `first`.
    pub(super) fn qualified(&mut self, first: Ident) -> SqlResult<ObjectName> {
        let begin = self.at.saturating_sub(1);
        let mut parts = vec![first];
        while self.eat_symbol('.') {
            parts.push(self.label()?);
        }
        if parts.len() > 3 {
            let shown: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            let message = format!("improper qualified name (too many dotted names): {}", shown.join("."));
            let position = character(self.sql, self.lexemes[begin].start);
            return Err(SqlError::new(Condition::SyntaxError, message).with_position(position));
        }
        Ok(ObjectName::from(parts))
    }

    /// `(a, b)` where it follows, else nothing.
    pub(super) fn optional_names(&mut self) -> SqlResult<Vec<Ident>> {
        if self.is_symbol('(') { self.parenthesized(Self::name) } else { Ok(Vec::new()) }
    }

    /// A string constant.
    pub(super) fn text(&mut self) -> SqlResult<String> {
        match self.peek() {
            Token::Text(text) => {
                self.at += 1;
                Ok(text.clone())
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// A whole number with a sign.
    pub(super) fn signed_integer(&mut self) -> SqlResult<i64> {
        let negative = self.eat_operator("-");
        if !negative {
            self.eat_operator("+");
        }
        let number = self.integer()?;
        Ok(if negative { -number } else { number })
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> SqlResult<i64> {
        match self.peek() {
            // More than 32 bits is no integer constant in PostgreSQL's grammar.
            Token::Integer(digits) if digits.parse::<i32>().is_ok() => {
                self.at += 1;
                Ok(digits.parse().unwrap_or_default())
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// CASCADE; RESTRICT and nothing are the same.
    pub(super) fn cascade(&mut self) -> bool {
        let cascade = self.eat("cascade");
        if !cascade {
            self.eat("restrict");
        }
        cascade
    }
}
