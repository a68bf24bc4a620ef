//! Calls whose arguments are cast to their common type: COALESCE, GREATEST, LEAST and `ARRAY[…]`.

use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use functions::cast::{CastKind, lower_cast};
use functions::type_rules::{Operand, common_type};
use functions::{Body, DataFusionFunction, UnresolvedFunction, external, extreme_interval};
use types::{SqlError, SqlType};

use super::coalesce;
use super::lazy_evaluation::lazy_coalesce;
use super::type_resolution::{ExprResolver, with_type_metadata};

/// Call whose arguments are cast to their common type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommonTypeCall {
    Coalesce,
    Greatest,
    Least,
    /// `ARRAY[…]`.
    Array,
}

impl CommonTypeCall {
    /// Returns the words for the call in an error about types without a common one.
    fn context(self) -> &'static str {
        match self {
            Self::Coalesce => "COALESCE",
            Self::Greatest => "GREATEST",
            Self::Least => "LEAST",
            Self::Array => "ARRAY",
        }
    }
}

impl ExprResolver<'_> {
    /// Resolves a call whose arguments have a common type.
    pub(super) fn resolve_common_type_call(
        &self,
        call: CommonTypeCall,
        args: Vec<Expr>,
        arguments: &[SqlType],
        named: &UnresolvedFunction,
    ) -> Result<Expr> {
        let operands: Vec<Operand<'_>> =
            args.iter().zip(arguments).map(|(arg, sql_type)| Operand::new(arg, sql_type)).collect();
        let common = common_type(&operands, call.context()).map_err(external)?;
        let args: Vec<Expr> = args
            .into_iter()
            .zip(arguments)
            .map(|(arg, from)| lower_cast(arg, from, &common, CastKind::Assignment, self.session))
            .collect::<Result<_>>()?;
        let args = if call == CommonTypeCall::Coalesce { coalesce::flatten_arguments(args) } else { args };
        if call == CommonTypeCall::Coalesce
            && let Some(eager) = coalesce::eager_coalesce(&args, &common, self.session)?
        {
            return Ok(with_type_metadata(eager, &common));
        }
        if call == CommonTypeCall::Coalesce
            && common == SqlType::Bool
            && let Some(lazy) = lazy_coalesce(&args, self.session)?
        {
            return Ok(lazy);
        }
        if common == SqlType::Interval && matches!(call, CommonTypeCall::Greatest | CommonTypeCall::Least) {
            return extreme_interval(call == CommonTypeCall::Greatest, args, self.session);
        }
        if common == SqlType::Jsonb && matches!(call, CommonTypeCall::Greatest | CommonTypeCall::Least) {
            return Err(external(SqlError::unsupported(format_args!("{} of jsonb", named.definition.name))));
        }
        let overload = &named.definition.overloads[0];
        let Body::Builtin(function) = overload.body else {
            return Err(external(SqlError::internal("overload of a common-type function is not a built-in")));
        };
        if call == CommonTypeCall::Array && matches!(common, SqlType::Array(_)) {
            return Err(external(SqlError::unsupported("an array of more than one dimension")));
        }
        let gives = if call == CommonTypeCall::Array { SqlType::Array(Box::new(common)) } else { common };
        let expr = Expr::ScalarFunction(ScalarFunction::new_udf(
            DataFusionFunction::udf(function(), overload.builtin_fallibility()),
            args,
        ));
        if call == CommonTypeCall::Array {
            self.cast_result(expr, &gives)
        } else {
            Ok(with_type_metadata(expr, &gives))
        }
    }
}
