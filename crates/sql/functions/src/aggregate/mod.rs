//! Aggregate functions: DataFusion's where they agree with PostgreSQL, own ones where result types or overflow
//! differ.
//!
//! - `sum_avg.rs`, `running_total.rs`, `sum_avg_groups.rs`, `sliding_total.rs`: `sum` and `avg`,
//! - `variance.rs`, `exact_variance.rs`: variance and standard deviation,
//! - `interval.rs`: aggregates of intervals; `min_max.rs`: `min` and `max`; `bool_agg.rs`: `bool_and` and `bool_or`,
//! - `ordered.rs`, `array_agg.rs`, `string_agg.rs`, `json.rs`, `size_checked.rs`: aggregates that depend on the order
//!   of their rows,
//! - `ordered_set.rs`: percentiles and `mode`,
//! - `distinct.rs`, `filtered.rs`: DISTINCT and FILTER for other aggregates.

mod array_agg;
mod bool_agg;
mod distinct;
mod exact_variance;
mod filtered;
mod interval;
mod json;
mod min_max;
mod ordered;
mod ordered_set;
mod running_total;
mod size_checked;
mod sliding_total;
mod string_agg;
mod sum_avg;
mod sum_avg_groups;
mod variance;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions_aggregate as f;
use datafusion::logical_expr::{AggregateUDF, AggregateUDFImpl};

pub(super) use self::filtered::Filtered;
use self::ordered_set::OrderedSetKind;
use self::sum_avg::TotalKind;
use self::variance::VarianceKind;
use crate::catalog_entry::{CatalogEntry, catalog_entry};

/// Aggregate function with its documentation.
pub(super) struct AggregateDefinition {
    pub(super) name: &'static str,
    /// One line of documentation, in PostgreSQL's words where it has the function.
    pub(super) description: &'static str,
    /// PostgreSQL's aggregates of this name that it implements.
    pub(super) catalog: &'static [CatalogEntry],
    function: fn() -> Arc<AggregateUDF>,
}

impl AggregateDefinition {
    /// Adds PostgreSQL's aggregates of this name that it implements.
    const fn in_catalog(mut self, catalog: &'static [CatalogEntry]) -> Self {
        self.catalog = catalog;
        self
    }
}

