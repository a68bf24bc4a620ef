//! PostgreSQL's functions, operators, casts and aggregates, and the internal functions that only plans call.
//!
//! This crate never reads the catalog; functions that do are defined by `system_catalog`. There is no fallback: a
//! name that [`scalar`], [`aggregate`] and [`window`] do not find is not a function, because DataFusion's function of
//! that name would have other semantics.
//!
//! Start at `definition.rs`: a function is a [`Definition`], a table of overloads with their bodies. `function.rs`
//! makes DataFusion functions of it. Then:
//!
//! - arguments and types: `type_rules.rs` (implicit casts, common types), `cast/`, `call.rs` (access to arguments and
//!   results),
//! - functions by kind of value: `arithmetic/`, `math.rs`, `text/`, `pattern.rs`, `like.rs`, `datetime/`, `json/`,
//!   `array.rs`, `comparison.rs`, `conditional.rs`,
//! - `aggregate/`; window functions in `ranking_window.rs` and `directional_window.rs`; `datafusion_function.rs` (DataFusion's functions under
//!   shorter column names),
//! - internal functions: `grouping_key.rs`, `has_key.rs` with `key_set.rs`, `row_constraints.rs` (NOT NULL and
//!   CHECK), `series/` (lists of `generate_series`),
//! - other forms of a call: `function_codec.rs` (serializable, for other processes), `single_value.rs` (single values, for the
//!   primary-key fast path), `date_kernel.rs`, `numeric_kernel.rs` and `text_kernel.rs` (kernels of the vectorized engine),
//! - `value_lifetime.rs` (how long a call's value stays valid), `folding.rs` (size limit of constant folding), `error.rs`
//!   (DataFusion's errors in PostgreSQL's words).

mod aggregate;
mod arithmetic;
mod array;
mod call;
pub mod cast;
mod column_name;
mod comparison;
mod conditional;
mod datafusion_function;
mod date_kernel;
mod datetime;
mod definition;
mod directional_window;
pub mod error;
mod field_type;
mod folding;
mod function;
pub mod function_codec;
mod grouping_key;
mod has_key;
mod json;
mod key_set;
mod like;
mod math;
mod numeric_kernel;
mod pattern;
mod ranking_window;
mod row_constraints;
pub mod series;
mod single_value;
mod text;
mod text_array;
mod text_kernel;
mod type_name;
pub mod type_rules;
mod value_bytes;
mod value_lifetime;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, Operator, ScalarUDF, Volatility, WindowUDF};
use session_context::EvaluationContext;
use types::SqlType;

pub use self::array::ANY_EQUAL;
use self::cast::{CastKind, lower_cast};
pub use self::conditional::{FIRST_NOT_NULL_NAME, FIRST_TRUE_NAME};
pub use self::datafusion_function::DataFusionFunction;
pub use self::date_kernel::{ExtractKernel, IntervalAdditionKernel, extract_kernel, interval_addition_kernel};
pub use self::datetime::extract_scale;
pub use self::definition::{Body, Definition, NEGATE, missing_function, missing_operator};
use self::directional_window::DirectionalFunction;
pub use self::directional_window::is_reversed;
pub use self::field_type::field_type;
pub use self::folding::with_folding_limit;
pub use self::function::{ResolvedFunction, UnresolvedFunction, external};
pub use self::grouping_key::{GROUPING_KEY, VOLATILE_NULL, hides_key};
pub use self::has_key::{HasKey, tested_keys};
pub use self::key_set::{KEYS_MAX, KeySet};
pub use self::like::like_operator;
pub(crate) use self::like::lower_constant_like;
pub use self::numeric_kernel::{
    NumberDivision, NumberOperation, NumberRounding, NumericKernel, SignChange, numeric_kernel,
};
use self::ranking_window::RankingFunction;
pub use self::row_constraints::{ConstraintCheck, check_constraints, checked_value};
pub use self::single_value::{SingleValueCall, single_value_call};
pub use self::text_kernel::{TextKernel, text_kernel};
pub use self::value_lifetime::{ValueLifetime, evaluate_nullary_call, value_lifetime};

