//! Standard aggregate and window functions, recognized by what they are and not by their names.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::{AggregateUDF, ReversedUDWF, WindowUDF};

/// Aggregate function that optimizations know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardAggregate {
    Count,
    Sum,
    Average,
    Min,
    Max,
    BoolAnd,
    BoolOr,
    /// `stddev`, `stddev_samp`, `stddev_pop`, `variance`, `var_samp` or `var_pop`.
    Variance,
    Grouping,
    ArrayAgg,
    /// `string_agg` whose separator is a short constant.
    StringAgg,
    /// `json_agg`, `jsonb_agg`, `json_object_agg` or `jsonb_object_agg`.
    JsonAgg,
    PercentileCont,
    PercentileDisc,
    Mode,
}

/// Window function that optimizations know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardWindow {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

/// Aggregates under the names by which SQL calls them.
const AGGREGATES: [(&str, StandardAggregate); 23] = [
    ("count", StandardAggregate::Count),
    ("sum", StandardAggregate::Sum),
    ("avg", StandardAggregate::Average),
    ("min", StandardAggregate::Min),
    ("max", StandardAggregate::Max),
    ("bool_and", StandardAggregate::BoolAnd),
    ("bool_or", StandardAggregate::BoolOr),
    ("stddev", StandardAggregate::Variance),
    ("stddev_samp", StandardAggregate::Variance),
    ("stddev_pop", StandardAggregate::Variance),
    ("variance", StandardAggregate::Variance),
    ("var_samp", StandardAggregate::Variance),
    ("var_pop", StandardAggregate::Variance),
    ("grouping", StandardAggregate::Grouping),
    ("array_agg", StandardAggregate::ArrayAgg),
    ("string_agg", StandardAggregate::StringAgg),
    ("json_agg", StandardAggregate::JsonAgg),
    ("jsonb_agg", StandardAggregate::JsonAgg),
    ("json_object_agg", StandardAggregate::JsonAgg),
    ("jsonb_object_agg", StandardAggregate::JsonAgg),
    ("percentile_cont", StandardAggregate::PercentileCont),
    ("percentile_disc", StandardAggregate::PercentileDisc),
    ("mode", StandardAggregate::Mode),
];

/// Window functions under the names by which SQL calls them.
const WINDOWS: [(&str, StandardWindow); 11] = [
    ("row_number", StandardWindow::RowNumber),
    ("rank", StandardWindow::Rank),
    ("dense_rank", StandardWindow::DenseRank),
    ("percent_rank", StandardWindow::PercentRank),
    ("cume_dist", StandardWindow::CumeDist),
    ("ntile", StandardWindow::Ntile),
    ("lag", StandardWindow::Lag),
    ("lead", StandardWindow::Lead),
    ("first_value", StandardWindow::FirstValue),
    ("last_value", StandardWindow::LastValue),
    ("nth_value", StandardWindow::NthValue),
];

static KNOWN_AGGREGATES: LazyLock<HashMap<Arc<AggregateUDF>, StandardAggregate>> = LazyLock::new(|| {
    let own = AGGREGATES.iter().map(|(name, kind)| {
        let function = functions::aggregate(name).expect("each name is that of an aggregate, which a test checks");
        (function, *kind)
    });
    // DataFusion's rules make calls of its own functions.
    own.chain([(min_udaf(), StandardAggregate::Min), (max_udaf(), StandardAggregate::Max)]).collect()
});

static KNOWN_WINDOWS: LazyLock<HashMap<Arc<WindowUDF>, StandardWindow>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for (name, kind) in &WINDOWS {
        let function = functions::window(name).expect("each name is that of a window function, which a test checks");
        // A function that counts from the other end is the same function, of which `functions::is_reversed` is true.
        if let ReversedUDWF::Reversed(reversed) = function.reverse_expr()
            && functions::is_reversed(&reversed)
        {
            known.insert(reversed, *kind);
        }
        known.insert(function, *kind);
    }
    known
});

impl StandardAggregate {
    /// Returns which aggregate a function is; `None` for others, and for those with FILTER as an argument.
    #[must_use]
    pub fn from_function(function: &AggregateUDF) -> Option<Self> {
        KNOWN_AGGREGATES.get(function).copied()
    }
}

impl StandardWindow {
    /// Returns which window function a function is, in either direction; `None` for others.
    #[must_use]
    pub fn from_function(function: &WindowUDF) -> Option<Self> {
        KNOWN_WINDOWS.get(function).copied()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::count::count_udaf;
    use datafusion::functions_aggregate::sum::sum_udaf;

    use super::*;

    #[test]
    fn every_standard_function_is_recognized() {
        for (name, kind) in AGGREGATES {
            let function = functions::aggregate(name).expect(name);
            assert_eq!(StandardAggregate::from_function(&function), Some(kind), "{name}");
        }
        for (name, kind) in WINDOWS {
            let function = functions::window(name).expect(name);
            assert_eq!(StandardWindow::from_function(&function), Some(kind), "{name}");
        }
    }

    #[test]
    fn functions_of_the_same_name_are_told_apart() {
        assert_eq!(StandardAggregate::from_function(&count_udaf()), Some(StandardAggregate::Count));
        // DataFusion's `sum` has states of other types.
        assert_eq!(StandardAggregate::from_function(&sum_udaf()), None);
    }

    #[test]
    fn a_function_that_counts_from_the_other_end_stays_the_same() {
        for (name, kind) in [("lag", StandardWindow::Lag), ("nth_value", StandardWindow::NthValue)] {
            let ReversedUDWF::Reversed(reversed) = functions::window(name).expect(name).reverse_expr() else {
                panic!("{name} has a direction");
            };
            assert!(functions::is_reversed(&reversed));
            assert_eq!(StandardWindow::from_function(&reversed), Some(kind));
        }
        let ReversedUDWF::Reversed(last) = functions::window("first_value").expect("it exists").reverse_expr() else {
            panic!("first_value has a direction");
        };
        assert_eq!(StandardWindow::from_function(&last), Some(StandardWindow::LastValue));
    }
}
