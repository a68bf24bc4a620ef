//! Resolution of aggregate calls: DISTINCT, ORDER BY and the types of their arguments.

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, Sort};
use datafusion::logical_expr::{AggregateUDF, Expr, lit};
use functions::cast::{CastKind, lower_cast};
use functions::type_rules::plain_type_name;
use functions::{external, is_order_sensitive, missing_function, scalar, string_agg_varying};
use plan::StandardAggregate;
use plan::StandardAggregate as Kind;
use types::{Condition, SqlError, SqlType};

use super::expr_type::type_of;
use super::lazy_evaluation::evaluate_if;
use super::type_resolution::{ExprResolver, to_comparison_key};

impl ExprResolver<'_> {
    pub(super) fn resolve_aggregate(&self, mut call: AggregateFunction) -> Result<Expr> {
        let kind = StandardAggregate::from_function(&call.func);
        let is_order_sensitive = is_order_sensitive(&call.func);
        let params = &mut call.params;
        params.args = self.cast_aggregate_arguments(&call.func, std::mem::take(&mut params.args))?;
        // WITHIN GROUP of these is represented as their ORDER BY.
        if let Some(Kind::PercentileCont | Kind::PercentileDisc | Kind::Mode) = kind {
            if type_of(&params.args[0], self.schema)? == SqlType::Jsonb {
                return Err(external(SqlError::unsupported(format_args!("{} of jsonb", call.func.name()))));
            }
            self.evaluate_arguments_if_filtered(&mut call)?;
            return Ok(Expr::AggregateFunction(call));
        }
        for key in &mut params.order_by {
            key.expr = to_comparison_key(key.expr.clone(), self.schema, self.session)?;
        }
        if params.distinct {
            self.check_distinct(&params.args, &params.order_by)?;
            if !is_order_sensitive && !matches!(kind, Some(Kind::Min | Kind::Max)) {
                let args = std::mem::take(&mut params.args).into_iter();
                params.args = args.map(|arg| self.normalize_negative_zero(arg)).collect::<Result<_>>()?;
            }
        }
        match kind {
            Some(Kind::Count) if params.distinct => {
                for arg in &mut params.args {
                    *arg = to_comparison_key(arg.clone(), self.schema, self.session)?;
                }
            }
            Some(Kind::Count) => params.args = restore_count_argument(std::mem::take(&mut params.args)),
            Some(Kind::ArrayAgg) if matches!(type_of(&params.args[0], self.schema)?, SqlType::Array(_)) => {
                return Err(external(SqlError::unsupported("an array of more than one dimension")));
            }
            Some(Kind::StringAgg) if !params.args.get(1).is_some_and(is_short_literal) => {
                call.func = string_agg_varying()
            }
            _ => {}
        }
        if !is_order_sensitive {
            params.order_by.clear();
        } else if params.distinct {
            // DISTINCT sorts in PostgreSQL, visibly for order-sensitive aggregates; all arguments become sort keys,
            // so that they tell rows apart.
            for arg in &params.args {
                let key = to_comparison_key(arg.clone(), self.schema, self.session)?;
                if !params.order_by.iter().any(|known| known.expr == key) {
                    params.order_by.push(Sort::new(key, true, false));
                }
            }
        }
        self.evaluate_arguments_if_filtered(&mut call)?;
        Ok(Expr::AggregateFunction(call))
    }

    /// Guards the arguments and sort keys of an aggregate with FILTER, which are evaluated for all rows.
    fn evaluate_arguments_if_filtered(&self, call: &mut AggregateFunction) -> Result<()> {
        let params = &mut call.params;
        let Some(filter) = &params.filter else { return Ok(()) };
        for arg in &mut params.args {
            *arg = evaluate_if(filter, arg.clone(), self.schema, self.session)?;
        }
        for key in &mut params.order_by {
            key.expr = evaluate_if(filter, key.expr.clone(), self.schema, self.session)?;
        }
        Ok(())
    }

    /// Normalizes negative zero, which DISTINCT would take for another value because it compares bits.
    fn normalize_negative_zero(&self, arg: Expr) -> Result<Expr> {
        Ok(match type_of(&arg, self.schema)? {
            SqlType::Float4 => arg + lit(0.0_f32),
            SqlType::Float8 => arg + lit(0.0_f64),
            _ => arg,
        })
    }

    /// Checks an aggregate with DISTINCT.
    ///
    /// # Errors
    /// SQLSTATE 42P10 for an ORDER BY expression that is not an argument, 42883 for a type without equality.
    fn check_distinct(&self, args: &[Expr], order_by: &[Sort]) -> Result<()> {
        let mut kept = Vec::with_capacity(args.len());
        for arg in args {
            if type_of(arg, self.schema)? == SqlType::Json {
                let message = "could not identify an equality operator for type json";
                return Err(external(SqlError::new(Condition::UndefinedFunction, message)));
            }
            kept.push(to_comparison_key(arg.clone(), self.schema, self.session)?);
        }
        if order_by.iter().all(|key| kept.contains(&key.expr)) {
            return Ok(());
        }
        let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
        Err(external(SqlError::new(Condition::InvalidColumnReference, message)))
    }

    /// Casts the arguments of an aggregate: untyped literals to text, and `char(n)` to text for `string_agg`.
    pub(super) fn cast_aggregate_arguments(&self, function: &AggregateUDF, args: Vec<Expr>) -> Result<Vec<Expr>> {
        let kind = StandardAggregate::from_function(function);
        if kind == Some(Kind::Count) {
            return Ok(args);
        }
        if matches!(kind, Some(Kind::Min | Kind::Max))
            && let Some(arg) = args.first()
            && matches!(type_of(arg, self.schema)?, SqlType::Json | SqlType::Jsonb)
        {
            let shown = plain_type_name(&type_of(arg, self.schema)?);
            return Err(external(missing_function(function.name(), &shown)));
        }
        let last = args.len().saturating_sub(1);
        args.into_iter()
            .enumerate()
            .map(|(at, arg)| match type_of(&arg, self.schema)? {
                SqlType::Unknown => {
                    lower_cast(arg, &SqlType::Unknown, &SqlType::Text, CastKind::Explicit, self.session)
                }
                from @ SqlType::Char(_) if kind == Some(Kind::StringAgg) => {
                    lower_cast(arg, &from, &SqlType::Text, CastKind::Explicit, self.session)
                }
                from if kind == Some(Kind::JsonAgg) && has_zone(&from) => {
                    if at < last {
                        lower_cast(arg, &from, &SqlType::Text, CastKind::Explicit, self.session)
                    } else {
                        self.to_json(arg)
                    }
                }
                _ => Ok(arg),
            })
            .collect()
    }

    /// Converts an argument to JSON before the aggregate, which does not know the session's time zone.
    fn to_json(&self, arg: Expr) -> Result<Expr> {
        let function = scalar("to_json", self.session)
            .ok_or_else(|| external(SqlError::internal("function to_json not found")))?;
        self.function(ScalarFunction::new_udf(function, vec![arg]))
    }
}

/// Returns whether the text of a value depends on the session's time zone.
fn has_zone(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(element) => has_zone(element),
        other => *other == SqlType::TimestampTz,
    }
}

/// Restores the 64-bit argument by which DataFusion recognizes `count(*)`.
pub(super) fn restore_count_argument(args: Vec<Expr>) -> Vec<Expr> {
    match args.as_slice() {
        [Expr::Literal(ScalarValue::Int32(Some(one)), None)] => vec![lit(i64::from(*one))],
        _ => args,
    }
}

/// Limit in bytes on separators that are inserted without a memory check.
const SEPARATOR_BYTES_MAX: usize = 1 << 10;

fn is_short_literal(separator: &Expr) -> bool {
    matches!(separator, Expr::Literal(value, _) if value.size() <= SEPARATOR_BYTES_MAX)
}
