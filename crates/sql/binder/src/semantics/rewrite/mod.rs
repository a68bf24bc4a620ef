//! Rewrites syntax that DataFusion interprets differently from PostgreSQL, and rejects unsupported syntax.
//!
//! - `named_window.rs`: named windows; `window_frame.rs`: window frames,
//! - `values_literal_types.rs`: types of VALUES.

mod named_window;
mod values_literal_types;
mod window_frame;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, NamedWindowExpr, ObjectName, ObjectNamePart, Query, Select, UnaryOperator, Value,
    VisitorMut, WindowType,
};
use functions::NEGATE;
use syntax::Walk;
use types::text::{IntervalUnits, format_interval, parse_interval_in};
use types::{Condition, SqlError, SqlResult};

use self::named_window::NamedWindows;

#[cfg(test)]
mod tests;

/// Rewrites a query, including all subqueries, before name resolution. Output names must be determined before,
/// because calls change.
///
/// # Errors
/// SQLSTATE 0A000 for unsupported syntax, and the errors of syntax that PostgreSQL rejects and DataFusion would
/// accept.
pub(crate) fn rewrite_query(query: &mut Query) -> SqlResult<()> {
    finish(query.walk_mut(&mut SyntaxRewriter::default()))
}

/// Rewrites a standalone expression: a default, a CHECK, an argument of EXECUTE. See [`rewrite_query`].
///
/// # Errors
/// Those of [`rewrite_query`].
pub(crate) fn rewrite_expr(expr: &mut Expr) -> SqlResult<()> {
    finish(expr.walk_mut(&mut SyntaxRewriter::default()))
}

fn finish(flow: ControlFlow<SqlError>) -> SqlResult<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Visitor that rewrites the tree in one pass, inner expressions first.
#[derive(Default)]
struct SyntaxRewriter {
    windows: Vec<NamedWindows>,
}

