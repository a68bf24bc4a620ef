//! Expressions, by operator precedence as PostgreSQL's grammar has it.
//!
//! `primary.rs` has what stands alone, `call.rs` functions and what looks like one, `operator.rs` the operators' names.

mod call;
mod operator;
mod primary;
mod window;

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};
use types::{SqlError, SqlResult};

use self::operator::{Level, binary, level, prefix};
use super::cursor::Cursor;
use super::lex::Token;

/// So many operands of AND or OR become a tree that is as wide as it is deep; fewer stay in PostgreSQL's shape.
const BALANCED_FROM: usize = 32;

/// What kind of expression the grammar has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// PostgreSQL's `a_expr`.
    Any,
    /// `b_expr`: without AND, OR, NOT, IS NULL, LIKE, IN and BETWEEN, which mean something else where it stands.
    Restricted,
}

impl Cursor<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self) -> SqlResult<Expr> {
        self.nested(|cursor| cursor.climb_from_prefix(Level::None, Room::Any))
    }

    /// An expression where AND, IN and NOT NULL belong to what is around it: a DEFAULT, a bound of BETWEEN.
    pub(super) fn restricted_expr(&mut self) -> SqlResult<Expr> {
        self.nested(|cursor| cursor.climb_from_prefix(Level::None, Room::Restricted))
    }

    /// An operand of operators that bind tighter than `level`.
    fn operand(&mut self, level: Level, room: Room) -> SqlResult<Expr> {
        self.nested(|cursor| cursor.climb_from_prefix(level, room))
    }

    fn climb_from_prefix(&mut self, least: Level, room: Room) -> SqlResult<Expr> {
        let first = self.prefix(room)?;
        self.climb(first, least, room)
    }

    /// The rest of an expression that begins with what was parsed already.
    pub(super) fn rest_of_expr(&mut self, first: Expr) -> SqlResult<Expr> {
        let first = self.postfix(first)?;
        self.climb(first, Level::None, Room::Any)
    }

    /// An operand with its prefix operators.
    fn prefix(&mut self, room: Room) -> SqlResult<Expr> {
        if self.is("not") && room == Room::Any {
            self.advance();
            if self.is("exists") {
                return match self.operand(Level::Not, room)? {
                    Expr::Exists { subquery, negated } => Ok(Expr::Exists { subquery, negated: !negated }),
                    other => Ok(unary(UnaryOperator::Not, other)),
                };
            }
            let operand = self.operand(Level::Not, room)?;
            return Ok(unary(UnaryOperator::Not, operand));
        }
        if let Some(sign) = self.operator().filter(|operator| matches!(*operator, "+" | "-")) {
            self.advance();
            let operand = self.operand(Level::Sign, room)?;
            let operator = if sign == "-" { UnaryOperator::Minus } else { UnaryOperator::Plus };
            return Ok(unary(operator, operand));
        }
        let named = self.named_operator()?;
        if let Some(name) = named.as_deref().or_else(|| self.operator()) {
            if named.is_none() {
                if level(name) != Level::Other || matches!(name, "::" | ":=" | "=>" | "..") {
                    return Err(self.syntax_error());
                }
                self.advance();
            }
            let operand = self.operand(Level::Other, room)?;
            return match prefix(name) {
                Some(operator) => Ok(unary(operator, operand)),
                None => Err(SqlError::unsupported(format_args!("the prefix operator {name}"))),
            };
        }
        self.primary()
    }

    /// Operators after `left` that bind tighter than `least`.
    fn climb(&mut self, mut left: Expr, least: Level, room: Room) -> SqlResult<Expr> {
        loop {
            let (level, next) = self.infix(room);
            if level <= least {
                return Ok(left);
            }
            self.grow()?;
            left = match next {
                Infix::Or => self.chain(left, "or", Level::Or, BinaryOperator::Or)?,
                Infix::And => self.chain(left, "and", Level::And, BinaryOperator::And)?,
                Infix::Is => self.is_test(left)?,
                Infix::Match => self.match_test(left)?,
                Infix::Operator => self.binary(left, level, room)?,
                Infix::AtTimeZone => {
                    self.expect("at time zone")?;
                    let time_zone = Box::new(self.operand(Level::At, room)?);
                    Expr::AtTimeZone { timestamp: Box::new(left), time_zone }
                }
                Infix::Collate => {
                    self.advance();
                    let first = self.label()?;
                    Expr::Collate { expr: Box::new(left), collation: self.qualified(first)? }
                }
                Infix::Overlaps => self.overlaps(&left)?,
                Infix::None => return Ok(left),
            };
        }
    }

    /// What comes next, as an operator between two operands.
    fn infix(&self, room: Room) -> (Level, Infix) {
        match self.peek() {
            Token::Operator(operator) if !matches!(operator.as_str(), "::" | ":=" | "=>" | "..") => {
                (level(operator), Infix::Operator)
            }
            Token::Word(word) => match word.as_str() {
                "operator" if *self.peek_at(1) == Token::Symbol('(') => (Level::Other, Infix::Operator),
                "at" if self.is("at time zone") => (Level::At, Infix::AtTimeZone),
                "collate" => (Level::Collate, Infix::Collate),
                "is" if room == Room::Any || self.is("is distinct") || self.is("is not distinct") => {
                    (Level::Is, Infix::Is)
                }
                _ if room == Room::Restricted => (Level::None, Infix::None),
                "or" => (Level::Or, Infix::Or),
                "and" => (Level::And, Infix::And),
                "isnull" | "notnull" => (Level::Is, Infix::Is),
                "between" | "in" | "like" | "ilike" => (Level::Match, Infix::Match),
                "similar" if self.is("similar to") => (Level::Match, Infix::Match),
                "not" if matches!(self.word_at(1), Some("between" | "in" | "like" | "ilike" | "similar")) => {
                    (Level::Match, Infix::Match)
                }
                "overlaps" => (Level::Other, Infix::Overlaps),
                _ => (Level::None, Infix::None),
            },
            _ => (Level::None, Infix::None),
        }
    }

    /// `a AND b AND c`.
    fn chain(&mut self, first: Expr, word: &str, level: Level, operator: BinaryOperator) -> SqlResult<Expr> {
        let mut operands = vec![first];
        while self.eat(word) {
            operands.push(self.operand(level, Room::Any)?);
        }
        if operands.len() >= BALANCED_FROM {
            return Ok(balanced(operands, &operator));
        }
        let mut operands = operands.into_iter();
        let first = operands.next().expect("the list begins with the first operand");
        Ok(operands.fold(first, |left, right| binary_op(left, operator.clone(), right)))
    }

    /// `IS NULL` and its like.
    fn is_test(&mut self, left: Expr) -> SqlResult<Expr> {
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
            if matches!(self.word(), Some("document" | "normalized" | "nfc" | "nfd" | "nfkc" | "nfkd" | "json")) {
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
                let right = Box::new(self.operand(Level::Is, Room::Any)?);
                if not { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) }
            }
        })
    }

    /// `[NOT] BETWEEN`, `IN`, `LIKE` and their like.
    fn match_test(&mut self, left: Expr) -> SqlResult<Expr> {
        let negated = self.eat("not");
        let expr = Box::new(left);
        let words = ["between", "in", "like", "ilike", "similar"];
        let tested = match self.eat_one_of(&words) {
            Some("between") => return self.between(expr, negated),
            Some("in") => return self.in_test(expr, negated),
            Some("similar") => {
                self.expect("to")?;
                let pattern = Box::new(self.operand(Level::Match, Room::Any)?);
                let escape_char = self.escape()?;
                Expr::SimilarTo { negated, expr, pattern, escape_char }
            }
            Some(word) => {
                if matches!(self.word(), Some("any" | "some" | "all")) && *self.peek_at(1) == Token::Symbol('(') {
                    let operator = match (word, negated) {
                        ("like", false) => "~~",
                        ("like", true) => "!~~",
                        (_, false) => "~~*",
                        (_, true) => "!~~*",
                    };
                    return self.quantified(*expr, operator);
                }
                let pattern = Box::new(self.operand(Level::Match, Room::Any)?);
                let escape_char = self.escape()?;
                if word == "like" {
                    Expr::Like { negated, any: false, expr, pattern, escape_char }
                } else {
                    Expr::ILike { negated, any: false, expr, pattern, escape_char }
                }
            }
            None => return Err(self.syntax_error()),
        };
        self.refuse_chained(Level::Match)?;
        Ok(tested)
    }

    /// `ESCAPE 'c'`.
    fn escape(&mut self) -> SqlResult<Option<sqlparser::ast::ValueWithSpan>> {
        if !self.eat("escape") {
            return Ok(None);
        }
        match self.operand(Level::Match, Room::Any)? {
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
        let high = Box::new(self.operand(Level::Match, Room::Any)?);
        self.refuse_chained(Level::Match)?;
        if !symmetric {
            return Ok(Expr::Between { expr, negated, low, high });
        }
        let one = Expr::Between { expr: expr.clone(), negated, low: low.clone(), high: high.clone() };
        let other = Expr::Between { expr, negated, low: high, high: low };
        let both = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        Ok(Expr::Nested(Box::new(binary_op(one, both, other))))
    }

    fn in_test(&mut self, expr: Box<Expr>, negated: bool) -> SqlResult<Expr> {
        self.expect_symbol('(')?;
        let content = self.parenthesis()?;
        self.expect_symbol(')')?;
        Ok(match content {
            primary::Content::Query(subquery) => Expr::InSubquery { expr, subquery, negated },
            primary::Content::Exprs(list) => Expr::InList { expr, list, negated },
        })
    }

    /// `left operator right`, `left operator ANY (…)`.
    fn binary(&mut self, left: Expr, level: Level, room: Room) -> SqlResult<Expr> {
        let name = match self.named_operator()? {
            Some(name) => name,
            None => match &self.advance().token {
                Token::Operator(operator) => operator.clone(),
                _ => return Err(self.syntax_error()),
            },
        };
        let quantified = matches!(self.word(), Some("any" | "some" | "all")) && *self.peek_at(1) == Token::Symbol('(');
        if quantified {
            return self.quantified(left, &name);
        }
        let right = self.operand(level, room)?;
        if level == Level::Comparison {
            self.refuse_chained(level)?;
        }
        Ok(binary_op(left, binary(&name), right))
    }

    fn quantified(&mut self, left: Expr, name: &str) -> SqlResult<Expr> {
        let word = self.eat_one_of(&["any", "some", "all"]);
        self.expect_symbol('(')?;
        let right = Box::new(match self.parenthesis()? {
            primary::Content::Query(query) => Expr::Subquery(query),
            primary::Content::Exprs(mut exprs) => match (exprs.pop(), exprs.is_empty()) {
                (Some(array), true) => array,
                _ => return Err(self.syntax_error()),
            },
        });
        self.expect_symbol(')')?;
        let left = Box::new(left);
        let compare_op = binary(name);
        Ok(match word {
            Some("all") => Expr::AllOp { left, compare_op, right },
            word => Expr::AnyOp { left, compare_op, right, is_some: word == Some("some") },
        })
    }

    /// `a = b = c` is no expression.
    fn refuse_chained(&self, level: Level) -> SqlResult<()> {
        if self.infix(Room::Any).0 == level { Err(self.syntax_error()) } else { Ok(()) }
    }

    /// `(a, b) OVERLAPS (c, d)`.
    fn overlaps(&self, left: &Expr) -> SqlResult<Expr> {
        let Expr::Tuple(_) = left else { return Err(self.syntax_error()) };
        Err(self.unsupported("OVERLAPS"))
    }

    /// `OPERATOR(schema.name)`.
    fn named_operator(&mut self) -> SqlResult<Option<String>> {
        if !self.is("operator") || *self.peek_at(1) != Token::Symbol('(') {
            return Ok(None);
        }
        self.at += 2;
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

/// How the next token goes on with an expression.
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

/// The operands, of which there is one at least, under as few levels of operators as possible.
pub fn balanced(operands: Vec<Expr>, operator: &BinaryOperator) -> Expr {
    under_few_levels(&mut operands.into_iter().map(Some).collect::<Vec<_>>(), operator)
}

fn under_few_levels(operands: &mut [Option<Expr>], operator: &BinaryOperator) -> Expr {
    if let [operand] = operands {
        return operand.take().expect("each operand is taken once");
    }
    let (left, right) = operands.split_at_mut(operands.len() / 2);
    binary_op(under_few_levels(left, operator), operator.clone(), under_few_levels(right, operator))
}
