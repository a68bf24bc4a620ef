//! Aggregates that depend on the order of their rows: `array_agg`, `string_agg`, `json_agg` and the like.
//!
//! With ORDER BY or DISTINCT, all rows are collected with their sort keys, from all partitions, and sorted at the
//! end; the plain aggregate then reads them in order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array, new_empty_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature};

use super::size_checked::SizeCheckedAccumulator;

/// Number of rows collected before DISTINCT first removes duplicates.
const ROWS_BEFORE_DEDUPLICATION: usize = 8192;

/// Aggregate that depends on the order of its rows: it collects and sorts them for ORDER BY or DISTINCT, and is `plain`
/// otherwise. With DISTINCT, the analyzer adds sort keys that tell rows apart.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct OrderedAggregate {
    plain: Arc<AggregateUDF>,
}

impl OrderedAggregate {
    pub(super) fn new(plain: Arc<AggregateUDF>) -> Self {
        Self { plain }
    }
}

impl AggregateUDFImpl for OrderedAggregate {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.plain.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.plain.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.plain.inner().return_field(arguments)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.ordering_fields.is_empty() {
            return self.plain.state_fields(args);
        }
        let columns = args.input_fields.iter().chain(args.ordering_fields).enumerate();
        let list = |(at, field): (usize, &FieldRef)| {
            let item = Field::new_list_field(field.data_type().clone(), true);
            Arc::new(Field::new_list(format!("{}[rows {at}]", args.name), item, true))
        };
        Ok(columns.map(list).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.order_bys.is_empty() {
            return Ok(Box::new(SizeCheckedAccumulator::new(self.plain.accumulator(args)?)));
        }
        let keys = args.order_bys.iter().map(|key| key.expr.data_type(args.schema)).collect::<Result<Vec<_>>>()?;
        let fields = keys.iter().zip(args.order_bys);
        let fields = fields.map(|(key, order)| SortField::new_with_options(key.clone(), order.options)).collect();
        let types: Vec<DataType> = args.expr_fields.iter().map(|field| field.data_type().clone()).chain(keys).collect();
        let (argument_count, is_distinct) = (args.expr_fields.len(), args.is_distinct);
        let finish = self.plain.accumulator(AccumulatorArgs {
            order_bys: &[],
            is_distinct: false,
            is_reversed: false,
            ..args
        })?;
        Ok(Box::new(OrderedAccumulator {
            columns: types.iter().map(|_| Vec::new()).collect(),
            types,
            argument_count,
            converter: RowConverter::new(fields)?,
            is_distinct,
            row_count: 0,
            deduplicate_at: ROWS_BEFORE_DEDUPLICATION,
            bytes: 0,
            finish,
        }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        args.order_bys.is_empty() && self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.plain.create_groups_accumulator(args)
    }

    /// The input need not be sorted, but DataFusion then passes the sort keys on.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Beneficial
    }

    fn with_beneficial_ordering(self: Arc<Self>, _is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }
}

/// Rows collected so far.
#[derive(Debug)]
struct OrderedAccumulator {
    /// Chunks of each argument, then of each sort key.
    columns: Vec<Vec<ArrayRef>>,
    types: Vec<DataType>,
    argument_count: usize,
    converter: RowConverter,
    is_distinct: bool,
    row_count: usize,
    /// Number of rows at which DISTINCT next removes duplicates.
    deduplicate_at: usize,
    bytes: usize,
    /// Plain aggregate, which reads the sorted rows.
    finish: Box<dyn Accumulator>,
}

impl OrderedAccumulator {
    fn push(&mut self, column: usize, chunk: ArrayRef) {
        if chunk.is_empty() {
            return;
        }
        self.bytes += chunk.to_data().get_slice_memory_size().unwrap_or_default();
        self.columns[column].push(chunk);
    }

    fn count(&mut self, rows: usize) -> Result<()> {
        self.row_count += rows;
        if self.is_distinct && self.deduplicate_at <= self.row_count {
            self.sort()?;
            self.deduplicate_at = (2 * self.row_count).max(ROWS_BEFORE_DEDUPLICATION);
        }
        Ok(())
    }

    /// Sorts the rows; for DISTINCT, keeps the first of equal ones.
    fn sort(&mut self) -> Result<()> {
        let columns = self.concat_columns()?;
        let keys = self.converter.convert_columns(&columns[self.argument_count..])?;
        let mut order: Vec<usize> = (0..keys.num_rows()).collect();
        order.sort_by(|a, b| keys.row(*a).cmp(&keys.row(*b)));
        if self.is_distinct {
            order.dedup_by(|a, b| keys.row(*a) == keys.row(*b));
        }
        let picked: UInt64Array = order.iter().map(|row| u64::try_from(*row).ok()).collect();
        self.bytes = 0;
        self.row_count = order.len();
        for (at, column) in columns.iter().enumerate() {
            self.columns[at].clear();
            let sorted = take(column, &picked, None)?;
            self.push(at, sorted);
        }
        Ok(())
    }

    /// Concatenates the chunks of each column.
    fn concat_columns(&self) -> Result<Vec<ArrayRef>> {
        let whole = |(chunks, data_type): (&Vec<ArrayRef>, &DataType)| match chunks.as_slice() {
            [] => Ok(new_empty_array(data_type)),
            [only] => Ok(Arc::clone(only)),
            many => Ok(concat(&many.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?),
        };
        self.columns.iter().zip(&self.types).map(whole).collect()
    }
}

impl Accumulator for OrderedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (at, chunk) in values.iter().enumerate() {
            self.push(at, Arc::clone(chunk));
        }
        self.count(values[0].len())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let mut rows = 0;
        for (at, lists) in states.iter().enumerate() {
            for list in lists.as_list::<i32>().iter().flatten() {
                if at == 0 {
                    rows += list.len();
                }
                self.push(at, list);
            }
        }
        self.count(rows)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if self.is_distinct {
            self.sort()?;
        }
        let lists =
            self.concat_columns()?.into_iter().map(|column| SingleRowListArrayBuilder::new(column).build_list_scalar());
        Ok(lists.collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sort()?;
        let mut columns = self.concat_columns()?;
        columns.truncate(self.argument_count);
        if self.row_count > 0 {
            self.finish.update_batch(&columns)?;
        }
        self.finish.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes + self.converter.size() + self.finish.size()
    }
}