impl VisitorMut for SyntaxRewriter {
    type Break = SqlError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        values_literal_types::type_literals(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        match NamedWindows::resolve(select) {
            Ok(windows) => self.windows.push(windows),
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        self.windows.pop();
        let specs = select.named_window.iter_mut().filter_map(|window| match &mut window.1 {
            NamedWindowExpr::WindowSpec(spec) => spec.window_frame.as_mut(),
            NamedWindowExpr::NamedWindow(_) => None,
        });
        for frame in specs {
            if let Err(error) = window_frame::normalize_frame(frame) {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.rewrite(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl SyntaxRewriter {
    fn rewrite(&self, expr: &mut Expr) -> SqlResult<()> {
        match expr {
            Expr::UnaryOp { op, expr: operand } => {
                let operand = std::mem::replace(operand.as_mut(), null_literal());
                *expr = rewrite_unary(*op, operand);
            }
            Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => {
                return Err(SqlError::unsupported("LIKE ANY"));
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                if let Some(escape) = escape_char.take().and_then(|value| value.value.into_string())
                    && escape != "\\"
                {
                    let inner = std::mem::replace(pattern.as_mut(), null_literal());
                    **pattern = function_call("like_escape", vec![inner, text(escape)]);
                }
            }
            Expr::SimilarTo { negated, expr: value, pattern, escape_char } => {
                let mut args = vec![
                    std::mem::replace(value.as_mut(), null_literal()),
                    std::mem::replace(pattern.as_mut(), null_literal()),
                ];
                args.extend(escape_char.take().and_then(|value| value.value.into_string()).map(text));
                let matched = function_call("similar_to", args);
                *expr =
                    if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matched) } } else { matched };
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let args = vec![
                    std::mem::replace(time_zone.as_mut(), null_literal()),
                    std::mem::replace(timestamp.as_mut(), null_literal()),
                ];
                *expr = function_call("timezone", args);
            }
            Expr::Interval(interval) => *expr = interval_literal(interval)?,
            // An empty array gets its type from the cast.
            Expr::Cast { expr: value, .. } if is_empty_array(value) => {
                **value = text("{}".to_owned());
            }
            // As a call, its elements are planned with the types of parameters.
            Expr::Array(array) => *expr = function_call(ARRAY, std::mem::take(&mut array.elem)),
            Expr::Cast { expr: value, data_type, .. } if is_float(data_type) => {
                if let Some(number) = exponent_number(value) {
                    **value = text(number);
                }
            }
            Expr::AnyOp { left, compare_op, right, .. } if !matches!(**right, Expr::Subquery(_)) => {
                if *compare_op != BinaryOperator::Eq {
                    return Err(SqlError::unsupported(format_args!("{compare_op} ANY (array)")));
                }
                let args = vec![
                    std::mem::replace(right.as_mut(), null_literal()),
                    std::mem::replace(left.as_mut(), null_literal()),
                ];
                *expr = function_call("any_equal", args);
            }
            Expr::AllOp { left, compare_op, right } if !matches!(**right, Expr::Subquery(_)) => {
                if *compare_op != BinaryOperator::NotEq {
                    return Err(SqlError::unsupported(format_args!("{compare_op} ALL (array)")));
                }
                let args = vec![
                    std::mem::replace(right.as_mut(), null_literal()),
                    std::mem::replace(left.as_mut(), null_literal()),
                ];
                *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(function_call("any_equal", args)) };
            }
            Expr::Value(value)
                if matches!(value.value, Value::HexStringLiteral(_) | Value::SingleQuotedByteStringLiteral(_)) =>
            {
                return Err(SqlError::unsupported("a bit string"));
            }
            Expr::Collate { .. } => return Err(SqlError::unsupported("COLLATE")),
            Expr::Function(function) => self.function(function)?,
            _ => {}
        }
        Ok(())
    }

    fn function(&self, function: &mut Function) -> SqlResult<()> {
        if let [ObjectNamePart::Identifier(schema), _] = function.name.0.as_slice()
            && schema.value.eq_ignore_ascii_case("pg_catalog")
        {
            function.name.0.remove(0);
        }
        if let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() {
            let name = name.value.to_ascii_lowercase();
            if matches!(
                name.as_str(),
                "generate_series"
                    | "regexp_matches"
                    | "regexp_split_to_table"
                    | "json_array_elements"
                    | "jsonb_array_elements"
                    | "json_each"
                    | "jsonb_each"
                    | "generate_subscripts"
            ) {
                return Err(SqlError::unsupported(format_args!("the set-returning function {name} outside FROM")));
            }
            if matches!(name.as_str(), "current_time" | "localtime") && name == "current_time" {
                return Err(SqlError::unsupported("time with time zone"));
            }
        }
        if let Some(windows) = self.windows.last() {
            windows.resolve_call(function)?;
        }
        if let Some(WindowType::WindowSpec(spec)) = &mut function.over
            && let Some(frame) = &mut spec.window_frame
        {
            window_frame::normalize_frame(frame)?;
        }
        Ok(())
    }
}

/// Rewrites a unary operator. Minus binds tighter than `^`; PostgreSQL's other prefix operators become functions. So
/// does minus, except before a value: DataFusion's own minus computes the names of its entire operand, so that n
/// signs in a row would take n³ steps.
fn rewrite_unary(op: UnaryOperator, operand: Expr) -> Expr {
    match (op, operand) {
        (UnaryOperator::Minus, Expr::BinaryOp { left, op: BinaryOperator::PGExp, right }) => Expr::BinaryOp {
            left: Box::new(rewrite_unary(UnaryOperator::Minus, *left)),
            op: BinaryOperator::PGExp,
            right,
        },
        (UnaryOperator::Minus, operand) if !is_value(&operand) => function_call(NEGATE, vec![operand]),
        (UnaryOperator::BitwiseNot, operand) => function_call("bitnot", vec![operand]),
        (UnaryOperator::PGSquareRoot, operand) => function_call("sqrt", vec![operand]),
        (UnaryOperator::PGCubeRoot, operand) => function_call("cbrt", vec![operand]),
        (UnaryOperator::PGAbs, operand) => function_call("abs", vec![operand]),
        (op, operand) => Expr::UnaryOp { op, expr: Box::new(operand) },
    }
}

/// Returns whether an expression is a literal or a parameter.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_value(inner),
        other => matches!(other, Expr::Value(_)),
    }
}

