//! Calls of aggregates and window functions: what DISTINCT and ORDER BY mean in them, and the types of their arguments.

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, Sort, WindowFunction};
use datafusion::logical_expr::{Expr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit};
use types::{Condition, SqlError, SqlType};

use super::cast::lower as lower_cast;
use super::resolve::{Rewriter, ordered};
use super::type_rules::plain;
use super::typed::type_of;
use crate::functions::cast::{CastKind, is_text};
use crate::functions::definition::missing_function;
use crate::functions::{comparison_key, external, scalar, shows_order, string_agg_varying};

/// Aggregates whose WITHIN GROUP comes as their order.
const ORDERED_SETS: [&str; 3] = ["percentile_cont", "percentile_disc", "mode"];

impl Rewriter<'_> {
    pub(super) fn aggregate(&self, mut call: AggregateFunction) -> Result<Expr> {
        let name = call.func.name().to_owned();
        let params = &mut call.params;
        params.args = self.aggregate_arguments(&name, std::mem::take(&mut params.args))?;
        if ORDERED_SETS.contains(&name.as_str()) {
            if type_of(&params.args[0], self.schema)? == SqlType::Jsonb {
                return Err(external(SqlError::unsupported(format_args!("{name} of jsonb"))));
            }
            return Ok(Expr::AggregateFunction(call));
        }
        for key in &mut params.order_by {
            key.expr = ordered(key.expr.clone(), self.schema, self.session)?;
        }
        if params.distinct {
            self.check_distinct(&params.args, &params.order_by)?;
        }
        match name.as_str() {
            "count" if params.distinct => {
                for arg in &mut params.args {
                    *arg = ordered(arg.clone(), self.schema, self.session)?;
                }
            }
            "count" => params.args = counted(std::mem::take(&mut params.args)),
            "array_agg" if matches!(type_of(&params.args[0], self.schema)?, SqlType::Array(_)) => {
                return Err(external(SqlError::unsupported("an array of more than one dimension")));
            }
            "string_agg" if !matches!(params.args.get(1), Some(Expr::Literal(..))) => call.func = string_agg_varying(),
            _ => {}
        }
        if !shows_order(&name) {
            params.order_by.clear();
        } else if params.distinct {
            // DISTINCT sorts in PostgreSQL, and the value shows it: the keys tell all rows apart.
            for arg in &params.args {
                let key = ordered(arg.clone(), self.schema, self.session)?;
                if !params.order_by.iter().any(|known| known.expr == key) {
                    params.order_by.push(Sort::new(key, true, false));
                }
            }
        }
        Ok(Expr::AggregateFunction(call))
    }

    /// `42P10` for an order by something that DISTINCT does not keep, `42883` for what has no equality.
    fn check_distinct(&self, args: &[Expr], order_by: &[Sort]) -> Result<()> {
        let mut kept = Vec::with_capacity(args.len());
        for arg in args {
            if type_of(arg, self.schema)? == SqlType::Json {
                let message = "could not identify an equality operator for type json";
                return Err(external(SqlError::new(Condition::UndefinedFunction, message)));
            }
            kept.push(ordered(arg.clone(), self.schema, self.session)?);
        }
        if order_by.iter().all(|key| kept.contains(&key.expr)) {
            return Ok(());
        }
        let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
        Err(external(SqlError::new(Condition::InvalidColumnReference, message)))
    }

    pub(super) fn window(&self, mut call: WindowFunction) -> Result<Expr> {
        if call.params.distinct {
            let message = "DISTINCT is not implemented for window functions";
            return Err(external(SqlError::new(Condition::FeatureNotSupported, message)));
        }
        self.check_range(&call)?;
        if let ("lag" | "lead", Some(Expr::Literal(offset, _))) = (call.fun.name(), call.params.args.get(1))
            && offset.is_null()
        {
            return Err(external(SqlError::unsupported(format_args!("a NULL offset of {}", call.fun.name()))));
        }
        for key in &mut call.params.partition_by {
            *key = ordered(key.clone(), self.schema, self.session)?;
        }
        for key in &mut call.params.order_by {
            key.expr = ordered(key.expr.clone(), self.schema, self.session)?;
        }
        if let Some(key) = call.params.order_by.first()
            && call.params.window_frame.units == WindowFrameUnits::Range
            && has_no_distances(&type_of(&key.expr, self.schema)?)
        {
            call.params.window_frame = by_peers(&call.params.window_frame);
        }
        if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun {
            let name = function.name().to_owned();
            if name == "count" {
                call.params.args = counted(call.params.args);
            }
            call.params.args = self.aggregate_arguments(&name, call.params.args)?;
        }
        Ok(Expr::WindowFunction(Box::new(call)))
    }

    /// `0A000` for a distance from a text, and for one between lengths of intervals.
    fn check_range(&self, call: &WindowFunction) -> Result<()> {
        let frame = &call.params.window_frame;
        let is_offset = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
            WindowFrameBound::CurrentRow => false,
        };
        if frame.units != WindowFrameUnits::Range || !(is_offset(&frame.start_bound) || is_offset(&frame.end_bound)) {
            return Ok(());
        }
        for key in &call.params.order_by {
            let sql_type = type_of(&key.expr, self.schema)?;
            if is_text(&sql_type) || has_no_distances(&sql_type) || comparison_key(&sql_type).is_some() {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    plain(&sql_type)
                );
                return Err(external(SqlError::new(Condition::FeatureNotSupported, message)));
            }
        }
        Ok(())
    }

    /// Untyped literals are text to an aggregate, and so is char(n) to those that join text.
    fn aggregate_arguments(&self, name: &str, args: Vec<Expr>) -> Result<Vec<Expr>> {
        if name == "count" {
            return Ok(args);
        }
        if matches!(name, "min" | "max")
            && let Some(arg) = args.first()
            && matches!(type_of(arg, self.schema)?, SqlType::Json | SqlType::Jsonb)
        {
            let shown = plain(&type_of(arg, self.schema)?);
            return Err(external(missing_function(name, &shown)));
        }
        let last = args.len().saturating_sub(1);
        args.into_iter()
            .enumerate()
            .map(|(at, arg)| match type_of(&arg, self.schema)? {
                SqlType::Unknown => {
                    lower_cast(arg, &SqlType::Unknown, &SqlType::Text, CastKind::Explicit, self.session)
                }
                from @ SqlType::Char(_) if name == "string_agg" => {
                    lower_cast(arg, &from, &SqlType::Text, CastKind::Explicit, self.session)
                }
                from if name.starts_with("json") && has_zone(&from) => {
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

    /// Aggregates do not know the session, whose time zone such a value is written in.
    fn to_json(&self, arg: Expr) -> Result<Expr> {
        let function =
            scalar("to_json", self.session).ok_or_else(|| external(SqlError::internal("to_json is gone")))?;
        self.function(ScalarFunction::new_udf(function, vec![arg]))
    }
}

/// Types that DataFusion has no RANGE frames for.
fn has_no_distances(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Bytea | SqlType::Uuid | SqlType::Time)
}

/// A RANGE without distances, which ends with the row's peers, as the GROUPS that it is.
fn by_peers(frame: &WindowFrame) -> WindowFrame {
    let end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
    };
    WindowFrame::new_bounds(WindowFrameUnits::Groups, end(&frame.start_bound), end(&frame.end_bound))
}

/// Whether the text of a value depends on the session's time zone.
fn has_zone(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(element) => has_zone(element),
        other => *other == SqlType::TimestampTz,
    }
}

/// The argument of count(*), by whose 64 bits DataFusion knows it.
fn counted(args: Vec<Expr>) -> Vec<Expr> {
    match args.as_slice() {
        [Expr::Literal(ScalarValue::Int32(Some(one)), None)] => vec![lit(i64::from(*one))],
        _ => args,
    }
}
