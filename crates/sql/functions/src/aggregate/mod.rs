//! Aggregate functions: DataFusion's where they agree with PostgreSQL, own ones where result types or overflow
//! differ.
//!
//! - `sum.rs`, `total.rs`, `groups.rs`, `sliding_total.rs`: `sum` and `avg`,
//! - `variance.rs`, `exact_variance.rs`: variance and standard deviation,
//! - `interval.rs`: aggregates of intervals; `min_max.rs`: `min` and `max`; `bool_agg.rs`: `bool_and` and `bool_or`,
//! - `ordered.rs`, `array_agg.rs`, `string_agg.rs`, `json.rs`, `size_checked.rs`: aggregates that depend on the order of their
//!   rows,
//! - `ordered_set.rs`: percentiles and `mode`,
//! - `distinct.rs`, `filtered.rs`: DISTINCT and FILTER for other aggregates.

mod array_agg;
mod bool_agg;
mod distinct;
mod exact_variance;
mod filtered;
mod groups;
mod interval;
mod json;
mod min_max;
mod ordered;
mod ordered_set;
mod size_checked;
mod sliding_total;
mod string_agg;
mod sum;
mod total;
mod variance;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions_aggregate as f;
use datafusion::logical_expr::AggregateUDF;

pub(super) use self::filtered::Filtered;
use self::ordered_set::OrderedSetKind;
use self::sum::TotalKind;
use self::variance::VarianceKind;

/// Aggregate function with its documentation.
pub(super) struct AggregateDefinition {
    pub(super) name: &'static str,
    /// One line of documentation, in PostgreSQL's words where it has the function.
    pub(super) description: &'static str,
    function: Arc<AggregateUDF>,
}