/// Normalizes an interval literal to a cast of text without fields.
fn interval_literal(interval: &ast::Interval) -> SqlResult<Expr> {
    let Expr::Value(value) = interval.value.as_ref() else {
        return Err(SqlError::unsupported("INTERVAL followed by an expression that is not a literal"));
    };
    let Some(written) = value.value.clone().into_string() else {
        return Err(SqlError::new(Condition::SyntaxError, format!("syntax error at or near \"{}\"", interval.value)));
    };
    let units = interval_units(interval.leading_field.as_ref(), interval.last_field.as_ref())?;
    let mut canonical = String::new();
    format_interval(&parse_interval_in(&written, units)?, &mut canonical);
    Ok(Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(text(canonical)),
        data_type: DataType::Interval { fields: None, precision: None },
        array: false,
        format: None,
    })
}

fn interval_units(first: Option<&DateTimeField>, last: Option<&DateTimeField>) -> SqlResult<Option<IntervalUnits>> {
    use DateTimeField as D;
    use IntervalUnits as U;
    Ok(Some(match (first, last) {
        (None, _) => return Ok(None),
        (Some(D::Year | D::Years), None) => U::Year,
        (Some(D::Month | D::Months), None) => U::Month,
        (Some(D::Day | D::Days), None) => U::Day,
        (Some(D::Hour | D::Hours), None) => U::Hour,
        (Some(D::Minute | D::Minutes), None) => U::Minute,
        (Some(D::Second | D::Seconds), None) => U::Second,
        (Some(D::Year | D::Years), Some(D::Month | D::Months)) => U::YearToMonth,
        (Some(D::Day | D::Days), Some(D::Hour | D::Hours)) => U::DayToHour,
        (Some(D::Day | D::Days), Some(D::Minute | D::Minutes)) => U::DayToMinute,
        (Some(D::Day | D::Days), Some(D::Second | D::Seconds)) => U::DayToSecond,
        (Some(D::Hour | D::Hours), Some(D::Minute | D::Minutes)) => U::HourToMinute,
        (Some(D::Hour | D::Hours), Some(D::Second | D::Seconds)) => U::HourToSecond,
        (Some(D::Minute | D::Minutes), Some(D::Second | D::Seconds)) => U::MinuteToSecond,
        (Some(first), _) => {
            return Err(SqlError::new(Condition::SyntaxError, format!("syntax error at or near \"{first}\"")));
        }
    }))
}

/// Name of the function that builds an array of its arguments.
const ARRAY: &str = "array_literal";

fn is_empty_array(expr: &Expr) -> bool {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return false };
    let is_array = name.0.last().and_then(ObjectNamePart::as_ident).is_some_and(|name| name.value == ARRAY);
    is_array && list.args.is_empty()
}

fn is_float(data_type: &DataType) -> bool {
    use DataType as D;
    matches!(data_type, D::Float(_) | D::Float4 | D::Float8 | D::Real | D::Double(_) | D::DoublePrecision)
}

/// Returns a number written with an exponent, which may have too many digits for a numeric.
fn exponent_number(expr: &Expr) -> Option<String> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::Number(number, _) if number.contains(['e', 'E']) => Some(number.clone()),
        _ => None,
    }
}

fn null_literal() -> Expr {
    Expr::Value(Value::Null.into())
}

fn text(value: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(value).into())
}

/// Builds a call of the function `name`.
pub(crate) fn function_call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