static SCALAR_DEFINITIONS: LazyLock<HashMap<&'static str, &'static Definition>> = LazyLock::new(|| {
    let tables = [
        arithmetic::DEFINITIONS,
        array::DEFINITIONS,
        comparison::DEFINITIONS,
        conditional::DEFINITIONS,
        datetime::DEFINITIONS,
        json::DEFINITIONS,
        like::DEFINITIONS,
        math::DEFINITIONS,
        pattern::DEFINITIONS,
        series::DEFINITIONS,
        text::DEFINITIONS,
        type_name::DEFINITIONS,
    ];
    tables.into_iter().flatten().map(|definition| (definition.name, definition)).collect()
});

/// Returns the scalar function called `name`, bound to `session`. Names are lower case and without `pg_catalog`.
#[must_use]
pub fn scalar(name: &str, session: &Arc<EvaluationContext>) -> Option<Arc<ScalarUDF>> {
    SCALAR_DEFINITIONS.get(name).map(|definition| UnresolvedFunction::udf(definition, session))
}

/// Builds a call of the scalar function called `name`, as found by [`scalar`]; `None` if there is no such function.
///
/// # Errors
/// The name of an argument cannot be formatted.
pub fn scalar_call(name: &str, session: &Arc<EvaluationContext>, args: Vec<Expr>) -> Result<Option<Expr>> {
    SCALAR_DEFINITIONS.get(name).map(|definition| UnresolvedFunction::call(definition, session, args)).transpose()
}

/// Returns the aggregate function called `name`.
#[must_use]
pub fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    aggregate::by_name(name)
}

/// Returns the window function called `name`.
#[must_use]
pub fn window(name: &str) -> Option<Arc<WindowUDF>> {
    use datafusion::functions_window as w;
    Some(match name {
        "row_number" => RankingFunction::udwf(w::row_number::row_number_udwf(), SqlType::Int8),
        "rank" => RankingFunction::udwf(w::rank::rank_udwf(), SqlType::Int8),
        "dense_rank" => RankingFunction::udwf(w::rank::dense_rank_udwf(), SqlType::Int8),
        "percent_rank" => w::rank::percent_rank_udwf(),
        "cume_dist" => w::cume_dist::cume_dist_udwf(),
        "ntile" => RankingFunction::udwf(w::ntile::ntile_udwf(), SqlType::Int4),
        "lag" => DirectionalFunction::udwf(w::lead_lag::lag_udwf()),
        "lead" => DirectionalFunction::udwf(w::lead_lag::lead_udwf()),
        "first_value" => w::nth_value::first_value_udwf(),
        "last_value" => w::nth_value::last_value_udwf(),
        "nth_value" => DirectionalFunction::udwf(w::nth_value::nth_value_udwf()),
        _ => return None,
    })
}

/// Iterates over the names of all scalar functions, for messages and the catalog.
pub fn scalar_names() -> impl Iterator<Item = &'static str> {
    SCALAR_DEFINITIONS.keys().copied()
}

/// Returns whether the scalar function called `name` is volatile: two calls with the same arguments may differ.
pub fn is_volatile(name: &str) -> bool {
    SCALAR_DEFINITIONS.get(name).is_some_and(|definition| definition.volatility == Volatility::Volatile)
}

/// Returns whether a call can fail for some values of its arguments: a cast from text, or a division whose divisor is
/// not a literal.
fn can_fail(function: &ScalarUDF, args: &[Expr]) -> bool {
    if let Some(cast) = function.inner().downcast_ref::<cast::CastFunction>() {
        return cast.parses_text();
    }
    let divides = function.inner().downcast_ref::<ResolvedFunction>().is_some()
        && matches!(function.name(), "/" | "%" | "mod" | "div" | "ln" | "log" | "sqrt" | "power" | "^");
    divides && !matches!(args.last(), Some(Expr::Literal(..)))
}

