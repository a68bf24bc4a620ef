//! DataFusion expression planner that turns SQL's operators and special syntax into calls of Kiln's functions; the
//! analyzer resolves them by type later.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::RawFieldAccessExpr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr};
use datafusion::logical_expr::{Expr, GetFieldAccess, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use functions::{external, extract_scale, scalar_call};
use session_context::EvaluationContext;
use types::{SqlError, SqlType, interrupt};

use super::expr_type::type_of;

/// Expression planner with PostgreSQL's operators.
#[derive(Debug)]
pub(crate) struct PostgresOperators {
    pub(crate) session: Arc<EvaluationContext>,
}

impl PostgresOperators {
    fn call(&self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        scalar_call(name, &self.session, args)?
            .ok_or_else(|| external(SqlError::unsupported(format_args!("the operator {name}"))))
    }
}

impl ExprPlanner for PostgresOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if matches!(expr.op, BinaryOperator::And | BinaryOperator::Or) {
            return Ok(PlannerResult::Original(expr));
        }
        let Some(name) = operator_name(&expr.op) else {
            return Err(external(SqlError::unsupported(format_args!("the operator {}", expr.op))));
        };
        let RawBinaryExpr { left, right, .. } = expr;
        let left = infer_parameter_type(name, left, &right, schema)?;
        let right = infer_parameter_type(name, right, &left, schema)?;
        self.call(name, vec![left, right]).map(PlannerResult::Planned)
    }

    fn plan_extract(&self, mut args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let name = literal_text(&args, 0).unwrap_or_default().to_lowercase();
        let scale = extract_scale(&name);
        args[0] = lit(name);
        self.call(&format!("extract_{scale}"), args).map(PlannerResult::Planned)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        self.call("substring", args).map(PlannerResult::Planned)
    }

    fn plan_position(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        // POSITION(part IN text) arrives as (text, part).
        self.call("position", args.into_iter().rev().collect()).map(PlannerResult::Planned)
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        self.call("overlay", args).map(PlannerResult::Planned)
    }

    fn plan_array_literal(&self, exprs: Vec<Expr>, _schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        self.call("array_literal", exprs).map(PlannerResult::Planned)
    }

    fn plan_struct_literal(&self, _args: Vec<Expr>, _is_named: bool) -> Result<PlannerResult<Vec<Expr>>> {
        Err(external(SqlError::unsupported("a row value outside of a comparison or IN")))
    }

    /// Names arguments with their casts, which DataFusion's names omit: `avg(x)` and `avg(x::float8)` would be one
    /// column.
    fn plan_aggregate(&self, mut expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        interrupt::check().map_err(external)?;
        expr.args = expr.args.into_iter().map(name_with_casts).collect::<Result<_>>()?;
        Ok(PlannerResult::Original(expr))
    }

    fn plan_window(&self, mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        interrupt::check().map_err(external)?;
        expr.args = expr.args.into_iter().map(name_with_casts).collect::<Result<_>>()?;
        Ok(PlannerResult::Original(expr))
    }

    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        match expr.field_access {
            GetFieldAccess::ListIndex { key } => {
                self.call("array_element", vec![expr.expr, *key]).map(PlannerResult::Planned)
            }
            GetFieldAccess::ListRange { start, stop, stride } if *stride == lit(1_i64) => {
                self.call("array_slice", vec![expr.expr, *start, *stop]).map(PlannerResult::Planned)
            }
            _ => Err(external(SqlError::unsupported("a field access, or an array slice with a step"))),
        }
    }
}

fn name_with_casts(expr: Expr) -> Result<Expr> {
    if expr.exists(|expr| Ok(matches!(expr, Expr::Cast(_))))? {
        let name = expr.to_string();
        return Ok(expr.alias(name));
    }
    Ok(expr)
}

/// Infers the type of an untyped parameter from the other operand.
fn infer_parameter_type(operator: &str, expr: Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    let Expr::Placeholder(Placeholder { id, field: None }) = &expr else { return Ok(expr) };
    let compares = matches!(operator, "=" | "<>" | "<" | "<=" | ">" | ">=");
    let sql_type = match (operator, type_of(other, schema)?) {
        (_, SqlType::Unknown | SqlType::Varchar(_)) => SqlType::Text,
        (_, SqlType::Char(_)) if !compares => SqlType::Text,
        ("+", SqlType::Date) => SqlType::Int4,
        ("+", SqlType::Timestamp | SqlType::TimestampTz | SqlType::Time) => SqlType::Interval,
        ("*" | "/", SqlType::Interval) => SqlType::Float8,
        ("^", SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => SqlType::Float8,
        ("->" | "->>", _) => SqlType::Text,
        (_, known) => known.without_modifier(),
    };
    Ok(Expr::Placeholder(Placeholder::new_with_field(id.clone(), Some(Arc::new(sql_type.arrow_field(id, true))))))
}

fn operator_name(operator: &BinaryOperator) -> Option<&str> {
    use BinaryOperator as B;
    Some(match operator {
        B::Plus => "+",
        B::Minus => "-",
        B::Multiply => "*",
        B::Divide => "/",
        B::Modulo => "%",
        B::PGExp => "^",
        B::StringConcat => "||",
        B::BitwiseAnd => "&",
        B::BitwiseOr => "|",
        B::PGBitwiseXor => "#",
        B::PGBitwiseShiftLeft => "<<",
        B::PGBitwiseShiftRight => ">>",
        B::Eq => "=",
        B::NotEq => "<>",
        B::Lt => "<",
        B::LtEq => "<=",
        B::Gt => ">",
        B::GtEq => ">=",
        B::PGRegexMatch => "~",
        B::PGRegexIMatch => "~*",
        B::PGRegexNotMatch => "!~",
        B::PGRegexNotIMatch => "!~*",
        B::PGLikeMatch => "~~",
        B::PGILikeMatch => "~~*",
        B::PGNotLikeMatch => "!~~",
        B::PGNotILikeMatch => "!~~*",
        B::PGStartsWith => "^@",
        B::PGOverlap => "&&",
        B::Arrow => "->",
        B::LongArrow => "->>",
        B::HashArrow => "#>",
        B::HashLongArrow => "#>>",
        B::AtArrow => "@>",
        B::ArrowAt => "<@",
        B::Question => "?",
        B::QuestionAnd => "?&",
        B::QuestionPipe => "?|",
        B::HashMinus => "#-",
        B::Custom(name) => name,
        B::PGCustomBinaryOperator(path) => path.last()?,
        _ => return None,
    })
}

/// Returns the text of the argument at `index`, if it is a literal.
fn literal_text(args: &[Expr], index: usize) -> Option<&str> {
    match args.get(index)? {
        Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text), _) => {
            text.as_deref()
        }
        _ => None,
    }
}
