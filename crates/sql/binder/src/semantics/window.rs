//! Resolution of window function calls: restrictions, sort keys, and the offsets of their frames.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, when};
use functions::cast::{CastKind, is_text, lower_cast};
use functions::type_rules::{Operand, common_type, plain_type_name};
use functions::{comparison_key, external, missing_function, with_filter_argument};
use types::numeric::NumericPrecision;
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::{Condition, SessionZone, SqlError, SqlType};

use super::aggregate::restore_count_argument;
use super::expr_type::type_of;
use super::lazy_evaluation::evaluate_if;
use super::type_resolution::{ExprResolver, to_comparison_key};
use plan::{StandardAggregate, StandardWindow};

impl ExprResolver<'_> {
    pub(super) fn resolve_window(&self, mut call: WindowFunction) -> Result<Expr> {
        if call.params.distinct {
            let message = "DISTINCT is not implemented for window functions";
            return Err(external(SqlError::new(Condition::FeatureNotSupported, message)));
        }
        self.check_range(&call)?;
        if let WindowFunctionDefinition::WindowUDF(function) = &call.fun
            && matches!(StandardWindow::from_function(function), Some(StandardWindow::Lag | StandardWindow::Lead))
        {
            if let Some(Expr::Literal(offset, _)) = call.params.args.get(1)
                && offset.is_null()
            {
                return Err(external(SqlError::unsupported(format_args!("a NULL offset of {}", call.fun.name()))));
            }
            let name = call.fun.name().to_owned();
            self.unify_default_type(&name, &mut call.params.args)?;
        }
        for key in &mut call.params.partition_by {
            *key = to_comparison_key(key.clone(), self.schema, self.session)?;
        }
        for key in &mut call.params.order_by {
            key.expr = to_comparison_key(key.expr.clone(), self.schema, self.session)?;
        }
        self.widen_range_key(&mut call)?;
        if let Some(key) = call.params.order_by.first()
            && call.params.window_frame.units == WindowFrameUnits::Range
            && lacks_range_frames(&type_of(&key.expr, self.schema)?)
        {
            call.params.window_frame = to_groups_frame(&call.params.window_frame);
        }
        if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun {
            let (function, kind) = (Arc::clone(function), StandardAggregate::from_function(function));
            if kind == Some(StandardAggregate::Count) {
                call.params.args = restore_count_argument(call.params.args);
            }
            call.params.args = self.cast_aggregate_arguments(&function, call.params.args)?;
            self.move_filter_to_arguments(kind, &mut call)?;
        }
        Ok(Expr::WindowFunction(Box::new(call)))
    }

    /// Casts the value and the default of `lag` and `lead` to their common type.
    ///
    /// # Errors
    /// SQLSTATE 42883 if they have none.
    fn unify_default_type(&self, name: &str, args: &mut [Expr]) -> Result<()> {
        let [value, offset, default] = args else { return Ok(()) };
        let offset = type_of(offset, self.schema)?;
        let types = [type_of(value, self.schema)?, type_of(default, self.schema)?];
        let operands = [Operand::new(value, &types[0]), Operand::new(default, &types[1])];
        let common = common_type(&operands, name).map_err(|error| match error.condition {
            Condition::DatatypeMismatch => {
                let types = [&types[0], &offset, &types[1]].map(plain_type_name);
                external(missing_function(name, &types.join(", ")))
            }
            _ => external(error),
        })?;
        for (arg, from) in [value, default].into_iter().zip(&types) {
            *arg = lower_cast(arg.clone(), from, &common, CastKind::Assignment, self.session)?;
        }
        Ok(())
    }

    /// Moves FILTER into the arguments: as a CASE of the first argument for aggregates that ignore NULLs, as an
    /// additional argument for others. DataFusion stores FILTER beside the arguments, invisible to the engine and to
    /// workers.
    fn move_filter_to_arguments(&self, kind: Option<StandardAggregate>, call: &mut WindowFunction) -> Result<()> {
        let is_plain = |sql_type: SqlType| {
            NumericPrecision::from_sql_type(&sql_type).is_some()
                || matches!(sql_type, SqlType::Float8 | SqlType::Date | SqlType::Timestamp | SqlType::Text)
        };
        let Some(argument) = call.params.args.first_mut() else { return Ok(()) };
        let ignores_nulls = match kind {
            Some(StandardAggregate::Count) => true,
            Some(
                StandardAggregate::Sum
                | StandardAggregate::Average
                | StandardAggregate::Min
                | StandardAggregate::Max
                | StandardAggregate::Variance,
            ) => is_plain(type_of(argument, self.schema)?),
            _ => false,
        };
        let Some(filter) = call.params.filter.take() else { return Ok(()) };
        if ignores_nulls {
            *argument = when(*filter, argument.clone()).end()?;
        } else if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun {
            call.fun = WindowFunctionDefinition::AggregateUDF(with_filter_argument(Arc::clone(function)));
            for argument in &mut call.params.args {
                *argument = evaluate_if(&filter, argument.clone(), self.schema, self.session)?;
            }
            call.params.args.push(*filter);
        }
        Ok(())
    }

    /// Checks the offsets of a RANGE frame.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for a sort key of a text or interval type, and for an offset whose type does not fit the key.
    fn check_range(&self, call: &WindowFunction) -> Result<()> {
        let distances = frame_offsets(&call.params.window_frame);
        if distances.is_empty() {
            return Ok(());
        }
        for key in &call.params.order_by {
            let sql_type = type_of(&key.expr, self.schema)?;
            let refused = |offset: &str| {
                let message = format!(
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}{offset}",
                    plain_type_name(&sql_type)
                );
                Err(external(SqlError::new(Condition::FeatureNotSupported, message)))
            };
            if is_text(&sql_type) || lacks_range_frames(&sql_type) || comparison_key(&sql_type).is_some() {
                return refused("");
            }
            let is_time = matches!(sql_type, SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz);
            for distance in &distances {
                let Some(offset) = FrameOffset::parse(distance) else { continue };
                match offset {
                    FrameOffset::Number { decimals } if is_time => {
                        return refused(if decimals == 0 {
                            " and offset type integer"
                        } else {
                            " and offset type numeric"
                        });
                    }
                    FrameOffset::Number { decimals } if decimals != 0 && is_integer(&sql_type) => {
                        return refused(" and offset type numeric");
                    }
                    FrameOffset::Interval { .. } if !is_time => return refused(" and offset type interval"),
                    // The length of a day depends on the session's time zone, which frames do not know.
                    FrameOffset::Interval { is_clock: false }
                        if sql_type == SqlType::TimestampTz && self.session.zone != SessionZone::UTC =>
                    {
                        return Err(external(SqlError::unsupported(
                            "RANGE with days or months of timestamp with time zone in a zone other than UTC",
                        )));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Casts the sort key of a frame with offsets to a type that can hold key plus offset: timestamps for dates, and
    /// numerics with the decimals of the offsets.
    fn widen_range_key(&self, call: &mut WindowFunction) -> Result<()> {
        let distances = frame_offsets(&call.params.window_frame);
        let ([key], false) = (call.params.order_by.as_mut_slice(), distances.is_empty()) else { return Ok(()) };
        let from = type_of(&key.expr, self.schema)?;
        let to = match &from {
            SqlType::Date => SqlType::Timestamp,
            SqlType::Numeric { scale, .. } => {
                let decimals = distances.iter().filter_map(FrameOffset::parse).map(|offset| match offset {
                    FrameOffset::Number { decimals } => decimals,
                    FrameOffset::Interval { .. } => 0,
                });
                let scale = decimals.fold(*scale, u8::max);
                SqlType::Numeric { precision: NUMERIC_PRECISION_MAX, scale }
            }
            _ => return Ok(()),
        };
        key.expr = lower_cast(key.expr.clone(), &from, &to, CastKind::Explicit, self.session)?;
        Ok(())
    }
}

/// Offset of a frame as written.
enum FrameOffset {
    /// Number with this many decimals.
    Number { decimals: u8 },
    /// Interval; `is_clock` if it has neither months nor days.
    Interval { is_clock: bool },
}

impl FrameOffset {
    fn parse(distance: &ScalarValue) -> Option<Self> {
        let text = distance.try_as_str().flatten()?;
        if text.ends_with("microseconds") {
            return Some(Self::Interval { is_clock: text.starts_with("0 months 0 days") });
        }
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some(Self::Number { decimals: u8::try_from(decimals).unwrap_or(u8::MAX) })
    }
}

/// Returns the offsets of a RANGE frame.
fn frame_offsets(frame: &WindowFrame) -> Vec<ScalarValue> {
    let distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => Some(distance.clone()),
        WindowFrameBound::CurrentRow => None,
    };
    let edges = [&frame.start_bound, &frame.end_bound].into_iter().filter(|_| frame.units == WindowFrameUnits::Range);
    edges.filter_map(distance).filter(|distance| !distance.is_null()).collect()
}

fn is_integer(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
}

/// Returns whether DataFusion has no RANGE frames for the type.
fn lacks_range_frames(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Bytea | SqlType::Uuid | SqlType::Time)
}

/// Converts a RANGE frame without offsets, which ends at the row's peers, to the equivalent GROUPS frame.
fn to_groups_frame(frame: &WindowFrame) -> WindowFrame {
    let end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
    };
    WindowFrame::new_bounds(WindowFrameUnits::Groups, end(&frame.start_bound), end(&frame.end_bound))
}
