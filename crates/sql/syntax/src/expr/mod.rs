//! Expressions, parsed by operator precedence as in PostgreSQL's grammar.
//!
//! `primary_expr.rs` has operands, `call.rs` function calls and special call syntax, `window.rs` OVER, `operator_precedence.rs` the
//! operators.

mod call;
mod operator_precedence;
mod primary_expr;
mod window;

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};
use types::{SqlError, SqlResult};

use self::operator_precedence::{Precedence, binary_operator, precedence, prefix_operator};
use super::lex::Token;
use super::token_cursor::Cursor;

/// Number of operands of AND or OR from which the tree is balanced; shorter chains have PostgreSQL's left-deep shape.
const CHAIN_BALANCED_MIN: usize = 12;

/// Nonterminal of PostgreSQL's grammar that an expression is parsed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExprGrammar {
    /// `a_expr`: any expression.
    Any,
    /// `b_expr`: without AND, OR, NOT, IS NULL, LIKE, IN and BETWEEN, which mean something else in its context.
    Restricted,
}

impl Cursor<'_> {
    /// Parses an expression.
    pub(super) fn expr(&mut self) -> SqlResult<Expr> {
        self.parse_nested(|cursor| cursor.climb_from_prefix(Precedence::None, ExprGrammar::Any))
    }

    /// Parses an expression in a context that uses AND, IN and NOT NULL itself: a DEFAULT, a bound of BETWEEN.
    pub(super) fn restricted_expr(&mut self) -> SqlResult<Expr> {
        self.parse_nested(|cursor| cursor.climb_from_prefix(Precedence::None, ExprGrammar::Restricted))
    }

    /// Parses an operand whose operators bind tighter than `level`.
    fn operand(&mut self, level: Precedence, grammar: ExprGrammar) -> SqlResult<Expr> {
        self.parse_nested(|cursor| cursor.climb_from_prefix(level, grammar))
    }

    fn climb_from_prefix(&mut self, least: Precedence, grammar: ExprGrammar) -> SqlResult<Expr> {
        let first = self.prefix(grammar)?;
        self.climb_precedence(first, least, grammar)
    }

    /// Parses the remainder of an expression whose first operand is parsed already.
    pub(super) fn continue_expr(&mut self, first: Expr) -> SqlResult<Expr> {
        let first = self.postfix(first)?;
        self.climb_precedence(first, Precedence::None, ExprGrammar::Any)
    }

    /// Parses an operand with its prefix operators.
    fn prefix(&mut self, grammar: ExprGrammar) -> SqlResult<Expr> {
        if self.next_is("not") && grammar == ExprGrammar::Any {
            self.advance();
            if self.next_is("exists") {
                return match self.operand(Precedence::Not, grammar)? {
                    Expr::Exists { subquery, negated } => Ok(Expr::Exists { subquery, negated: !negated }),
                    other => Ok(unary(UnaryOperator::Not, other)),
                };
            }
            let operand = self.operand(Precedence::Not, grammar)?;
            return Ok(unary(UnaryOperator::Not, operand));
        }
        if let Some(sign) = self.operator().filter(|operator| matches!(*operator, "+" | "-")) {
            self.advance();
            let operand = self.operand(Precedence::Sign, grammar)?;
            let operator = if sign == "-" { UnaryOperator::Minus } else { UnaryOperator::Plus };
            return Ok(unary(operator, operand));
        }
        let named = self.named_operator()?;
        if let Some(name) = named.as_deref().or_else(|| self.operator()) {
            if named.is_none() {
                if precedence(name) != Precedence::Other || matches!(name, "::" | ":=" | "=>" | "..") {
                    return Err(self.syntax_error());
                }
                self.advance();
            }
            let operand = self.operand(Precedence::Other, grammar)?;
            return match prefix_operator(name) {
                Some(operator) => Ok(unary(operator, operand)),
                None => Err(SqlError::unsupported(format_args!("the prefix operator {name}"))),
            };
        }
        self.primary()
    }

    /// Parses the operators after `left` that bind tighter than `least`.
    fn climb_precedence(&mut self, mut left: Expr, least: Precedence, grammar: ExprGrammar) -> SqlResult<Expr> {
        loop {
            let (level, next) = self.infix(grammar);
            if level <= least {
                return Ok(left);
            }
            self.add_tree_level()?;
            left = match next {
                Infix::Or => self.and_or_chain(left, "or", Precedence::Or, BinaryOperator::Or)?,
                Infix::And => self.and_or_chain(left, "and", Precedence::And, BinaryOperator::And)?,
                Infix::Is => self.parse_is_test(left)?,
                Infix::Match => self.parse_match_test(left)?,
                Infix::Operator => self.parse_binary_operator(left, level, grammar)?,
                Infix::AtTimeZone => {
                    self.expect("at time zone")?;
                    let time_zone = Box::new(self.operand(Precedence::At, grammar)?);
                    Expr::AtTimeZone { timestamp: Box::new(left), time_zone }
                }
                Infix::Collate => {
                    self.advance();
                    let first = self.label()?;
                    Expr::Collate { expr: Box::new(left), collation: self.qualified_name(first)? }
                }
                Infix::Overlaps => self.overlaps(&left)?,
                Infix::None => return Ok(left),
            };
        }
    }

    /// Classifies the next token as an infix operator, with its precedence.
    fn infix(&self, grammar: ExprGrammar) -> (Precedence, Infix) {
        match self.peek() {
            Token::Operator(operator) if !matches!(operator.as_str(), "::" | ":=" | "=>" | "..") => {
                (precedence(operator), Infix::Operator)
            }
            Token::Word(word) => match word.as_str() {
                "operator" if *self.peek_at(1) == Token::Symbol('(') => (Precedence::Other, Infix::Operator),
                "at" if self.next_is("at time zone") => (Precedence::At, Infix::AtTimeZone),
                "collate" => (Precedence::Collate, Infix::Collate),
                "is" if grammar == ExprGrammar::Any
                    || self.next_is("is distinct")
                    || self.next_is("is not distinct") =>
                {
                    (Precedence::Is, Infix::Is)
                }
                _ if grammar == ExprGrammar::Restricted => (Precedence::None, Infix::None),
                "or" => (Precedence::Or, Infix::Or),
                "and" => (Precedence::And, Infix::And),
                "isnull" | "notnull" => (Precedence::Is, Infix::Is),
                "between" | "in" | "like" | "ilike" => (Precedence::Match, Infix::Match),
                "similar" if self.next_is("similar to") => (Precedence::Match, Infix::Match),
                "not" if matches!(self.word_at(1), Some("between" | "in" | "like" | "ilike" | "similar")) => {
                    (Precedence::Match, Infix::Match)
                }
                "overlaps" => (Precedence::Other, Infix::Overlaps),
                _ => (Precedence::None, Infix::None),
            },
            _ => (Precedence::None, Infix::None),
        }
    }

    /// Parses the further operands of `a AND b AND c`.
    fn and_or_chain(
        &mut self,
        first: Expr,
        word: &str,
        level: Precedence,
        operator: BinaryOperator,
    ) -> SqlResult<Expr> {
        let mut operands = vec![first];
        while self.eat(word) {
            operands.push(self.operand(level, ExprGrammar::Any)?);
        }
        if operands.len() >= CHAIN_BALANCED_MIN {
            return Ok(balance_operands(operands, &operator));
        }
        let mut operands = operands.into_iter();
        let first = operands.next().expect("the list begins with the first operand");
        Ok(operands.fold(first, |left, right| binary_op(left, operator.clone(), right)))
    }

    /// Parses IS NULL, IS TRUE, IS DISTINCT FROM and similar tests.
    fn parse_is_test(&mut self, left: Expr) -> SqlResult<Expr> {
        let left = Box::new(left);
        if self.eat("isnull") {
            return Ok(Expr::IsNull(left));
        }
        if self.eat("notnull") {
            return Ok(Expr::IsNotNull(left));
        }
        self.expect("is")?;
        let not = self.eat("not");
        let Some(what) = self.eat_one_of(&["null", "true", "false", "unknown", "distinct"]) else {
            if matches!(self.next_word(), Some("document" | "normalized" | "nfc" | "nfd" | "nfkc" | "nfkd" | "json")) {
                return Err(self.unsupported("IS DOCUMENT, IS NORMALIZED and IS JSON"));
            }
            return Err(self.syntax_error());
        };
        Ok(match (what, not) {
            ("null", false) => Expr::IsNull(left),
            ("null", true) => Expr::IsNotNull(left),
            ("true", false) => Expr::IsTrue(left),
            ("true", true) => Expr::IsNotTrue(left),
            ("false", false) => Expr::IsFalse(left),
            ("false", true) => Expr::IsNotFalse(left),
            ("unknown", false) => Expr::IsUnknown(left),
            ("unknown", true) => Expr::IsNotUnknown(left),
            (_, not) => {
                self.expect("from")?;
                let right = Box::new(self.operand(Precedence::Is, ExprGrammar::Any)?);
                if not { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) }
            }
        })
    }

    /// Parses `[NOT] BETWEEN`, `IN`, `LIKE`, `ILIKE` or `SIMILAR TO`.
    fn parse_match_test(&mut self, left: Expr) -> SqlResult<Expr> {
        let negated = self.eat("not");
        let expr = Box::new(left);
        let words = ["between", "in", "like", "ilike", "similar"];
        let tested = match self.eat_one_of(&words) {
            Some("between") => return self.between(expr, negated),
            Some("in") => return self.parse_in_test(expr, negated),
            Some("similar") => {
                self.expect("to")?;
                let pattern = Box::new(self.operand(Precedence::Match, ExprGrammar::Any)?);
                let escape_char = self.escape()?;
                Expr::SimilarTo { negated, expr, pattern, escape_char }
            }
            Some(word) => {
                if matches!(self.next_word(), Some("any" | "some" | "all")) && *self.peek_at(1) == Token::Symbol('(') {
                    let operator = match (word, negated) {
                        ("like", false) => "~~",
                        ("like", true) => "!~~",
                        (_, false) => "~~*",
                        (_, true) => "!~~*",
                    };
                    return self.parse_quantified(*expr, operator);
                }
                let pattern = Box::new(self.operand(Precedence::Match, ExprGrammar::Any)?);
                let escape_char = self.escape()?;
                if word == "like" {
                    Expr::Like { negated, any: false, expr, pattern, escape_char }
                } else {
                    Expr::ILike { negated, any: false, expr, pattern, escape_char }
                }
            }
            None => return Err(self.syntax_error()),
        };
        self.refuse_chained_operator(Precedence::Match)?;
        Ok(tested)
    }

    /// Parses an optional `ESCAPE 'c'`.
    fn escape(&mut self) -> SqlResult<Option<sqlparser::ast::ValueWithSpan>> {
        if !self.eat("escape") {
            return Ok(None);
        }
        match self.operand(Precedence::Match, ExprGrammar::Any)? {
            Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => Ok(Some(value)),
            _ => Err(self.unsupported("ESCAPE with anything but a string constant")),
        }
    }

    fn between(&mut self, expr: Box<Expr>, negated: bool) -> SqlResult<Expr> {
        let symmetric = self.eat("symmetric");
        if !symmetric {
            self.eat("asymmetric");
        }
        let low = Box::new(self.restricted_expr()?);
        self.expect("and")?;
        let high = Box::new(self.operand(Precedence::Match, ExprGrammar::Any)?);
        self.refuse_chained_operator(Precedence::Match)?;
        if !symmetric {
            return Ok(Expr::Between { expr, negated, low, high });
        }
        let copies = (self.copy_operand(&expr)?, self.copy_operand(&low)?, self.copy_operand(&high)?);
        let one = Expr::Between { expr: copies.0, negated, low: copies.1, high: copies.2 };
        let other = Expr::Between { expr, negated, low: high, high: low };
        let both = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        Ok(Expr::Nested(Box::new(binary_op(one, both, other))))
    }

    fn parse_in_test(&mut self, expr: Box<Expr>, negated: bool) -> SqlResult<Expr> {
        self.expect_symbol('(')?;
        let content = self.parentheses_content()?;
        self.expect_symbol(')')?;
        Ok(match content {
            primary_expr::ParenthesesContent::Query(subquery) => Expr::InSubquery { expr, subquery, negated },
            primary_expr::ParenthesesContent::Exprs(list) => Expr::InList { expr, list, negated },
        })
    }

    /// Parses `operator right` or `operator ANY (…)`, after `left`.
    fn parse_binary_operator(&mut self, left: Expr, level: Precedence, grammar: ExprGrammar) -> SqlResult<Expr> {
        let name = match self.named_operator()? {
            Some(name) => name,
            None => match &self.advance().token {
                Token::Operator(operator) => operator.clone(),
                _ => return Err(self.syntax_error()),
            },
        };
        let quantified =
            matches!(self.next_word(), Some("any" | "some" | "all")) && *self.peek_at(1) == Token::Symbol('(');
        if quantified {
            return self.parse_quantified(left, &name);
        }
        let right = self.operand(level, grammar)?;
        if level == Precedence::Comparison {
            self.refuse_chained_operator(level)?;
        }
        Ok(binary_op(left, binary_operator(&name), right))
    }

    fn parse_quantified(&mut self, left: Expr, name: &str) -> SqlResult<Expr> {
        let word = self.eat_one_of(&["any", "some", "all"]);
        self.expect_symbol('(')?;
        let right = Box::new(match self.parentheses_content()? {
            primary_expr::ParenthesesContent::Query(query) => Expr::Subquery(query),
            primary_expr::ParenthesesContent::Exprs(mut exprs) => match (exprs.pop(), exprs.is_empty()) {
                (Some(array), true) => array,
                _ => return Err(self.syntax_error()),
            },
        });
        self.expect_symbol(')')?;
        let left = Box::new(left);
        let compare_op = binary_operator(name);
        Ok(match word {
            Some("all") => Expr::AllOp { left, compare_op, right },
            word => Expr::AnyOp { left, compare_op, right, is_some: word == Some("some") },
        })
    }

    /// Refuses a second operator of the same precedence, as in `a = b = c`.
    fn refuse_chained_operator(&self, level: Precedence) -> SqlResult<()> {
        if self.infix(ExprGrammar::Any).0 == level { Err(self.syntax_error()) } else { Ok(()) }
    }

    /// Refuses `(a, b) OVERLAPS (c, d)`.
    fn overlaps(&self, left: &Expr) -> SqlResult<Expr> {
        let Expr::Tuple(_) = left else { return Err(self.syntax_error()) };
        Err(self.unsupported("OVERLAPS"))
    }

    /// Parses an optional `OPERATOR(schema.name)`.
    fn named_operator(&mut self) -> SqlResult<Option<String>> {
        if !self.next_is("operator") || *self.peek_at(1) != Token::Symbol('(') {
            return Ok(None);
        }
        self.next_index += 2;
        let mut schema = None;
        while !matches!(self.peek(), Token::Operator(_)) {
            schema = Some(self.name()?.value);
            self.expect_symbol('.')?;
        }
        let Token::Operator(name) = &self.advance().token else { return Err(self.syntax_error()) };
        self.expect_symbol(')')?;
        if let Some(schema) = schema.filter(|schema| schema != "pg_catalog") {
            let message = format!("operator does not exist: {schema}.{name}");
            return Err(SqlError::new(types::Condition::UndefinedFunction, message));
        }
        Ok(Some(name.clone()))
    }
}

/// Kind of infix operator or test that the next token begins.
enum Infix {
    Or,
    And,
    Is,
    Match,
    Operator,
    AtTimeZone,
    Collate,
    Overlaps,
    None,
}

fn unary(op: UnaryOperator, operand: Expr) -> Expr {
    Expr::UnaryOp { op, expr: Box::new(operand) }
}

fn binary_op(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// Joins the operands, at least one, by the operator into a tree of minimum height.
pub fn balance_operands(operands: Vec<Expr>, operator: &BinaryOperator) -> Expr {
    balance_slice(&mut operands.into_iter().map(Some).collect::<Vec<_>>(), operator)
}

fn balance_slice(operands: &mut [Option<Expr>], operator: &BinaryOperator) -> Expr {
    if let [operand] = operands {
        return operand.take().expect("each operand is in exactly one subtree");
    }
    let (left, right) = operands.split_at_mut(operands.len() / 2);
    binary_op(balance_slice(left, operator), operator.clone(), balance_slice(right, operator))
}
