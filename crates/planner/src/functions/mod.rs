//! PostgreSQL's functions by name. The system functions of `pg_catalog` that read the catalog or the session live in `system`.
//!
//! A function is a [`definition::Definition`]: a table of overloads with their bodies. [`scalar`], [`aggregate`] and [`window`] find them by
//! name; what they do not find does not exist, so that no function of DataFusion's answers with other semantics.

mod aggregate;
mod arithmetic;
mod array;
pub(crate) mod call;
pub(crate) mod cast;
mod comparison;
mod conditional;
mod datetime;
pub(crate) mod definition;
pub(crate) mod function;
mod json;
mod math;
mod pattern;
mod series;
mod text;
mod type_name;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, Operator, ScalarUDF, WindowUDF};
use types::SqlType;

pub(crate) use self::array::ANY_EQUAL;
pub(crate) use self::datetime::Field;
use self::definition::Definition;
pub(crate) use self::definition::missing_operator;
pub(crate) use self::function::external;
use self::function::{NamedFunction, ResolvedFunction};
use crate::semantics::Session;

static BY_NAME: LazyLock<HashMap<&'static str, &'static Definition>> = LazyLock::new(|| {
    let tables = [
        arithmetic::DEFINITIONS,
        array::DEFINITIONS,
        comparison::DEFINITIONS,
        conditional::DEFINITIONS,
        datetime::DEFINITIONS,
        json::DEFINITIONS,
        math::DEFINITIONS,
        pattern::DEFINITIONS,
        series::DEFINITIONS,
        text::DEFINITIONS,
        type_name::DEFINITIONS,
    ];
    tables.into_iter().flatten().map(|definition| (definition.name, definition)).collect()
});

/// The scalar function of that name, as `session` runs it. Names are lower case and without `pg_catalog`.
#[must_use]
pub fn scalar(name: &str, session: &Arc<Session>) -> Option<Arc<ScalarUDF>> {
    BY_NAME.get(name).map(|definition| NamedFunction::udf(definition, session))
}

/// The aggregate of that name.
#[must_use]
pub fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    aggregate::by_name(name)
}

/// The window function of that name.
#[must_use]
pub fn window(name: &str) -> Option<Arc<WindowUDF>> {
    use datafusion::functions_window as w;
    Some(match name {
        "row_number" => w::row_number::row_number_udwf(),
        "rank" => w::rank::rank_udwf(),
        "dense_rank" => w::rank::dense_rank_udwf(),
        "percent_rank" => w::rank::percent_rank_udwf(),
        "cume_dist" => w::cume_dist::cume_dist_udwf(),
        "ntile" => w::ntile::ntile_udwf(),
        "lag" => w::lead_lag::lag_udwf(),
        "lead" => w::lead_lag::lead_udwf(),
        "first_value" => w::nth_value::first_value_udwf(),
        "last_value" => w::nth_value::last_value_udwf(),
        "nth_value" => w::nth_value::nth_value_udwf(),
        _ => return None,
    })
}

/// The names of all scalar functions, for messages and the catalog.
pub fn scalar_names() -> impl Iterator<Item = &'static str> {
    BY_NAME.keys().copied()
}

/// The comparison an operator's name stands for.
pub(crate) fn comparison_operator(name: &str) -> Option<Operator> {
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

/// What intervals are compared by: their span in microseconds.
pub(crate) fn interval_span(expr: Expr, session: &Arc<Session>) -> Result<Expr> {
    let function =
        ResolvedFunction::udf(&comparison::INTERVAL_SPAN, 0, vec![SqlType::Interval], session).map_err(external)?;
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expr])))
}

/// Unary minus.
pub(crate) fn negate_definition() -> &'static Definition {
    BY_NAME["negate"]
}
