//! Token cursor: the position of the parser in the tokens of a statement, and the parts that all grammar shares (names,
//! lists, errors).

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, ObjectName, TableVersion, Visitor};
use types::interrupt;
use types::stack_limit::{self, PLAN_DEPTH_MAX, too_complex_error};
use types::{Condition, SqlError, SqlResult};

use super::lex::{Lexeme, Token, char_position, error_at};
use crate::keyword::{KeywordCategory, category};
use crate::relation_read::RelationRead;
use crate::tree_visitor::Walk;

/// Maximum nesting of expressions, subqueries and joins: a subquery takes up to eight levels of a plan.
const DEPTH_MAX: usize = PLAN_DEPTH_MAX / 8;

/// Maximum height of a tree of expressions, set operations and joins, since `1 + 1 + …` grows without nesting. Each
/// level becomes up to four levels of a plan.
const HEIGHT_MAX: usize = PLAN_DEPTH_MAX / 4;

/// Maximum number of expressions that BETWEEN SYMMETRIC copies in a statement: nested, its operands double at each level.
const COPIED_EXPRS_MAX: usize = 100_000;

/// Position of the parser in the tokens of a statement.
pub(super) struct Cursor<'a> {
    /// The entire query string.
    pub(super) sql: &'a str,
    /// Text and offset of the statement that is being parsed.
    pub(super) origin: StatementOrigin<'a>,
    lexemes: &'a [Lexeme],
    pub(super) next_index: usize,
    depth: usize,
    /// Height of the highest tree built so far at the current depth.
    tree_height: usize,
    /// Number of expressions copied so far.
    copied_exprs: usize,
    /// Relations read by the part of the statement that is parsed so far.
    pub(super) relations_read: Vec<RelationRead>,
    /// Whether the statement is a query, so that its first SELECT may have INTO.
    pub(super) may_select_into: bool,
    /// Whether DISTRIBUTE, SORT or CLUSTER may follow the query that is being parsed, so that they are not aliases.
    pub(super) clauses_follow_query: bool,
}

/// Text of a statement and its offset in the query string.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatementOrigin<'a> {
    pub(super) text: &'a str,
    /// Offset in characters.
    pub(super) offset: usize,
}

/// Counts down for each expression of a tree, and breaks at zero.
struct ExprCountdown(usize);

impl Visitor for ExprCountdown {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at token `at`; the last of `lexemes` is [`Token::End`].
    pub(super) fn new(sql: &'a str, lexemes: &'a [Lexeme], at: usize, origin: StatementOrigin<'a>) -> Self {
        Self {
            sql,
            origin,
            lexemes,
            next_index: at,
            depth: 0,
            tree_height: 0,
            copied_exprs: 0,
            relations_read: Vec::new(),
            may_select_into: false,
            clauses_follow_query: false,
        }
    }

    /// Records that the statement reads a relation.
    pub(super) fn record_read(&mut self, name: &ObjectName, version: Option<&TableVersion>) {
        self.relations_read.push(RelationRead { name: name.clone(), version: version.cloned() });
    }