/// All aggregates.
static DEFINITIONS: LazyLock<Vec<AggregateDefinition>> = LazyLock::new(|| {
    let own = |function: AggregateUDF| Arc::new(function);
    let gathered = |plain: Arc<AggregateUDF>| own(AggregateUDF::new_from_impl(ordered::OrderedAggregate::new(plain)));
    let json = |name, is_object, is_jsonb| {
        let form = json::JsonForm { is_object, is_jsonb };
        gathered(own(AggregateUDF::new_from_impl(json::JsonAggregate::new(name, form))))
    };
    let ordered_set = |kind| own(AggregateUDF::new_from_impl(ordered_set::OrderedSet::new(kind)));
    let spread = |name, moment| own(AggregateUDF::new_from_impl(variance::Variance::new(name, moment)));
    let truth =
        |plain: Arc<AggregateUDF>, is_or| own(AggregateUDF::new_from_impl(bool_agg::BoolAggregate::new(plain, is_or)));
    let definitions = [
        ("sum", "sum of the values", own(AggregateUDF::new_from_impl(sum::SumOrAverage::new(TotalKind::Sum)))),
        (
            "avg",
            "the average (arithmetic mean)",
            own(AggregateUDF::new_from_impl(sum::SumOrAverage::new(TotalKind::Average))),
        ),
        ("count", "number of rows, or of values that are not null", f::count::count_udaf()),
        ("min", "minimum value", own(AggregateUDF::new_from_impl(min_max::MinMax::new(f::min_max::min_udaf(), false)))),
        ("max", "maximum value", own(AggregateUDF::new_from_impl(min_max::MinMax::new(f::min_max::max_udaf(), true)))),
        ("stddev", "sample standard deviation", spread("stddev", VarianceKind::DeviationSample)),
        ("stddev_samp", "sample standard deviation", spread("stddev_samp", VarianceKind::DeviationSample)),
        ("stddev_pop", "population standard deviation", spread("stddev_pop", VarianceKind::DeviationPopulation)),
        ("variance", "sample variance", spread("variance", VarianceKind::VarianceSample)),
        ("var_samp", "sample variance", spread("var_samp", VarianceKind::VarianceSample)),
        ("var_pop", "population variance", spread("var_pop", VarianceKind::VariancePopulation)),
        ("bool_and", "boolean and aggregate", truth(f::bool_and_or::bool_and_udaf(), false)),
        ("bool_or", "boolean or aggregate", truth(f::bool_and_or::bool_or_udaf(), true)),
        ("every", "boolean and aggregate", truth(f::bool_and_or::bool_and_udaf(), false)),
        ("bit_and", "bitwise and aggregate", f::bit_and_or_xor::bit_and_udaf()),
        ("bit_or", "bitwise or aggregate", f::bit_and_or_xor::bit_or_udaf()),
        ("bit_xor", "bitwise exclusive or aggregate", f::bit_and_or_xor::bit_xor_udaf()),
        (
            "array_agg",
            "concatenate values into an array",
            gathered(own(AggregateUDF::new_from_impl(array_agg::ArrayAgg::new(f::array_agg::array_agg_udaf())))),
        ),
        ("string_agg", "concatenate values into a string", gathered(f::string_agg::string_agg_udaf())),
        ("corr", "correlation coefficient", f::correlation::corr_udaf()),
        ("covar_pop", "population covariance", f::covariance::covar_pop_udaf()),
        ("covar_samp", "sample covariance", f::covariance::covar_samp_udaf()),
        ("regr_avgx", "average of the independent variable", f::regr::regr_avgx_udaf()),
        ("regr_avgy", "average of the dependent variable", f::regr::regr_avgy_udaf()),
        ("regr_count", "number of rows in which both values are not null", f::regr::regr_count_udaf()),
        ("regr_intercept", "y-intercept of the least-squares-fit line", f::regr::regr_intercept_udaf()),
        ("regr_r2", "square of the correlation coefficient", f::regr::regr_r2_udaf()),
        ("regr_slope", "slope of the least-squares-fit line", f::regr::regr_slope_udaf()),
        ("regr_sxx", "sum of squares of the independent variable", f::regr::regr_sxx_udaf()),
        ("regr_sxy", "sum of products of independent times dependent variable", f::regr::regr_sxy_udaf()),
        ("regr_syy", "sum of squares of the dependent variable", f::regr::regr_syy_udaf()),
        ("percentile_cont", "continuous distribution percentile", ordered_set(OrderedSetKind::PercentileContinuous)),
        ("percentile_disc", "discrete percentile", ordered_set(OrderedSetKind::PercentileDiscrete)),
        ("mode", "most common value", ordered_set(OrderedSetKind::Mode)),
        ("grouping", "which grouping columns are not part of the grouping set", f::grouping::grouping_udaf()),
        ("json_agg", "aggregate values into a JSON array", json("json_agg", false, false)),
        ("jsonb_agg", "aggregate values into a JSON array", json("jsonb_agg", false, true)),
        ("json_object_agg", "aggregate keys and values into a JSON object", json("json_object_agg", true, false)),
        ("jsonb_object_agg", "aggregate keys and values into a JSON object", json("jsonb_object_agg", true, true)),
        ("approx_distinct", "approximate number of distinct values", f::approx_distinct::approx_distinct_udaf()),
    ];
    let definition = |(name, description, function)| AggregateDefinition { name, description, function };
    definitions.into_iter().map(definition).collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static AggregateDefinition>> =
    LazyLock::new(|| DEFINITIONS.iter().map(|definition| (definition.name, definition)).collect());

static STRING_AGG_VARYING: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let plain = AggregateUDF::new_from_impl(string_agg::StringAggVarying::new(f::string_agg::string_agg_udaf()));
    Arc::new(AggregateUDF::new_from_impl(ordered::OrderedAggregate::new(Arc::new(plain))))
});

/// Returns the aggregate called `name`.
pub(super) fn by_name(name: &str) -> Option<Arc<AggregateUDF>> {
    BY_NAME.get(name).map(|definition| Arc::clone(&definition.function))
}

/// Iterates over all aggregates, by topic.
pub(super) fn definitions() -> impl Iterator<Item = &'static AggregateDefinition> {
    DEFINITIONS.iter()
}

/// Returns whether an aggregate depends on the order of its rows.
pub(super) fn shows_order(function: &AggregateUDF) -> bool {
    function.inner().downcast_ref::<ordered::OrderedAggregate>().is_some()
}

/// Returns the `string_agg` whose separator is not a constant.
pub(super) fn string_agg_varying() -> Arc<AggregateUDF> {
    Arc::clone(&STRING_AGG_VARYING)
}
