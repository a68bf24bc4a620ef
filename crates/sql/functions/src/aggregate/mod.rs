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
use self::sum::TotalKind;
use self::variance::VarianceKind;

static BY_NAME: LazyLock<HashMap<&'static str, Arc<AggregateUDF>>> = LazyLock::new(|| {
    let own = |function: AggregateUDF| Arc::new(function);
    let gathered = |plain: Arc<AggregateUDF>| own(AggregateUDF::new_from_impl(ordered::OrderedAggregate::new(plain)));
    let json = |name| gathered(own(AggregateUDF::new_from_impl(json::JsonAggregate::new(name))));
    let spread = |name, moment| own(AggregateUDF::new_from_impl(variance::Variance::new(name, moment)));
    let truth = |plain: Arc<AggregateUDF>| own(AggregateUDF::new_from_impl(bool_agg::BoolAggregate::new(plain)));
    HashMap::from([
        ("sum", own(AggregateUDF::new_from_impl(sum::SumOrAverage::new(TotalKind::Sum)))),
        ("avg", own(AggregateUDF::new_from_impl(sum::SumOrAverage::new(TotalKind::Average)))),
        ("count", f::count::count_udaf()),
        ("min", own(AggregateUDF::new_from_impl(min_max::MinMax::new(f::min_max::min_udaf())))),
        ("max", own(AggregateUDF::new_from_impl(min_max::MinMax::new(f::min_max::max_udaf())))),
        ("stddev", spread("stddev", VarianceKind::DeviationSample)),
        ("stddev_samp", spread("stddev_samp", VarianceKind::DeviationSample)),
        ("stddev_pop", spread("stddev_pop", VarianceKind::DeviationPopulation)),
        ("variance", spread("variance", VarianceKind::VarianceSample)),
        ("var_samp", spread("var_samp", VarianceKind::VarianceSample)),
        ("var_pop", spread("var_pop", VarianceKind::VariancePopulation)),
        ("bool_and", truth(f::bool_and_or::bool_and_udaf())),
        ("bool_or", truth(f::bool_and_or::bool_or_udaf())),
        ("every", truth(f::bool_and_or::bool_and_udaf())),
        ("bit_and", f::bit_and_or_xor::bit_and_udaf()),
        ("bit_or", f::bit_and_or_xor::bit_or_udaf()),
        ("bit_xor", f::bit_and_or_xor::bit_xor_udaf()),
        (
            "array_agg",
            gathered(own(AggregateUDF::new_from_impl(array_agg::ArrayAgg::new(f::array_agg::array_agg_udaf())))),
        ),
        ("string_agg", gathered(f::string_agg::string_agg_udaf())),
        ("corr", f::correlation::corr_udaf()),
        ("covar_pop", f::covariance::covar_pop_udaf()),
        ("covar_samp", f::covariance::covar_samp_udaf()),
        ("regr_avgx", f::regr::regr_avgx_udaf()),
        ("regr_avgy", f::regr::regr_avgy_udaf()),
        ("regr_count", f::regr::regr_count_udaf()),
        ("regr_intercept", f::regr::regr_intercept_udaf()),
        ("regr_r2", f::regr::regr_r2_udaf()),
        ("regr_slope", f::regr::regr_slope_udaf()),
        ("regr_sxx", f::regr::regr_sxx_udaf()),
        ("regr_sxy", f::regr::regr_sxy_udaf()),
        ("regr_syy", f::regr::regr_syy_udaf()),
        ("percentile_cont", own(AggregateUDF::new_from_impl(ordered_set::OrderedSet::new("percentile_cont")))),
        ("percentile_disc", own(AggregateUDF::new_from_impl(ordered_set::OrderedSet::new("percentile_disc")))),
        ("mode", own(AggregateUDF::new_from_impl(ordered_set::OrderedSet::new("mode")))),
        ("grouping", f::grouping::grouping_udaf()),
        ("json_agg", json("json_agg")),
        ("jsonb_agg", json("jsonb_agg")),
        ("json_object_agg", json("json_object_agg")),
        ("jsonb_object_agg", json("jsonb_object_agg")),
        ("approx_distinct", f::approx_distinct::approx_distinct_udaf()),
    ])
});

static STRING_AGG_VARYING: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let plain = AggregateUDF::new_from_impl(string_agg::StringAggVarying::new(f::string_agg::string_agg_udaf()));
    Arc::new(AggregateUDF::new_from_impl(ordered::OrderedAggregate::new(Arc::new(plain))))
});

/// Returns the aggregate called `name`.
pub(super) fn by_name(name: &str) -> Option<Arc<AggregateUDF>> {
    BY_NAME.get(name).cloned()
}

/// Returns whether an aggregate depends on the order of its rows.
pub(super) fn shows_order(name: &str) -> bool {
    ordered::ORDER_SENSITIVE_NAMES.contains(&name)
}

/// Returns the `string_agg` whose separator is not a constant.
pub(super) fn string_agg_varying() -> Arc<AggregateUDF> {
    Arc::clone(&STRING_AGG_VARYING)
}