    /// Returns the next lexeme.
    pub(super) fn lexeme(&self) -> &'a Lexeme {
        self.lexeme_at(0)
    }

    fn lexeme_at(&self, count: usize) -> &'a Lexeme {
        let last = self.lexemes.len() - 1;
        &self.lexemes[(self.next_index + count).min(last)]
    }

    /// Returns the lexeme before the next one.
    pub(super) fn previous_lexeme(&self) -> &'a Lexeme {
        &self.lexemes[self.next_index.saturating_sub(1)]
    }

    pub(super) fn peek(&self) -> &'a Token {
        &self.lexeme_at(0).token
    }

    pub(super) fn peek_at(&self, count: usize) -> &'a Token {
        &self.lexeme_at(count).token
    }

    pub(super) fn advance(&mut self) -> &'a Lexeme {
        let lexeme = self.lexeme();
        if lexeme.token != Token::End {
            self.next_index += 1;
        }
        lexeme
    }

    /// Returns the next token if it is a keyword or an unquoted name.
    pub(super) fn next_word(&self) -> Option<&'a str> {
        self.word_at(0)
    }

    pub(super) fn word_at(&self, count: usize) -> Option<&'a str> {
        match self.peek_at(count) {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether these words come next.
    pub(super) fn next_is(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(at, word)| self.word_at(at) == Some(word))
    }

    /// Consumes these words if all of them come next; returns whether they did.
    pub(super) fn eat(&mut self, words: &str) -> bool {
        let found = self.next_is(words);
        if found {
            self.next_index += words.split(' ').count();
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

    /// Consumes the next token if it is one of the words.
    pub(super) fn eat_one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let word = self.next_word()?;
        let found = words.iter().find(|candidate| **candidate == word)?;
        self.next_index += 1;
        Some(found)
    }

    pub(super) fn is_symbol(&self, symbol: char) -> bool {
        *self.peek() == Token::Symbol(symbol)
    }

    pub(super) fn eat_symbol(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.next_index += 1;
        }
        found
    }

    pub(super) fn expect_symbol(&mut self, symbol: char) -> SqlResult<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// Returns the next token if it is an operator.
    pub(super) fn operator(&self) -> Option<&'a str> {
        match self.peek() {
            Token::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    pub(super) fn eat_operator(&mut self, operator: &str) -> bool {
        let found = self.operator() == Some(operator);
        if found {
            self.next_index += 1;
        }
        found
    }

    /// Whether the end of the statement comes next.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.peek(), Token::End | Token::Symbol(';'))
    }

    /// Returns `syntax error at or near` with the next token.
    pub(super) fn syntax_error(&self) -> SqlError {
        let lexeme = self.lexeme();
        error_at(self.sql, "syntax error", lexeme.start, lexeme.end)
    }

    /// Adds the position of the next token to an error.
    pub(super) fn with_next_position(&self, error: SqlError) -> SqlError {
        error.with_position(char_position(self.sql, self.lexeme().start))
    }

    /// Returns `0A000` at the position of the next token.
    pub(super) fn unsupported(&self, what: &str) -> SqlError {
        self.with_next_position(SqlError::unsupported(what))
    }

    /// Runs `parse` one nesting level deeper; fails with the error for too complex statements beyond `DEPTH_MAX`.
    pub(super) fn parse_nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        interrupt::check()?;
        if self.depth >= DEPTH_MAX {
            return Err(too_complex_error());
        }
        stack_limit::check()?;
        self.depth += 1;
        let height = std::mem::take(&mut self.tree_height);
        let parsed = parse(self);
        self.depth -= 1;
        self.tree_height = height.max(self.tree_height + 1);
        parsed
    }

    /// Counts a tree node that was put above the trees of this depth without deeper nesting; fails beyond `HEIGHT_MAX`.
    pub(super) fn add_tree_level(&mut self) -> SqlResult<()> {
        self.tree_height += 1;
        if self.tree_height > HEIGHT_MAX { Err(too_complex_error()) } else { Ok(()) }
    }

    /// Clones an operand that the expansion of BETWEEN SYMMETRIC evaluates twice; fails beyond `COPIED_EXPRS_MAX`.
    pub(super) fn copy_operand(&mut self, expr: &Expr) -> SqlResult<Box<Expr>> {
        let mut count = ExprCountdown(COPIED_EXPRS_MAX - self.copied_exprs);
        if expr.walk(&mut count).is_break() {
            return Err(too_complex_error());
        }
        self.copied_exprs = COPIED_EXPRS_MAX - count.0;
        Ok(Box::new(expr.clone()))
    }

    /// Parses one or more items, separated by commas.
    pub(super) fn list<T>(&mut self, mut parse: impl FnMut(&mut Self) -> SqlResult<T>) -> SqlResult<Vec<T>> {
        let mut items = vec![parse(self)?];
        while self.eat_symbol(',') {
            items.push(parse(self)?);
        }
        Ok(items)
    }

    /// Parses one or more items in parentheses, separated by commas.
    pub(super) fn parenthesized<T>(&mut self, parse: impl FnMut(&mut Self) -> SqlResult<T>) -> SqlResult<Vec<T>> {
        self.expect_symbol('(')?;
        let items = self.list(parse)?;
        self.expect_symbol(')')?;
        Ok(items)
    }

    /// Parses the name of a column, table, schema or role.
    pub(super) fn name(&mut self) -> SqlResult<Ident> {
        self.ident(|category| !matches!(category, Some(KeywordCategory::Reserved | KeywordCategory::FunctionOrType)))
    }

    /// Parses a name after a dot or after AS, which may be any word.
    pub(super) fn label(&mut self) -> SqlResult<Ident> {
        self.ident(|_| true)
    }

    /// Parses the name of a type or function.
    pub(super) fn type_name(&mut self) -> SqlResult<Ident> {
        self.ident(|category| !matches!(category, Some(KeywordCategory::Reserved | KeywordCategory::ColumnName)))
    }

    fn ident(&mut self, allowed: impl Fn(Option<KeywordCategory>) -> bool) -> SqlResult<Ident> {
        let lexeme = self.lexeme();
        let (value, quote_style) = match &lexeme.token {
            Token::Quoted(name) => (name, Some('"')),
            Token::Word(word) if allowed(category(word)) => (word, None),
            _ => return Err(self.syntax_error()),
        };
        self.next_index += 1;
        Ok(Ident { value: value.clone(), quote_style, span: lexeme.span })
    }

    /// Parses `[[database.]schema.]name`.
    pub(super) fn object_name(&mut self) -> SqlResult<ObjectName> {
        let first = self.name()?;
        self.qualified_name(first)
    }

    /// Parses the parts after `first` of a qualified name.
    pub(super) fn qualified_name(&mut self, first: Ident) -> SqlResult<ObjectName> {
        let begin = self.next_index.saturating_sub(1);
        let mut parts = vec![first];
        while self.eat_symbol('.') {
            parts.push(self.label()?);
        }
        if parts.len() > 3 {
            let shown: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            let message = format!("improper qualified name (too many dotted names): {}", shown.join("."));
            let position = char_position(self.sql, self.lexemes[begin].start);
            return Err(SqlError::new(Condition::SyntaxError, message).with_position(position));
        }
        Ok(ObjectName::from(parts))
    }

    /// Parses `(a, b)`; returns an empty list if no parenthesis comes next.
    pub(super) fn optional_names(&mut self) -> SqlResult<Vec<Ident>> {
        if self.is_symbol('(') { self.parenthesized(Self::name) } else { Ok(Vec::new()) }
    }

    /// Parses a string constant.
    pub(super) fn text(&mut self) -> SqlResult<String> {
        match self.peek() {
            Token::Text(text) => {
                self.next_index += 1;
                Ok(text.clone())
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Parses an integer with an optional sign.
    pub(super) fn signed_integer(&mut self) -> SqlResult<i64> {
        let negative = self.eat_operator("-");
        if !negative {
            self.eat_operator("+");
        }
        let number = self.integer()?;
        Ok(if negative { -number } else { number })
    }

    /// Parses an unsigned integer.
    pub(super) fn integer(&mut self) -> SqlResult<i64> {
        match self.peek() {
            // A number of more than 32 bits is no integer constant in PostgreSQL's grammar.
            Token::Integer(digits) if digits.parse::<i32>().is_ok() => {
                self.next_index += 1;
                Ok(digits.parse().unwrap_or_default())
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Parses an optional CASCADE or RESTRICT; true for CASCADE.
    pub(super) fn cascade(&mut self) -> bool {
        let cascade = self.eat("cascade");
        if !cascade {
            self.eat("restrict");
        }
        cascade
    }
}
