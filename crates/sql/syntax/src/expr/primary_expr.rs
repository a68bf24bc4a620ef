//! Operands of expressions: constants, columns, parentheses, CASE, CAST, ARRAY.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AccessExpr, Array, CaseWhen, CastKind, DataType, DateTimeField, Expr, Function, FunctionArguments, Ident, Interval,
    IntervalFields, ObjectName, Query, Subscript, TypedString, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Span;
use types::{Condition, SqlError, SqlResult};

use super::Cursor;
use super::call;
use crate::keyword::{KeywordCategory, category};
use crate::lex::Token;

/// Content of a pair of parentheses.
pub(super) enum ParenthesesContent {
    Query(Box<Query>),
    Exprs(Vec<Expr>),
}

impl Cursor<'_> {
    /// Parses an operand with the field accesses, subscripts and casts after it.
    pub(crate) fn primary(&mut self) -> SqlResult<Expr> {
        let primary = self.bare_primary()?;
        self.postfix(primary)
    }

    /// Parses `.name`, `[subscript]` and `::type` after an operand.
    pub(super) fn postfix(&mut self, mut expr: Expr) -> SqlResult<Expr> {
        // Calls and constants need parentheses before a field access or subscript.
        let has_parts = match &expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Nested(_) | Expr::Subquery(_) => true,
            Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
            _ => false,
        };
        if has_parts && (self.is_symbol('[') || self.is_symbol('.')) {
            expr = self.field_or_subscript(expr)?;
        }
        while self.eat_operator("::") {
            self.add_tree_level()?;
            let data_type = self.data_type()?;
            let kind = CastKind::DoubleColon;
            expr = Expr::Cast { kind, expr: Box::new(expr), data_type, array: false, format: None };
        }
        Ok(expr)
    }

    /// Parses field accesses and subscripts.
    fn field_or_subscript(&mut self, expr: Expr) -> SqlResult<Expr> {
        let (root, mut chain) = match expr {
            // `sqlparser` represents a qualified column as a root and a field access.
            Expr::CompoundIdentifier(names) => {
                let mut names = names.into_iter().map(Expr::Identifier);
                let root = names.next().expect("a compound name has at least one part");
                (root, names.map(AccessExpr::Dot).collect())
            }
            root => (root, Vec::new()),
        };
        loop {
            if self.eat_symbol('[') {
                chain.push(AccessExpr::Subscript(self.subscript()?));
            } else if self.eat_symbol('.') {
                if self.operator() == Some("*") {
                    return Err(self.unsupported("row expansion via \"*\" here"));
                }
                chain.push(AccessExpr::Dot(Expr::Identifier(self.label()?)));
            } else {
                return Ok(Expr::CompoundFieldAccess { root: Box::new(root), access_chain: chain });
            }
        }
    }

    /// Parses a subscript after `[`, including `]`.
    fn subscript(&mut self) -> SqlResult<Subscript> {
        let lower_bound = if self.is_symbol(':') { None } else { Some(self.expr()?) };
        if let Some(index) = lower_bound.clone().filter(|_| self.is_symbol(']')) {
            self.expect_symbol(']')?;
            return Ok(Subscript::Index { index });
        }
        self.expect_symbol(':')?;
        let upper_bound = if self.is_symbol(']') { None } else { Some(self.expr()?) };
        self.expect_symbol(']')?;
        // Default bounds: arrays begin at 1, and subscripts are 32 bits.
        let bound = |written: Option<Expr>, default: i32| {
            Some(written.unwrap_or_else(|| Expr::Value(Value::Number(default.to_string(), false).into())))
        };
        let (lower_bound, upper_bound) = (bound(lower_bound, 1), bound(upper_bound, i32::MAX));
        Ok(Subscript::Slice { lower_bound, upper_bound, stride: None })
    }

    fn bare_primary(&mut self) -> SqlResult<Expr> {
        let lexeme = self.lexeme();
        let literal = match &lexeme.token {
            Token::Integer(digits) => Value::Number(digits.clone(), false),
            Token::Decimal(digits) => Value::Number(without_exponent(digits), false),
            Token::Text(text) => Value::SingleQuotedString(text.clone()),
            Token::Bits(bits) if bits.starts_with('x') => Value::HexStringLiteral(bits[1..].to_owned()),
            Token::Bits(bits) => Value::SingleQuotedByteStringLiteral(bits[1..].to_owned()),
            Token::Parameter(parameter) => Value::Placeholder(parameter.clone()),
            Token::Symbol('(') => return self.in_parentheses(),
            Token::Word(word) => return self.word_primary(word),
            Token::Quoted(_) => return self.named_primary(),
            _ => return Err(self.syntax_error()),
        };
        self.advance();
        Ok(literal_expr(literal, lexeme.span))
    }

    /// Parses `(…)`: a subquery, a row, or an expression.
    fn in_parentheses(&mut self) -> SqlResult<Expr> {
        self.expect_symbol('(')?;
        let content = self.parentheses_content()?;
        self.expect_symbol(')')?;
        Ok(match content {
            ParenthesesContent::Query(query) => Expr::Subquery(query),
            ParenthesesContent::Exprs(mut exprs) => match (exprs.pop(), exprs.is_empty()) {
                (Some(one @ (Expr::Nested(_) | Expr::Subquery(_))), true) => one,
                (Some(one), true) => Expr::Nested(Box::new(one)),
                (last, _) => {
                    exprs.extend(last);
                    Expr::Tuple(exprs)
                }
            },
        })
    }

    /// Parses the content of parentheses; further parentheses may have to be parsed before it is clear whether it is a
    /// query.
    pub(super) fn parentheses_content(&mut self) -> SqlResult<ParenthesesContent> {
        if self.begins_query() {
            return self.query().map(ParenthesesContent::Query);
        }
        if self.is_symbol('(') && self.begins_query_in_parentheses() {
            self.expect_symbol('(')?;
            let inner = self.parse_nested(Self::parentheses_content)?;
            self.expect_symbol(')')?;
            let first = match inner {
                ParenthesesContent::Query(query) if self.is_symbol(')') || self.continues_query() => {
                    return self.continue_query(query).map(ParenthesesContent::Query);
                }
                ParenthesesContent::Query(query) => Expr::Subquery(query),
                ParenthesesContent::Exprs(mut exprs) if exprs.len() == 1 => Expr::Nested(Box::new(exprs.remove(0))),
                ParenthesesContent::Exprs(exprs) => Expr::Tuple(exprs),
            };
            let first = self.continue_expr(first)?;
            return self.more_exprs(first);
        }
        let first = self.expr()?;
        self.more_exprs(first)
    }

    fn more_exprs(&mut self, first: Expr) -> SqlResult<ParenthesesContent> {
        let mut exprs = vec![first];
        while self.eat_symbol(',') {
            exprs.push(self.expr()?);
        }
        Ok(ParenthesesContent::Exprs(exprs))
    }

    /// Parses an expression that begins with a word.
    fn word_primary(&mut self, word: &str) -> SqlResult<Expr> {
        let span = self.lexeme().span;
        let opens = *self.peek_at(1) == Token::Symbol('(');
        match word {
            "true" | "false" => {
                self.advance();
                return Ok(literal_expr(Value::Boolean(word == "true"), span));
            }
            "null" => {
                self.advance();
                return Ok(literal_expr(Value::Null, span));
            }
            "default" => {
                let message = "DEFAULT is not allowed in this context";
                return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
            }
            "case" => return self.case(),
            "cast" if opens => return self.cast(),
            "array" if *self.peek_at(1) == Token::Symbol('[') => {
                self.advance();
                return self.array();
            }
            "array" if opens => return self.array_of_query(span),
            "row" if opens => return self.row(),
            "exists" if opens => {
                self.next_index += 2;
                let subquery = self.query()?;
                self.expect_symbol(')')?;
                return Ok(Expr::Exists { subquery, negated: false });
            }
            "interval" => {
                if let Some(interval) = self.interval()? {
                    return Ok(interval);
                }
            }
            _ => {}
        }
        if let Some(special) = self.special_call(word, opens)? {
            return Ok(special);
        }
        if let Some(typed) = self.typed_constant(word)? {
            return Ok(typed);
        }
        self.named_primary()
    }

    /// Parses a column, a function call, or a constant of a named type.
    fn named_primary(&mut self) -> SqlResult<Expr> {
        let start = self.next_index;
        let mut names = vec![self.label()?];
        while self.is_symbol('.') && matches!(self.peek_at(1), Token::Word(_) | Token::Quoted(_)) {
            self.advance();
            names.push(self.label()?);
        }
        let first_category = match names[0].quote_style {
            None => category(&names[0].value),
            Some(_) => None,
        };
        let forbidden = match self.peek() {
            Token::Symbol('(') | Token::Text(_) if names.len() == 1 => KeywordCategory::ColumnName,
            _ => KeywordCategory::FunctionOrType,
        };
        if first_category.is_some_and(|category| category == KeywordCategory::Reserved || category == forbidden) {
            self.next_index = start;
            // PostgreSQL reports the token after a keyword that may be a name elsewhere.
            if first_category != Some(KeywordCategory::Reserved) {
                self.next_index += 1;
            }
            return Err(self.syntax_error());
        }
        if self.is_symbol('(') {
            return self.call(ObjectName::from(names));
        }
        if let Token::Text(text) = self.peek() {
            let span = self.advance().span;
            self.next_index = start;
            let data_type = self.simple_type()?;
            self.advance();
            return Ok(typed_constant_expr(data_type, text.clone(), span));
        }
        Ok(if names.len() == 1 { Expr::Identifier(names.remove(0)) } else { Expr::CompoundIdentifier(names) })
    }

    /// Parses `type 'text'` for a type whose name is a keyword; `None`, with nothing consumed, if no string follows the
    /// type.
    fn typed_constant(&mut self, word: &str) -> SqlResult<Option<Expr>> {
        let is_type = category(word) == Some(KeywordCategory::ColumnName) || self.next_is("double precision");
        if !is_type {
            return Ok(None);
        }
        let start = self.next_index;
        if let Ok(data_type) = self.simple_type()
            && let Token::Text(text) = self.peek()
        {
            let span = self.advance().span;
            return Ok(Some(typed_constant_expr(data_type, text.clone(), span)));
        }
        self.next_index = start;
        Ok(None)
    }

    /// Parses `INTERVAL '…' [fields]` or `INTERVAL(p) '…'`.
    fn interval(&mut self) -> SqlResult<Option<Expr>> {
        let start = self.next_index;
        self.advance();
        let mut precision = None;
        if self.eat_symbol('(') {
            precision = self.integer().ok().filter(|_| self.eat_symbol(')')).and_then(|p| u64::try_from(p).ok());
        }
        let Token::Text(text) = self.peek() else {
            self.next_index = start;
            return Ok(None);
        };
        let span = self.advance().span;
        let fields = self.interval_fields();
        let (leading_field, last_field) = fields.map_or((None, None), date_time_fields);
        if (leading_field.is_some() || last_field.is_some()) && self.eat_symbol('(') {
            precision = u64::try_from(self.integer()?).ok();
            self.expect_symbol(')')?;
        }
        let literal = Expr::Interval(Interval {
            value: Box::new(literal_expr(Value::SingleQuotedString(text.clone()), span)),
            leading_field,
            leading_precision: None,
            last_field,
            fractional_seconds_precision: None,
        });
        // A precision is applied by a cast.
        Ok(Some(match precision {
            None => literal,
            precision => Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(literal),
                data_type: DataType::Interval { fields: None, precision },
                array: false,
                format: None,
            },
        }))
    }

    fn case(&mut self) -> SqlResult<Expr> {
        self.expect("case")?;
        let operand = if self.next_is("when") { None } else { Some(Box::new(self.expr()?)) };
        let mut conditions = Vec::new();
        while self.eat("when") {
            let condition = self.expr()?;
            self.expect("then")?;
            conditions.push(CaseWhen { condition, result: self.expr()? });
        }
        if conditions.is_empty() {
            return Err(self.syntax_error());
        }
        let else_result = if self.eat("else") { Some(Box::new(self.expr()?)) } else { None };
        self.expect("end")?;
        Ok(Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand,
            conditions,
            else_result,
        })
    }

    fn cast(&mut self) -> SqlResult<Expr> {
        self.next_index += 2;
        let expr = Box::new(self.expr()?);
        self.expect("as")?;
        let data_type = self.data_type()?;
        self.expect_symbol(')')?;
        Ok(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None })
    }

    /// Parses `[a, b]` or `[[a], [b]]`.
    fn array(&mut self) -> SqlResult<Expr> {
        self.expect_symbol('[')?;
        let mut elem = Vec::new();
        if !self.is_symbol(']') {
            elem = self.parse_nested(|cursor| {
                cursor.list(|cursor| if cursor.is_symbol('[') { cursor.array() } else { cursor.expr() })
            })?;
        }
        self.expect_symbol(']')?;
        Ok(Expr::Array(Array { elem, named: true }))
    }

    /// Parses `ARRAY(query)`, which `sqlparser` represents as a call with a query for an argument.
    fn array_of_query(&mut self, span: Span) -> SqlResult<Expr> {
        self.next_index += 2;
        let query = self.query()?;
        self.expect_symbol(')')?;
        Ok(Expr::Function(Function {
            args: FunctionArguments::Subquery(query),
            ..call::new_function(ObjectName::from(vec![Ident { value: "array".to_owned(), quote_style: None, span }]))
        }))
    }

    /// Parses `ROW(a, b)`.
    fn row(&mut self) -> SqlResult<Expr> {
        self.next_index += 2;
        let fields = if self.is_symbol(')') { Vec::new() } else { self.list(Self::expr)? };
        self.expect_symbol(')')?;
        Ok(Expr::Tuple(fields))
    }
}

