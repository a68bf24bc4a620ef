//! Lazily evaluated CASE of conditions: two internal functions keep the optimizer from rewriting it to AND and OR.
//!
//! DataFusion rewrites a CASE of conditions to AND and OR, and evaluates both sides of these for all rows. The branches of
//! a lazy CASE are numbers instead, which no rule rewrites: `lazy(CASE WHEN a THEN branch(b) ELSE branch(c) END)`. The
//! functions have no SQL name.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Int16Array};
use arrow::datatypes::{DataType, Int16Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{CaseExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use serde::{Deserialize, Serialize};

use super::column_name::{ArgumentsHash, column_name, name_with_hash};

#[cfg(test)]
mod tests;

/// Reason for which a CASE of conditions is evaluated lazily.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LazyPurpose {
    /// Right side of AND or OR, evaluated where the left side does not decide.
    Guard,
    /// CASE, COALESCE or FILTER of the statement.
    Branches,
}

/// Role of a [`LazyFunction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LazyRole {
    /// Converts the number of the CASE back to a condition.
    Condition(LazyPurpose),
    /// Converts a branch, which is a condition, to a number.
    Branch,
}

/// Internal function around or within a lazy CASE of conditions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct LazyFunction {
    role: LazyRole,
    signature: Signature,
    /// Hash of the arguments of the call, if their names are long.
    arguments_hash: Option<ArgumentsHash>,
}

impl LazyFunction {
    /// Creates the function of a role.
    pub(crate) fn udf(role: LazyRole) -> ScalarUDF {
        Self::make(role, None)
    }

    /// Builds a call. Conditions that guard each other nest, and a name that repeats its arguments' names would be
    /// written again at every level.
    fn call(role: LazyRole, argument: Expr) -> Result<Expr> {
        let arguments_hash = ArgumentsHash::for_long_names(std::slice::from_ref(&argument))?;
        let function = Arc::new(Self::make(role, arguments_hash));
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![argument])))
    }

    fn make(role: LazyRole, arguments_hash: Option<ArgumentsHash>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { role, signature: Signature::any(1, Volatility::Immutable), arguments_hash })
    }

    /// Returns the hash of the arguments of the call, if their names are long.
    pub(crate) fn arguments_hash(&self) -> Option<ArgumentsHash> {
        self.arguments_hash
    }

    /// Returns its role.
    pub(crate) fn role(&self) -> LazyRole {
        self.role
    }
}

/// Builds the lazy form of a CASE whose results are conditions.
///
/// # Errors
/// The name of an expression cannot be formatted.
pub fn lazy_condition(case: Case, purpose: LazyPurpose) -> Result<Expr> {
    let branch = |condition: Box<Expr>| LazyFunction::call(LazyRole::Branch, *condition).map(Box::new);
    let branches = case.when_then_expr.into_iter().map(|(when, then)| Ok((when, branch(then)?)));
    let branches = branches.collect::<Result<_>>()?;
    let case = Expr::Case(Case::new(case.expr, branches, case.else_expr.map(branch).transpose()?));
    LazyFunction::call(LazyRole::Condition(purpose), case)
}

/// Returns the purpose and the CASE of a lazy condition; `None` for other expressions.
#[must_use]
pub fn as_lazy_condition(expr: &Expr) -> Option<(LazyPurpose, &Case)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let LazyRole::Condition(purpose) = func.inner().downcast_ref::<LazyFunction>()?.role else { return None };
    match args.as_slice() {
        [Expr::Case(case)] => Some((purpose, case)),
        _ => None,
    }
}

/// Returns the condition of a branch of a lazy CASE; `None` if it became a constant.
#[must_use]
pub fn branch_condition(branch: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = branch else { return None };
    let is_branch = func.inner().downcast_ref::<LazyFunction>()?.role == LazyRole::Branch;
    args.first().filter(|_| is_branch)
}

/// Returns the CASE of conditions that a planned lazy condition stands for, which evaluates to the same; `None` for
/// other expressions.
#[must_use]
pub fn planned_lazy_case(expression: &Arc<dyn PhysicalExpr>) -> Option<CaseExpr> {
    let [case] = lazy_arguments(expression, |role| matches!(role, LazyRole::Condition(_)))? else { return None };
    let case = case.downcast_ref::<CaseExpr>()?;
    let branches = case.when_then_expr().iter().map(|(when, then)| Some((Arc::clone(when), planned_condition(then)?)));
    let otherwise = match case.else_expr() {
        Some(otherwise) => Some(planned_condition(otherwise)?),
        None => None,
    };
    CaseExpr::try_new(case.expr().cloned(), branches.collect::<Option<_>>()?, otherwise).ok()
}

/// Returns the condition of a planned branch.
fn planned_condition(branch: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    if let Some(literal) = branch.downcast_ref::<Literal>() {
        let ScalarValue::Int16(number) = literal.value() else { return None };
        return Some(Arc::new(Literal::new(ScalarValue::Boolean(number.map(|number| number != 0)))));
    }
    lazy_arguments(branch, |role| role == LazyRole::Branch)?.first().cloned()
}

fn lazy_arguments(
    expression: &Arc<dyn PhysicalExpr>,
    has_role: impl Fn(LazyRole) -> bool,
) -> Option<&[Arc<dyn PhysicalExpr>]> {
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let function = call.fun().inner().downcast_ref::<LazyFunction>()?;
    has_role(function.role).then_some(call.args())
}

impl ScalarUDFImpl for LazyFunction {
    fn name(&self) -> &str {
        match self.role {
            LazyRole::Condition(_) => "lazy",
            LazyRole::Branch => "branch",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match self.arguments_hash {
            Some(hash) => Ok(name_with_hash(self.name(), hash)),
            None => column_name(self.name(), args),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.role {
            LazyRole::Condition(_) => DataType::Boolean,
            LazyRole::Branch => DataType::Int16,
        })
    }

    /// A CASE whose conditions are constants may have become one of its branches.
    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let condition = match (self.role, args.as_slice()) {
            (LazyRole::Condition(_), [branch]) => branch_condition(branch).cloned(),
            _ => None,
        };
        Ok(condition.map_or(ExprSimplifyResult::Original(args), ExprSimplifyResult::Simplified))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_branch = self.role == LazyRole::Branch;
        Ok(match (is_branch, args.args.first()) {
            (true, Some(ColumnarValue::Scalar(ScalarValue::Boolean(value)))) => {
                ColumnarValue::Scalar(ScalarValue::Int16(value.map(i16::from)))
            }
            (true, Some(ColumnarValue::Array(values))) if *values.data_type() == DataType::Boolean => {
                let numbers = values.as_boolean().iter().map(|value| value.map(i16::from));
                ColumnarValue::Array(Arc::new(numbers.collect::<Int16Array>()))
            }
            (false, Some(ColumnarValue::Scalar(ScalarValue::Int16(value)))) => {
                ColumnarValue::Scalar(ScalarValue::Boolean(value.map(|value| value != 0)))
            }
            (false, Some(ColumnarValue::Array(values))) if *values.data_type() == DataType::Int16 => {
                let conditions = values.as_primitive::<Int16Type>().iter().map(|value| value.map(|value| value != 0));
                ColumnarValue::Array(Arc::new(conditions.collect::<BooleanArray>()))
            }
            (_, other) => {
                let found = other.map(ColumnarValue::data_type);
                return exec_err!("the internal function {} was called with {found:?}", self.name());
            }
        })
    }
}
