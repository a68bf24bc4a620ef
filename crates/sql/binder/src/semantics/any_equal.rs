//! Resolution of `x = ANY (array)`: the elements and `x` are cast to the type they are compared in.

use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use functions::cast::{CastKind, lower_cast};
use functions::type_rules::{Operand, operand_type_beside, plain_type_name};
use functions::{ANY_EQUAL, ResolvedFunction, any_interval, external, missing_operator};
use types::{SqlError, SqlType};

use super::compare;
use super::type_resolution::ExprResolver;

impl ExprResolver<'_> {
    /// Resolves `x = ANY (array)`: casts the array's elements and `x` to the type they are compared in.
    pub(super) fn any_equal(&self, args: Vec<Expr>, arguments: &[SqlType]) -> Result<Expr> {
        let [array, value]: [Expr; 2] =
            args.try_into().map_err(|_| external(SqlError::internal("function any_equal takes two arguments")))?;
        let missing = |sought: &SqlType, element: &SqlType| {
            external(missing_operator("=", &plain_type_name(sought), &plain_type_name(element)))
        };
        // An untyped array has elements of the value's type.
        let beside = SqlType::Array(Box::new(match &arguments[1] {
            SqlType::Unknown => SqlType::Text,
            other => other.clone(),
        }));
        let found = operand_type_beside(&beside, Operand::new(&array, &arguments[0])).map_err(external)?;
        let element = found.element().ok_or_else(|| {
            external(missing_operator("= ANY", &plain_type_name(&arguments[1]), &plain_type_name(&arguments[0])))
        })?;
        let common = compare::comparison_type(Operand::new(&value, &arguments[1]), Operand::Typed(&element))
            .map_err(external)?
            .ok_or_else(|| missing(&arguments[1], &element))?;
        // Values of `char(n)` are compared as text without trailing blanks.
        if let (SqlType::Char(None), SqlType::Unknown) = (&common, &arguments[0]) {
            let array = lower_cast(array, &arguments[0], &found, CastKind::Explicit, self.session)?;
            return self.any_equal(vec![array, value], &[found, arguments[1].clone()]);
        }
        let common = if common == SqlType::Char(None) { SqlType::Text } else { common };
        let array_type = SqlType::Array(Box::new(common.clone()));
        let array = lower_cast(array, &arguments[0], &array_type, CastKind::Explicit, self.session)?;
        let value = lower_cast(value, &arguments[1], &common, CastKind::Explicit, self.session)?;
        if common == SqlType::Interval {
            return any_interval(array, value, self.session);
        }
        if common == SqlType::Jsonb {
            return Err(external(SqlError::unsupported("ANY of an array of jsonb")));
        }
        let function =
            ResolvedFunction::udf(&ANY_EQUAL, 0, vec![array_type, common], self.session).map_err(external)?;
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![array, value])))
    }
}