/// Writes `1.5e3` as `1500.`, where the dot marks a decimal. A number that no decimal holds keeps its exponent and
/// becomes a floating-point number.
fn without_exponent(number: &str) -> String {
    const ZEROS_MAX: i32 = 400;
    const DIGITS_MAX: usize = 38;
    let split = number.find(['e', 'E']).and_then(|at| Some((&number[..at], number[at + 1..].parse::<i32>().ok()?)));
    let Some((mantissa, exponent)) = split.filter(|(_, exponent)| (-ZEROS_MAX..=ZEROS_MAX).contains(exponent)) else {
        return number.to_owned();
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shift = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    let plain = if exponent >= 0 {
        let taken = shift.min(fraction.len());
        format!("{whole}{}{}.{}", &fraction[..taken], "0".repeat(shift - taken), &fraction[taken..])
    } else {
        let taken = shift.min(whole.len());
        let (integer_digits, moved) = whole.split_at(whole.len() - taken);
        format!(
            "{}.{}{moved}{fraction}",
            if integer_digits.is_empty() { "0" } else { integer_digits },
            "0".repeat(shift - taken)
        )
    };
    let digits = plain.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if DIGITS_MAX < digits.max(decimals) { number.to_owned() } else { plain }
}

pub(super) fn literal_expr(value: Value, span: Span) -> Expr {
    Expr::Value(ValueWithSpan { value, span })
}

fn typed_constant_expr(data_type: DataType, text: String, span: Span) -> Expr {
    let value = ValueWithSpan { value: Value::SingleQuotedString(text), span };
    Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
}

fn date_time_fields(fields: IntervalFields) -> (Option<DateTimeField>, Option<DateTimeField>) {
    use DateTimeField as D;
    let (first, last) = match fields {
        IntervalFields::Year => (D::Year, None),
        IntervalFields::Month => (D::Month, None),
        IntervalFields::Day => (D::Day, None),
        IntervalFields::Hour => (D::Hour, None),
        IntervalFields::Minute => (D::Minute, None),
        IntervalFields::Second => (D::Second, None),
        IntervalFields::YearToMonth => (D::Year, Some(D::Month)),
        IntervalFields::DayToHour => (D::Day, Some(D::Hour)),
        IntervalFields::DayToMinute => (D::Day, Some(D::Minute)),
        IntervalFields::DayToSecond => (D::Day, Some(D::Second)),
        IntervalFields::HourToMinute => (D::Hour, Some(D::Minute)),
        IntervalFields::HourToSecond => (D::Hour, Some(D::Second)),
        IntervalFields::MinuteToSecond => (D::Minute, Some(D::Second)),
    };
    (Some(first), last)
}
