//! PostgreSQL's functions, operators, casts and aggregates, and the internal functions that only plans call.
//!
//! This crate never reads the catalog; functions that do are defined by `system_catalog`. There is no fallback: a
//! name that [`scalar`], [`aggregate`] and [`window`] do not find is not a function, because DataFusion's function of
//! that name would have other semantics.
//!
//! Start at `definition.rs`: a function is a [`Definition`], a table of overloads with their bodies. `scalar_udf.rs`
//! makes DataFusion functions of it. Then:
//!
//! - arguments and types: `type_rules.rs` (implicit casts, common types), `cast/`, `call.rs` (access to arguments and
//!   results),
//! - functions by kind of value: `arithmetic/`, `math.rs`, `text/`, `regular_expression.rs`, `like.rs`, `datetime/`,
//!   `json/`, `array.rs`, `comparison.rs`, `conditional.rs`,
//! - `aggregate/`; window functions in `ranking_window.rs` and `lag_lead_nth_value.rs`; `datafusion_function.rs`
//!   (DataFusion's functions under shorter column names),
//! - internal functions: `lazy_case.rs` (CASE of conditions), `hide_grouping_key.rs`,
//!   `key_set_membership.rs` with `semi_join_key_set.rs`, `row_constraints.rs` (NOT NULL and CHECK),
//!   `series/` (lists of `generate_series`),
//! - other forms of a call: `function_codec.rs` (serializable, for other processes), `single_value_calls.rs` (single values, for
//!   the primary-key fast path), `date_kernel.rs`, `numeric_kernel.rs` and `text_kernel.rs` (kernels of the vectorized
//!   engine),
//! - `special_resolution.rs` (functions whose calls the binder resolves by rules of their own),
//! - `documentation.rs` (signatures and descriptions for readers), `fallibility.rs` (whether a call can fail),
//!   `value_lifetime.rs` (how long a call's value stays valid), `constant_folding_limit.rs` (size limit of constant
//!   folding), `error.rs` (DataFusion's errors in PostgreSQL's words).

mod aggregate;
mod arithmetic;
mod array;
mod array_value_bytes;
mod call;
pub mod cast;
mod catalog_entry;
mod column_name;
mod comparison;
mod conditional;
mod constant_folding_limit;
mod datafusion_function;
mod date_kernel;
mod datetime;
mod definition;
mod documentation;
pub mod error;
mod fallibility;
mod field_sql_type;
pub mod function_codec;
mod hide_grouping_key;
mod json;
mod key_set_membership;
mod lag_lead_nth_value;
mod lazy_case;
mod like;
mod math;
mod numeric_kernel;
mod pg_typeof;
mod ranking_window;
mod regular_expression;
mod row_constraints;
mod scalar_udf;
mod semi_join_key_set;
pub mod series;
mod single_value_calls;
mod special_resolution;
mod text;
mod text_array_builder;
mod text_kernel;
pub mod type_rules;
mod value_lifetime;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::common::Result;
use datafusion::functions_window as w;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, Volatility, WindowUDF};
use session_context::EvaluationContext;
use types::SqlType;

pub use self::array::ANY_EQUAL;
use self::cast::{CastKind, lower_cast};
pub use self::catalog_entry::{CatalogEntry, CatalogFunction, FunctionKind, catalog_entry, catalog_functions};
pub use self::conditional::{is_first_not_null, is_first_true};
pub use self::constant_folding_limit::with_folding_limit;
pub use self::datafusion_function::{DataFusionFunction, is_coalesce};
pub use self::date_kernel::{ExtractKernel, IntervalAdditionKernel, extract_kernel, interval_addition_kernel};
pub use self::datetime::extract_scale;
pub use self::definition::{Body, Definition, NEGATE, missing_function, missing_operator};
pub use self::documentation::{
    DocumentedSignature, FunctionDocumentation, catalog_signature, description, documentation, sample_functions,
};
pub use self::fallibility::{
    Fallibility, call_fallibility, fallibility, fallible_parts, may_fail, may_fail_by_row, surely_evaluated_parts,
};
pub use self::field_sql_type::field_type;
pub use self::hide_grouping_key::{GROUPING_KEY, VOLATILE_NULL, hides_key};
pub use self::key_set_membership::{HasKey, tested_keys};
use self::lag_lead_nth_value::DirectionalFunction;
pub use self::lag_lead_nth_value::is_reversed;
pub use self::lazy_case::{LazyPurpose, as_lazy_condition, branch_condition, lazy_condition, planned_lazy_case};
pub use self::like::like_operator;
pub(crate) use self::like::lower_constant_like;
pub use self::numeric_kernel::{
    NumberDivision, NumberOperation, NumberRounding, NumericKernel, SignChange, numeric_kernel,
};
use self::ranking_window::RankingFunction;
pub use self::row_constraints::{ConstraintCheck, check_constraints, checked_value};
pub use self::scalar_udf::{ResolvedFunction, UnresolvedFunction, external};
pub use self::semi_join_key_set::{KEYS_MAX, KeySet};
pub use self::single_value_calls::{SingleValueCall, single_value_call};
pub use self::special_resolution::{SpecialCall, special_call};
pub use self::text_kernel::{TextKernel, text_kernel};
pub use self::value_lifetime::{ValueLifetime, evaluate_nullary_call, value_lifetime};

