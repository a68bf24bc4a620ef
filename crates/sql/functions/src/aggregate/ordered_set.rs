//! The aggregates `percentile_cont`, `percentile_disc` and `mode`, which collect all values and sort them at the end.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::compute::{SortOptions, cast, concat, filter, is_not_null, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, ColumnarValue, Signature, Volatility};
use types::{Condition, SqlError, SqlType};

use super::interval::sort_keys;
use crate::definition::missing_function;
use crate::external;
use crate::type_rules::plain_type_name;

/// One of the three ordered-set aggregates. Arguments are the ordered value and, for percentiles, the fraction.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct OrderedSet {
    kind: OrderedSetKind,
    signature: Signature,
}

/// Kind of an ordered-set aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OrderedSetKind {
    Mode,
    PercentileContinuous,
    PercentileDiscrete,
}

impl OrderedSetKind {
    fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::PercentileContinuous => "percentile_cont",
            Self::PercentileDiscrete => "percentile_disc",
        }
    }
}

impl OrderedSet {
    pub(super) fn new(kind: OrderedSetKind) -> Self {
        Self { kind, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    /// The input need not be sorted, but DataFusion passes the sort direction only to aggregates that declare a use
    /// for it.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Beneficial
    }

    fn with_beneficial_ordering(self: Arc<Self>, _is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let wanted = if self.kind == OrderedSetKind::Mode { 1 } else { 2 };
        if arguments.len() != wanted {
            return Err(external(missing_function(self.kind.name(), "")));
        }
        let mut coerced = arguments.to_vec();
        if self.kind == OrderedSetKind::PercentileContinuous && arguments[0] != DataType::Float64 {
            if !arguments[0].is_numeric() {
                let shown = SqlType::from_arrow_type(&arguments[0]).unwrap_or(SqlType::Text);
                return Err(external(missing_function(
                    self.kind.name(),
                    &format!("double precision, {}", plain_type_name(&shown)),
                )));
            }
            coerced[0] = DataType::Float64;
        }
        if let Some(fraction) = coerced.get_mut(1) {
            if !fraction.is_numeric() {
                return Err(external(SqlError::unsupported("percentiles of an array of fractions")));
            }
            *fraction = DataType::Float64;
        }
        Ok(coerced)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let item = Arc::new(Field::new_list_field(args.input_fields[0].data_type().clone(), true));
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), DataType::List(item), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let is_descending = args.order_bys.first().is_some_and(|order| order.options.descending);
        let fraction = match args.exprs.get(1) {
            Some(expr) => {
                let batch = arrow::record_batch::RecordBatch::new_empty(Arc::new(arrow::datatypes::Schema::empty()));
                match expr.evaluate(&batch)? {
                    ColumnarValue::Scalar(value) => match value.cast_to(&DataType::Float64)? {
                        ScalarValue::Float64(fraction) => fraction,
                        _ => None,
                    },
                    ColumnarValue::Array(_) => {
                        return Err(external(SqlError::unsupported("a percentile fraction that is not a constant")));
                    }
                }
            }
            None => None,
        };
        if let Some(fraction) = fraction
            && !(0.0..=1.0).contains(&fraction)
        {
            return Err(external(SqlError::new(
                Condition::NumericValueOutOfRange,
                format!("percentile value {fraction} is not between 0 and 1"),
            )));
        }
        Ok(Box::new(OrderedSetAccumulator {
            kind: self.kind,
            fraction,
            is_descending,
            input: args.expr_fields[0].data_type().clone(),
            chunks: Vec::new(),
        }))
    }
}

#[derive(Debug)]
struct OrderedSetAccumulator {
    kind: OrderedSetKind,
    fraction: Option<f64>,
    is_descending: bool,
    input: DataType,
    chunks: Vec<ArrayRef>,
}

impl OrderedSetAccumulator {
    fn concat_chunks(&self) -> Result<ArrayRef> {
        if self.chunks.is_empty() {
            return Ok(new_empty_array(&self.input));
        }
        let chunks: Vec<&dyn Array> = self.chunks.iter().map(AsRef::as_ref).collect();
        Ok(concat(&chunks)?)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions within the values"
    )]
    fn percentile(&self, sorted: &ArrayRef, fraction: f64) -> Result<ScalarValue> {
        let count = sorted.len();
        if self.kind == OrderedSetKind::PercentileDiscrete {
            let position = (fraction * count as f64).ceil() as usize;
            return ScalarValue::try_from_array(sorted, position.max(1) - 1);
        }
        let values = sorted.as_primitive::<Float64Type>();
        let exact = fraction * (count - 1) as f64;
        let (low, high) = (values.value(exact.floor() as usize), values.value(exact.ceil() as usize));
        Ok(ScalarValue::Float64(Some(if low == high { low } else { low + (high - low) * (exact - exact.floor()) })))
    }

    /// Returns the value of the longest run of equal values; the first of several.
    fn mode(sorted: &ArrayRef) -> Result<ScalarValue> {
        let ranges = arrow::compute::partition(&[sort_keys(sorted)])?.ranges();
        let longest = ranges.iter().rev().max_by_key(|range| range.len());
        match longest {
            Some(range) => ScalarValue::try_from_array(sorted, range.start),
            None => ScalarValue::try_from(sorted.data_type()),
        }
    }
}

impl Accumulator for OrderedSetAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values =
            if *values[0].data_type() == self.input { Arc::clone(&values[0]) } else { cast(&values[0], &self.input)? };
        let kept = if values.null_count() == 0 { values } else { filter(&values, &is_not_null(&values)?)? };
        if !kept.is_empty() {
            self.chunks.push(kept);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.chunks.extend(states[0].as_list::<i32>().iter().flatten().filter(|list| !list.is_empty()));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![SingleRowListArrayBuilder::new(self.concat_chunks()?).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let options = SortOptions { descending: self.is_descending, nulls_first: false };
        let all = self.concat_chunks()?;
        let sorted = take(&all, &sort_to_indices(&sort_keys(&all), Some(options), None)?, None)?;
        match self.fraction {
            _ if sorted.is_empty() => ScalarValue::try_from(&self.input),
            Some(fraction) => self.percentile(&sorted, fraction),
            None if self.kind == OrderedSetKind::Mode => Self::mode(&sorted),
            None => ScalarValue::try_from(&self.input),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.chunks.iter().map(|chunk| chunk.get_array_memory_size()).sum::<usize>()
    }
}
