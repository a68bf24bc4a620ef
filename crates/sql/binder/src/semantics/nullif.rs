//! Resolution of NULLIF, whose arguments are compared with each other.

use datafusion::common::{Result, ScalarValue};
use datafusion::functions::core::nullif;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use functions::cast::{CastKind, lower_cast};
use functions::type_rules::{Operand, operand_type_beside};
use functions::{DataFusionFunction, Fallibility, external};
use types::numeric::NumericPrecision;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::compare;
use super::duplication_limit::{copy_expr, is_cheap};
use super::type_resolution::{ExprResolver, with_type_metadata};

impl ExprResolver<'_> {
    /// Resolves NULLIF, whose arguments are compared with each other.
    pub(super) fn resolve_nullif(&self, args: Vec<Expr>, arguments: &[SqlType]) -> Result<Expr> {
        let [left, right]: [Expr; 2] = args
            .try_into()
            .map_err(|_| external(SqlError::new(Condition::SyntaxError, "NULLIF takes two arguments")))?;
        // The result has the type of the comparison.
        let gives = nullif_type(Operand::new(&left, &arguments[0]), &arguments[1]).map_err(external)?;
        let left = lower_cast(left, &arguments[0], &gives, CastKind::Explicit, self.session)?;
        let compared = copy_expr(&left, self.session)?;
        let equal = compare::lower_comparison(Operator::Eq, self.typed(compared)?, self.typed(right)?, self.session)?;
        if !is_cheap(&left)
            && let Expr::BinaryExpr(BinaryExpr { left: compared, op: Operator::Eq, right }) = &equal
            && **compared == left
        {
            let call = ScalarFunction::new_udf(
                DataFusionFunction::udf(nullif(), Fallibility::Never),
                vec![left, right.as_ref().clone()],
            );
            return Ok(with_type_metadata(Expr::ScalarFunction(call), &gives));
        }
        let null = Expr::Literal(ScalarValue::try_from(&gives.arrow_type())?, None);
        let case = Case::new(None, vec![(Box::new(equal), Box::new(null))], Some(Box::new(left)));
        Ok(with_type_metadata(Expr::Case(case), &gives))
    }
}

/// Returns the type of NULLIF's first argument in its comparison with the second.
fn nullif_type(left: Operand<'_>, right: &SqlType) -> SqlResult<SqlType> {
    use SqlType as T;
    Ok(match (left, right) {
        (Operand::Typed(T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. }), T::Float4 | T::Float8) => T::Float8,
        (Operand::Typed(left @ (T::Int2 | T::Int4 | T::Int8)), T::Numeric { .. }) => {
            NumericPrecision::from_sql_type(left).map_or_else(|| left.clone(), NumericPrecision::sql_type)
        }
        (Operand::Typed(left), _) => left.clone(),
        (_, T::Unknown) => T::Text,
        (untyped, right) => operand_type_beside(right, untyped)?,
    })
}