/// All aggregates, by topic.
const DEFINITIONS: &[AggregateDefinition] =
    &[
        aggregate("sum", "sum of the values", || own(sum_avg::SumOrAverage::new(TotalKind::Sum))).in_catalog(&[
            catalog_entry(2107, "int8", "numeric"),
            catalog_entry(2108, "int4", "int8"),
            catalog_entry(2109, "int2", "int8"),
            catalog_entry(2110, "float4", "float4"),
            catalog_entry(2111, "float8", "float8"),
            catalog_entry(2113, "interval", "interval"),
            catalog_entry(2114, "numeric", "numeric"),
        ]),
        aggregate("avg", "the average (arithmetic mean)", || own(sum_avg::SumOrAverage::new(TotalKind::Average)))
            .in_catalog(&[
                catalog_entry(2100, "int8", "numeric"),
                catalog_entry(2101, "int4", "numeric"),
                catalog_entry(2102, "int2", "numeric"),
                catalog_entry(2103, "numeric", "numeric"),
                catalog_entry(2104, "float4", "float8"),
                catalog_entry(2105, "float8", "float8"),
                catalog_entry(2106, "interval", "interval"),
            ]),
        aggregate("count", "number of rows, or of values that are not null", f::count::count_udaf)
            .in_catalog(&[catalog_entry(2147, "any", "int8"), catalog_entry(2803, "", "int8")]),
        aggregate("min", "minimum value", || own(min_max::MinMax::new(f::min_max::min_udaf(), false))).in_catalog(&[
            catalog_entry(2051, "anyarray", "anyarray"),
            catalog_entry(2131, "int8", "int8"),
            catalog_entry(2132, "int4", "int4"),
            catalog_entry(2133, "int2", "int2"),
            catalog_entry(2134, "oid", "oid"),
            catalog_entry(2135, "float4", "float4"),
            catalog_entry(2136, "float8", "float8"),
            catalog_entry(2138, "date", "date"),
            catalog_entry(2139, "time", "time"),
            catalog_entry(2142, "timestamp", "timestamp"),
            catalog_entry(2143, "timestamptz", "timestamptz"),
            catalog_entry(2144, "interval", "interval"),
            catalog_entry(2145, "text", "text"),
            catalog_entry(2146, "numeric", "numeric"),
            catalog_entry(2245, "bpchar", "bpchar"),
        ]),
        aggregate("max", "maximum value", || own(min_max::MinMax::new(f::min_max::max_udaf(), true))).in_catalog(&[
            catalog_entry(2050, "anyarray", "anyarray"),
            catalog_entry(2115, "int8", "int8"),
            catalog_entry(2116, "int4", "int4"),
            catalog_entry(2117, "int2", "int2"),
            catalog_entry(2118, "oid", "oid"),
            catalog_entry(2119, "float4", "float4"),
            catalog_entry(2120, "float8", "float8"),
            catalog_entry(2122, "date", "date"),
            catalog_entry(2123, "time", "time"),
            catalog_entry(2126, "timestamp", "timestamp"),
            catalog_entry(2127, "timestamptz", "timestamptz"),
            catalog_entry(2128, "interval", "interval"),
            catalog_entry(2129, "text", "text"),
            catalog_entry(2130, "numeric", "numeric"),
            catalog_entry(2244, "bpchar", "bpchar"),
        ]),
        aggregate("stddev", "sample standard deviation", || spread("stddev", VarianceKind::DeviationSample))
            .in_catalog(&[
                catalog_entry(2154, "int8", "numeric"),
                catalog_entry(2155, "int4", "numeric"),
                catalog_entry(2156, "int2", "numeric"),
                catalog_entry(2157, "float4", "float8"),
                catalog_entry(2158, "float8", "float8"),
                catalog_entry(2159, "numeric", "numeric"),
            ]),
        aggregate("stddev_samp", "sample standard deviation", || spread("stddev_samp", VarianceKind::DeviationSample))
            .in_catalog(&[
                catalog_entry(2712, "int8", "numeric"),
                catalog_entry(2713, "int4", "numeric"),
                catalog_entry(2714, "int2", "numeric"),
                catalog_entry(2715, "float4", "float8"),
                catalog_entry(2716, "float8", "float8"),
                catalog_entry(2717, "numeric", "numeric"),
            ]),
        aggregate("stddev_pop", "population standard deviation", || {
            spread("stddev_pop", VarianceKind::DeviationPopulation)
        })
        .in_catalog(&[
            catalog_entry(2724, "int8", "numeric"),
            catalog_entry(2725, "int4", "numeric"),
            catalog_entry(2726, "int2", "numeric"),
            catalog_entry(2727, "float4", "float8"),
            catalog_entry(2728, "float8", "float8"),
            catalog_entry(2729, "numeric", "numeric"),
        ]),
        aggregate("variance", "sample variance", || spread("variance", VarianceKind::VarianceSample)).in_catalog(&[
            catalog_entry(2148, "int8", "numeric"),
            catalog_entry(2149, "int4", "numeric"),
            catalog_entry(2150, "int2", "numeric"),
            catalog_entry(2151, "float4", "float8"),
            catalog_entry(2152, "float8", "float8"),
            catalog_entry(2153, "numeric", "numeric"),
        ]),
        aggregate("var_samp", "sample variance", || spread("var_samp", VarianceKind::VarianceSample)).in_catalog(&[
            catalog_entry(2641, "int8", "numeric"),
            catalog_entry(2642, "int4", "numeric"),
            catalog_entry(2643, "int2", "numeric"),
            catalog_entry(2644, "float4", "float8"),
            catalog_entry(2645, "float8", "float8"),
            catalog_entry(2646, "numeric", "numeric"),
        ]),
        aggregate("var_pop", "population variance", || spread("var_pop", VarianceKind::VariancePopulation)).in_catalog(
            &[
                catalog_entry(2718, "int8", "numeric"),
                catalog_entry(2719, "int4", "numeric"),
                catalog_entry(2720, "int2", "numeric"),
                catalog_entry(2721, "float4", "float8"),
                catalog_entry(2722, "float8", "float8"),
                catalog_entry(2723, "numeric", "numeric"),
            ],
        ),
        aggregate("bool_and", "boolean and aggregate", || {
            own(bool_agg::BoolAggregate::new(f::bool_and_or::bool_and_udaf(), false))
        })
        .in_catalog(&[catalog_entry(2517, "bool", "bool")]),
        aggregate("bool_or", "boolean or aggregate", || {
            own(bool_agg::BoolAggregate::new(f::bool_and_or::bool_or_udaf(), true))
        })
        .in_catalog(&[catalog_entry(2518, "bool", "bool")]),
        aggregate("every", "boolean and aggregate", || {
            own(bool_agg::BoolAggregate::new(f::bool_and_or::bool_and_udaf(), false))
        })
        .in_catalog(&[catalog_entry(2519, "bool", "bool")]),
        aggregate("bit_and", "bitwise and aggregate", f::bit_and_or_xor::bit_and_udaf).in_catalog(&[
            catalog_entry(2236, "int2", "int2"),
            catalog_entry(2238, "int4", "int4"),
            catalog_entry(2240, "int8", "int8"),
        ]),
        aggregate("bit_or", "bitwise or aggregate", f::bit_and_or_xor::bit_or_udaf).in_catalog(&[
            catalog_entry(2237, "int2", "int2"),
            catalog_entry(2239, "int4", "int4"),
            catalog_entry(2241, "int8", "int8"),
        ]),
        aggregate("bit_xor", "bitwise exclusive or aggregate", f::bit_and_or_xor::bit_xor_udaf).in_catalog(&[
            catalog_entry(6164, "int2", "int2"),
            catalog_entry(6165, "int4", "int4"),
            catalog_entry(6166, "int8", "int8"),
        ]),
        aggregate("array_agg", "concatenate values into an array", || {
            ordered(own(array_agg::ArrayAgg::new(f::array_agg::array_agg_udaf())))
        })
        .in_catalog(&[catalog_entry(2335, "anynonarray", "anyarray"), catalog_entry(4053, "anyarray", "anyarray")]),
        aggregate("string_agg", "concatenate values into a string", || ordered(f::string_agg::string_agg_udaf()))
            .in_catalog(&[catalog_entry(3538, "text,text", "text"), catalog_entry(3545, "bytea,bytea", "bytea")]),
        aggregate("corr", "correlation coefficient", f::correlation::corr_udaf).in_catalog(&[catalog_entry(
            2829,
            "float8,float8",
            "float8",
        )]),
        aggregate("covar_pop", "population covariance", f::covariance::covar_pop_udaf).in_catalog(&[catalog_entry(
            2827,
            "float8,float8",
            "float8",
        )]),
        aggregate("covar_samp", "sample covariance", f::covariance::covar_samp_udaf).in_catalog(&[catalog_entry(
            2828,
            "float8,float8",
            "float8",
        )]),
        aggregate("regr_avgx", "average of the independent variable", f::regr::regr_avgx_udaf)
            .in_catalog(&[catalog_entry(2822, "float8,float8", "float8")]),
        aggregate("regr_avgy", "average of the dependent variable", f::regr::regr_avgy_udaf)
            .in_catalog(&[catalog_entry(2823, "float8,float8", "float8")]),
        aggregate("regr_count", "number of rows in which both values are not null", f::regr::regr_count_udaf)
            .in_catalog(&[catalog_entry(2818, "float8,float8", "int8")]),
        aggregate("regr_intercept", "y-intercept of the least-squares-fit line", f::regr::regr_intercept_udaf)
            .in_catalog(&[catalog_entry(2826, "float8,float8", "float8")]),
        aggregate("regr_r2", "square of the correlation coefficient", f::regr::regr_r2_udaf)
            .in_catalog(&[catalog_entry(2824, "float8,float8", "float8")]),
        aggregate("regr_slope", "slope of the least-squares-fit line", f::regr::regr_slope_udaf)
            .in_catalog(&[catalog_entry(2825, "float8,float8", "float8")]),
        aggregate("regr_sxx", "sum of squares of the independent variable", f::regr::regr_sxx_udaf)
            .in_catalog(&[catalog_entry(2819, "float8,float8", "float8")]),
        aggregate("regr_sxy", "sum of products of independent times dependent variable", f::regr::regr_sxy_udaf)
            .in_catalog(&[catalog_entry(2821, "float8,float8", "float8")]),
        aggregate("regr_syy", "sum of squares of the dependent variable", f::regr::regr_syy_udaf)
            .in_catalog(&[catalog_entry(2820, "float8,float8", "float8")]),
        aggregate("percentile_cont", "continuous distribution percentile", || {
            own(ordered_set::OrderedSet::new(OrderedSetKind::PercentileContinuous))
        })
        .in_catalog(&[
            catalog_entry(3974, "float8,float8", "float8"),
            catalog_entry(3976, "float8,interval", "interval"),
            catalog_entry(3980, "_float8,float8", "_float8"),
            catalog_entry(3982, "_float8,interval", "_interval"),
        ]),
        aggregate("percentile_disc", "discrete percentile", || {
            own(ordered_set::OrderedSet::new(OrderedSetKind::PercentileDiscrete))
        })
        .in_catalog(&[
            catalog_entry(3972, "float8,anyelement", "anyelement"),
            catalog_entry(3978, "_float8,anyelement", "anyarray"),
        ]),
        aggregate("mode", "most common value", || own(ordered_set::OrderedSet::new(OrderedSetKind::Mode)))
            .in_catalog(&[catalog_entry(3984, "anyelement", "anyelement")]),
        aggregate("grouping", "which grouping columns are not part of the grouping set", f::grouping::grouping_udaf),
        aggregate("json_agg", "aggregate values into a JSON array", || {
            json("json_agg", json::JsonForm { is_object: false, is_jsonb: false })
        })
        .in_catalog(&[catalog_entry(3175, "anyelement", "json").stable()]),
        aggregate("jsonb_agg", "aggregate values into a JSON array", || {
            json("jsonb_agg", json::JsonForm { is_object: false, is_jsonb: true })
        })
        .in_catalog(&[catalog_entry(3267, "anyelement", "jsonb").stable()]),
        aggregate("json_object_agg", "aggregate keys and values into a JSON object", || {
            json("json_object_agg", json::JsonForm { is_object: true, is_jsonb: false })
        })
        .in_catalog(&[catalog_entry(3197, "any,any", "json").stable()]),
        aggregate("jsonb_object_agg", "aggregate keys and values into a JSON object", || {
            json("jsonb_object_agg", json::JsonForm { is_object: true, is_jsonb: true })
        })
        .in_catalog(&[catalog_entry(3270, "any,any", "jsonb")]),
        aggregate("approx_distinct", "approximate number of distinct values", f::approx_distinct::approx_distinct_udaf),
    ];