/// All scalar functions and operators, by topic.
static SCALAR_TOPICS: [(&str, &[Definition]); 12] = [
    ("Arithmetic and concatenation", arithmetic::DEFINITIONS),
    ("Mathematics", math::DEFINITIONS),
    ("Comparison", comparison::DEFINITIONS),
    ("Conditional expressions", conditional::DEFINITIONS),
    ("Text and bytes", text::DEFINITIONS),
    ("LIKE", like::DEFINITIONS),
    ("Regular expressions", regular_expression::DEFINITIONS),
    ("Dates and times", datetime::DEFINITIONS),
    ("JSON", json::DEFINITIONS),
    ("Arrays", array::DEFINITIONS),
    ("Series", series::DEFINITIONS),
    ("Types", pg_typeof::DEFINITIONS),
];

static SCALAR_DEFINITIONS: LazyLock<HashMap<&'static str, &'static Definition>> = LazyLock::new(|| {
    let definitions = SCALAR_TOPICS.iter().flat_map(|(_, definitions)| *definitions);
    definitions.map(|definition| (definition.name, definition)).collect()
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

/// Window function with its documentation.
struct WindowDefinition {
    name: &'static str,
    /// One line of documentation, in PostgreSQL's words.
    description: &'static str,
    /// PostgreSQL's window functions of this name that it implements.
    catalog: &'static [CatalogEntry],
    function: fn() -> Arc<WindowUDF>,
}

const WINDOW_DEFINITIONS: &[WindowDefinition] = &[
    WindowDefinition {
        name: "row_number",
        description: "row number within partition",
        function: || RankingFunction::udwf(w::row_number::row_number_udwf(), SqlType::Int8),
        catalog: &[catalog_entry(3100, "", "int8").called_on_null()],
    },
    WindowDefinition {
        name: "rank",
        description: "integer rank with gaps",
        function: || RankingFunction::udwf(w::rank::rank_udwf(), SqlType::Int8),
        catalog: &[catalog_entry(3101, "", "int8").called_on_null()],
    },
    WindowDefinition {
        name: "dense_rank",
        description: "integer rank without gaps",
        function: || RankingFunction::udwf(w::rank::dense_rank_udwf(), SqlType::Int8),
        catalog: &[catalog_entry(3102, "", "int8").called_on_null()],
    },
    WindowDefinition {
        name: "percent_rank",
        description: "fractional rank within partition",
        function: w::rank::percent_rank_udwf,
        catalog: &[catalog_entry(3103, "", "float8").called_on_null()],
    },
    WindowDefinition {
        name: "cume_dist",
        description: "fractional row number within partition",
        function: w::cume_dist::cume_dist_udwf,
        catalog: &[catalog_entry(3104, "", "float8").called_on_null()],
    },
    WindowDefinition {
        name: "ntile",
        description: "split rows into N groups",
        function: || RankingFunction::udwf(w::ntile::ntile_udwf(), SqlType::Int4),
        catalog: &[catalog_entry(3105, "int4", "int4")],
    },
    WindowDefinition {
        name: "lag",
        description: "fetch a preceding row value",
        catalog: &[
            catalog_entry(3106, "anyelement", "anyelement"),
            catalog_entry(3107, "anyelement,int4", "anyelement"),
            catalog_entry(3108, "anycompatible,int4,anycompatible", "anycompatible"),
        ],
        function: || DirectionalFunction::udwf(w::lead_lag::lag_udwf()),
    },
    WindowDefinition {
        name: "lead",
        description: "fetch a following row value",
        catalog: &[
            catalog_entry(3109, "anyelement", "anyelement"),
            catalog_entry(3110, "anyelement,int4", "anyelement"),
            catalog_entry(3111, "anycompatible,int4,anycompatible", "anycompatible"),
        ],
        function: || DirectionalFunction::udwf(w::lead_lag::lead_udwf()),
    },
    WindowDefinition {
        name: "first_value",
        description: "fetch the first row value",
        function: w::nth_value::first_value_udwf,
        catalog: &[catalog_entry(3112, "anyelement", "anyelement")],
    },
    WindowDefinition {
        name: "last_value",
        description: "fetch the last row value",
        function: w::nth_value::last_value_udwf,
        catalog: &[catalog_entry(3113, "anyelement", "anyelement")],
    },
    WindowDefinition {
        name: "nth_value",
        description: "fetch the Nth row value",
        function: || DirectionalFunction::udwf(w::nth_value::nth_value_udwf()),
        catalog: &[catalog_entry(3114, "anyelement,int4", "anyelement")],
    },
];

/// Returns the window function called `name`.
#[must_use]
pub fn window(name: &str) -> Option<Arc<WindowUDF>> {
    WINDOW_DEFINITIONS.iter().find(|definition| definition.name == name).map(|definition| (definition.function)())
}

/// Iterates over the names of all scalar functions, for messages and the catalog.
pub fn scalar_names() -> impl Iterator<Item = &'static str> {
    SCALAR_DEFINITIONS.keys().copied()
}

/// Returns whether the scalar function called `name` is volatile: two calls with the same arguments may differ.
pub fn is_volatile(name: &str) -> bool {
    SCALAR_DEFINITIONS.get(name).is_some_and(|definition| definition.volatility == Volatility::Volatile)
}

/// Function that builds the comparison key of an expression: the expression that is compared, sorted and grouped in
/// its place.
pub type ComparisonKeyFn = fn(Expr, &Arc<EvaluationContext>) -> Result<Expr>;

/// Returns the comparison key of a type whose values do not compare by their bytes: an interval's length, an
/// order-preserving encoding of jsonb, a `bpchar` without its trailing blanks.
///
/// `None` for a type whose values compare as they are.
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its comparison is known")]
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
        SqlType::Char(Some(_))
        | SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Array(_)
        | SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => None,
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

/// Returns whether an aggregate depends on the order of its input rows.
pub fn is_order_sensitive(function: &AggregateUDF) -> bool {
    aggregate::shows_order(function)
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