/// Returns whether evaluating the expression can fail. CASE expressions and subqueries are not searched: an error
/// within a CASE occurs only in the branch that is taken.
///
/// # Errors
/// None for well-formed expressions.
pub fn may_fail(expr: &Expr) -> Result<bool> {
    let mut found = false;
    expr.apply(|expr| {
        Ok(match expr {
            Expr::Case(_) | Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => TreeNodeRecursion::Jump,
            Expr::ScalarFunction(ScalarFunction { func, args }) if can_fail(func, args) => {
                found = true;
                TreeNodeRecursion::Stop
            }
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// Returns the DataFusion operator of a comparison operator's name.
pub fn comparison_operator(name: &str) -> Option<Operator> {
    Some(match name {
        "=" => Operator::Eq,
        "<>" => Operator::NotEq,
        "<" => Operator::Lt,
        "<=" => Operator::LtEq,
        ">" => Operator::Gt,
        ">=" => Operator::GtEq,
        _ => return None,
    })
}

/// Function that builds the comparison key of an expression: the expression that is compared, sorted and grouped in
/// its place.
pub type ComparisonKeyFn = fn(Expr, &Arc<EvaluationContext>) -> Result<Expr>;

/// Returns the comparison key of a type whose values do not compare by their bytes: an interval's length, an
/// order-preserving encoding of jsonb, a `bpchar` without its trailing blanks.
///
/// `None` for a type whose values compare as they are.
pub fn comparison_key(sql_type: &SqlType) -> Option<ComparisonKeyFn> {
    match sql_type {
        SqlType::Interval => Some(|expr, session| {
            call_internal(&comparison::INTERVAL_SPAN, vec![SqlType::Interval], vec![expr], session)
        }),
        SqlType::Jsonb => {
            Some(|expr, session| call_internal(&comparison::JSONB_KEY, vec![SqlType::Jsonb], vec![expr], session))
        }
        // Trailing blanks are insignificant, however many there are.
        SqlType::Char(None) => {
            Some(|expr, session| lower_cast(expr, &SqlType::Char(None), &SqlType::Text, CastKind::Explicit, session))
        }
        _ => None,
    }
}

/// Builds GREATEST (if `longest`) or LEAST of intervals.
pub fn extreme_interval(longest: bool, args: Vec<Expr>, session: &Arc<EvaluationContext>) -> Result<Expr> {
    let definition = if longest { &comparison::GREATEST_INTERVAL } else { &comparison::LEAST_INTERVAL };
    call_internal(definition, vec![SqlType::Interval; args.len()], args, session)
}

/// Builds `interval = ANY (array)`.
pub fn any_interval(array: Expr, value: Expr, session: &Arc<EvaluationContext>) -> Result<Expr> {
    let takes = vec![SqlType::Array(Box::new(SqlType::Interval)), SqlType::Interval];
    call_internal(&comparison::ANY_EQUAL_INTERVAL, takes, vec![array, value], session)
}

/// Builds a COALESCE that evaluates all arguments; all of them have the type `common`.
pub fn first_not_null(args: Vec<Expr>, common: &SqlType, session: &Arc<EvaluationContext>) -> Result<Expr> {
    call_internal(&conditional::FIRST_NOT_NULL, vec![common.clone(); args.len()], args, session)
}

/// Builds a boolean CASE that evaluates all arguments; `args` are pairs of a condition and its result, then the ELSE
/// result.
pub fn first_true(args: Vec<Expr>, session: &Arc<EvaluationContext>) -> Result<Expr> {
    call_internal(&conditional::FIRST_TRUE, vec![SqlType::Bool; args.len()], args, session)
}

fn call_internal(
    definition: &'static Definition,
    takes: Vec<SqlType>,
    args: Vec<Expr>,
    session: &Arc<EvaluationContext>,
) -> Result<Expr> {
    let function = ResolvedFunction::udf(definition, 0, takes, session).map_err(external)?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

/// Returns whether the aggregate called `name` depends on the order of its input rows.
pub fn is_order_sensitive(name: &str) -> bool {
    aggregate::shows_order(name)
}

/// Returns the FILTER form of `function`: its last argument, appended after those of `function`, is the filter
/// condition.
pub fn with_filter_argument(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    aggregate::Filtered::udaf(function)
}

/// Returns the `string_agg` whose separator is not a constant.
pub fn string_agg_varying() -> Arc<AggregateUDF> {
    aggregate::string_agg_varying()
}

/// Builds a LIKE of the operator called `operator` (`~~`, `~~*`, `!~~`, `!~~*`); both arguments are text, of any text
/// type.
pub fn like(operator: &'static str, args: Vec<Expr>, session: &Arc<EvaluationContext>) -> Result<Expr> {
    if let Some(known) = lower_constant_like(operator, &args) {
        return Ok(known);
    }
    let takes = vec![SqlType::Text, SqlType::Text];
    let function = ResolvedFunction::udf(SCALAR_DEFINITIONS[operator], 0, takes, session).map_err(external)?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

/// Returns the definition of unary minus.
pub fn negate_definition() -> &'static Definition {
    SCALAR_DEFINITIONS[NEGATE]
}