/// Declares an aggregate by name, description and constructor.
const fn aggregate(
    name: &'static str,
    description: &'static str,
    function: fn() -> Arc<AggregateUDF>,
) -> AggregateDefinition {
    AggregateDefinition { name, description, catalog: &[], function }
}

fn own(function: impl AggregateUDFImpl + 'static) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(function))
}

/// Wraps an aggregate whose result depends on the order of its rows.
fn ordered(plain: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    own(ordered::OrderedAggregate::new(plain))
}

fn json(name: &'static str, form: json::JsonForm) -> Arc<AggregateUDF> {
    ordered(own(json::JsonAggregate::new(name, form)))
}

fn spread(name: &'static str, kind: VarianceKind) -> Arc<AggregateUDF> {
    own(variance::Variance::new(name, kind))
}

static BY_NAME: LazyLock<HashMap<&'static str, Arc<AggregateUDF>>> =
    LazyLock::new(|| DEFINITIONS.iter().map(|definition| (definition.name, (definition.function)())).collect());

static STRING_AGG_VARYING: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let plain = AggregateUDF::new_from_impl(string_agg::StringAggVarying::new(f::string_agg::string_agg_udaf()));
    Arc::new(AggregateUDF::new_from_impl(ordered::OrderedAggregate::new(Arc::new(plain))))
});

/// Returns the aggregate called `name`.
pub(super) fn by_name(name: &str) -> Option<Arc<AggregateUDF>> {
    BY_NAME.get(name).map(Arc::clone)
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
