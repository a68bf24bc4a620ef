//! Rows of one table that an index finds by the statement's conditions.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use catalog::{CatalogState, RowPosition, Table, TableRows};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr};
use functions::error::from_datafusion;
use plan::{ROW_ID, ROW_POSITION, StandardAggregate};
use rowstore::{StoredColumn, Tuple, Value, decode_columns};
use scan::{
    Comparison, IndexAccess, KeyColumns, KeyLookup, KeyRange, LocatedRow, column_defs, comparison_of, count_blocks,
    encode_place, stored_column,
};
use storage_error::from_rowstore;
use txn::KeyRead;
use types::{ColumnId, Oid, SqlError, SqlResult};

use super::lookup_chain::{Step, StepKind};
use super::vectorized_expression::{
    Expression, compile, evaluate, is_constant, new_batch, repeat_parameters, show_expression,
};
use super::{IndexUse, ROWS_MAX};

/// Maximum number of shard blocks of 1,024 rows that a run reads.
const BLOCKS_MAX: usize = 64;
/// Maximum number of shard rows for which a key index may be built during a run: with equality conditions on leading
/// key columns, and for a range alone.
const INDEXED_ROWS_MAX: u64 = 16 << 20;
const RANGE_INDEXED_ROWS_MAX: u64 = 1 << 20;

/// Rows in a range of an index: the source of most chains.
#[derive(Debug)]
pub(super) struct IndexRangeSource {
    pub(super) table: Arc<Table>,
    pub(super) access: IndexAccess,
    /// Conditions on single columns; the value that each compares with is in `constants`.
    conditions: Vec<(ColumnId, Comparison)>,
    pub(super) constants: Vec<Expression>,
    /// Positions of the columns that are read, ascending, among the table's columns and the two that identify a row.
    pub(super) needed: Vec<usize>,
    columns: Vec<StoredColumn>,
    schema: SchemaRef,
    /// True if the index returns rows in the order of the first sort, from the end of the range if `backwards`.
    pub(super) is_ordered: bool,
    /// True if only the first row counts: its value is the MIN or MAX that is computed.
    pub(super) needs_first_row_only: bool,
    pub(super) backwards: bool,
    /// True if the filters before all other steps say no more than the index range does.
    pub(super) range_implies_filters: bool,
}

/// Key range that was read, with the rows found, for conflict detection under serializable isolation.
pub(super) struct KeyRangeRead {
    table: Oid,
    index: Oid,
    range: KeyRange,
    found: Vec<LocatedRow>,
}

impl KeyRangeRead {
    pub(super) fn new(table: Oid, index: Oid, range: KeyRange, found: Vec<LocatedRow>) -> Self {
        Self { table, index, range, found }
    }

    pub(super) fn into_key_read(self) -> KeyRead {
        let place = |found: &LocatedRow| match found.place {
            RowPosition::Fresh => None,
            RowPosition::Shard { shard, ordinal } => Some((shard, ordinal)),
        };
        KeyRead {
            table: self.table,
            index: self.index,
            from_key: self.range.from,
            to_key: self.range.to,
            rows: self.found.iter().map(|found| found.row).collect(),
            positions: self.found.iter().filter_map(place).collect(),
        }
    }
}

/// Rows of an index range.
pub(super) struct RangeRows {
    pub(super) tuples: Vec<Tuple>,
    pub(super) found: Vec<LocatedRow>,
    /// True if the range has no more rows.
    pub(super) is_complete: bool,
}

impl IndexRangeSource {
    /// Chooses an index for the filters of `steps`; `None` if none helps.
    pub(super) fn try_new(
        table: &Arc<Table>,
        places: bool,
        steps: &[Step],
        parameters: &[Field],
    ) -> SqlResult<Option<Self>> {
        let over = DFSchema::try_from(Arc::new(Schema::new(parameters.to_vec()))).map_err(from_datafusion)?;
        let mut conditions = Vec::new();
        let mut constants = Vec::new();
        let mut conjuncts = 0;
        for step in steps {
            let StepKind::Filter(filter) = &step.kind else { break };
            for conjunct in split_conjunction(filter) {
                conjuncts += 1;
                let Some((column, comparison, constant)) = parse_condition(conjunct, table, step, &over) else {
                    continue;
                };
                let constant = compile(constant, &over)?;
                let of = constant.data_type(over.as_arrow()).map_err(from_datafusion)?;
                if of == table.columns[column].sql_type.arrow_type() {
                    conditions.push((table.columns[column].id, comparison));
                    constants.push(constant);
                }
            }
        }
        let Some(access) = IndexAccess::choose(table, &conditions) else { return Ok(None) };
        let width = table.columns.len() + if places { 2 } else { 0 };
        let needed = needed_columns(steps, width);
        let defs = column_defs(table);
        let real = needed.iter().filter(|position| **position < defs.len());
        let columns = real.map(|position| stored_column(&defs[*position])).collect::<SqlResult<Vec<_>>>()?;
        let field = |position: &usize| match defs.get(*position) {
            Some(column) => Field::new(&column.name, column.sql_type.arrow_type(), true),
            None => Field::new(if *position == defs.len() { ROW_ID } else { ROW_POSITION }, DataType::Int64, false),
        };
        let fields: Vec<Field> = needed.iter().map(field).chain(parameters.iter().cloned()).collect();
        let is_exact = access.conditions().count() == conjuncts;
        let extreme = extreme_direction(steps, table, &access).filter(|_| is_exact);
        let order = index_order_direction(steps, table, &access).or(extreme);
        Ok(Some(Self {
            table: Arc::clone(table),
            access,
            conditions,
            constants,
            needed,
            columns,
            schema: Arc::new(Schema::new(fields)),
            is_ordered: order.is_some(),
            needs_first_row_only: extreme.is_some(),
            backwards: order == Some(true),
            range_implies_filters: is_exact,
        }))
    }

    /// Returns the schema of the columns that are read, followed by the parameters.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the values of a row in the columns that are read; `None` if these include columns that identify the row.
    pub(super) fn row_values<'a>(&'a self, row: &'a Tuple) -> SqlResult<Option<Vec<Value<'a>>>> {
        if self.columns.len() < self.needed.len() {
            return Ok(None);
        }
        column_values(&self.columns, row).map(Some)
    }

    /// Returns the types of the columns that are read.
    pub(super) fn column_types(&self) -> Vec<DataType> {
        self.schema.fields()[..self.needed.len()].iter().map(|field| field.data_type().clone()).collect()
    }

    /// Returns the index range for these parameters; `None` if no row can match.
    pub(super) fn range(&self, one: &RecordBatch) -> SqlResult<Option<KeyRange>> {
        let values: Vec<ArrayRef> =
            self.constants.iter().map(|constant| evaluate(constant, one)).collect::<SqlResult<_>>()?;
        self.access.range(|at| Value::from_array(&*values[at], 0).map_err(from_rowstore))
    }

    /// Describes the index and the conditions on its key, for EXPLAIN.
    pub(super) fn index_use(&self) -> IndexUse {
        let name = |column: ColumnId| self.table.column(column).map_or("", |column| column.name.as_str());
        let condition = |at: usize| {
            let (column, comparison) = self.conditions[at];
            format!("{} {comparison} {}", name(column), show_expression(&self.constants[at]))
        };
        let conditions: Vec<String> = self.access.conditions().map(condition).collect();
        IndexUse {
            table: self.table.name.clone(),
            index: self.table.index_name(self.access.index).to_owned(),
            condition: conditions.join(" AND "),
            is_ordered: self.is_ordered,
        }
    }

    /// Returns an empty batch.
    pub(super) fn empty_batch(&self, one: &RecordBatch) -> SqlResult<RecordBatch> {
        self.build_batch(&TableRows::default(), &[], &[], one)
    }

    /// Reads the first `limit` rows of the range, or all; `None` if they are too many for the fast path.
    pub(super) async fn read(
        &self,
        lookup: &KeyLookup,
        view: &CatalogState,
        range: &KeyRange,
        limit: Option<usize>,
    ) -> SqlResult<Option<RangeRows>> {
        let rows = view.rows(self.table.oid);
        let of = KeyColumns { table: &self.table, index: Some(self.access.index), columns: &self.access.columns };
        let shards = range.overlapping_shards(&rows.shards.shards, self.access.columns[0]);
        let indexed: u64 = shards.map(|number| rows.shards.shards.rows(number)).sum();
        let is_range = self.access.varying_columns().len() == self.access.columns.len();
        if (if is_range { RANGE_INDEXED_ROWS_MAX } else { INDEXED_ROWS_MAX }) < indexed {
            return Ok(None);
        }
        let count_max = limit.unwrap_or(ROWS_MAX + 1).min(ROWS_MAX + 1);
        let found = lookup.find_range(of, rows, range, self.backwards, count_max).await?;
        if ROWS_MAX < found.len() || BLOCKS_MAX < count_blocks(&found) {
            return Ok(None);
        }
        // Rows are cached for other statements too: with all columns of the table, not only those that this one names.
        let whole = view
            .table(self.table.oid)
            .ok_or_else(|| SqlError::internal("key lookup: the catalog snapshot does not have the table"))?;
        let tuples = lookup.fetch(whole, rows, &found).await?;
        let is_complete = found.len() < count_max;
        Ok(Some(RangeRows { tuples, found, is_complete }))
    }

    /// Converts the rows to a batch with the parameters.
    pub(super) fn to_batch(&self, read: &RangeRows, view: &CatalogState, one: &RecordBatch) -> SqlResult<RecordBatch> {
        self.build_batch(view.rows(self.table.oid), &read.found, &read.tuples, one)
    }

    /// Describes the range that a run has read.
    pub(super) fn key_range_read(&self, range: KeyRange, found: Vec<LocatedRow>) -> KeyRangeRead {
        KeyRangeRead::new(self.table.oid, self.access.index, range, found)
    }

    fn build_batch(
        &self,
        rows: &TableRows,
        found: &[LocatedRow],
        tuples: &[Tuple],
        one: &RecordBatch,
    ) -> SqlResult<RecordBatch> {
        let mut values = decode_columns(tuples, &self.columns, tuples.len()).map_err(from_rowstore)?.into_iter();
        let width = self.table.columns.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for position in &self.needed {
            if *position < width {
                columns.extend(values.next());
            } else if *position == width {
                let ids = found.iter().map(|found| found.row.0.cast_signed());
                columns.push(Arc::new(Int64Array::from_iter_values(ids)));
            } else {
                let places = found.iter().map(|found| encode_place(found.place, rows));
                columns.push(Arc::new(Int64Array::from_iter_values(places)));
            }
        }
        columns.extend(repeat_parameters(one, found.len())?);
        new_batch(&self.schema, columns, found.len())
    }
}

/// Returns the values of a row in these columns, in a vector with spare capacity for parameters.
pub(super) fn column_values<'a>(columns: &'a [StoredColumn], row: &'a Tuple) -> SqlResult<Vec<Value<'a>>> {
    let row = row.reader();
    let mut values = Vec::with_capacity(columns.len() + 8);
    for column in columns {
        values.push(column.value_in(row).map_err(from_rowstore)?);
    }
    Ok(values)
}

/// Parses `column comparison constant` into the column's position, the comparison and the constant.
fn parse_condition<'a>(
    conjunct: &'a Expr,
    table: &Table,
    step: &Step,
    parameters: &DFSchema,
) -> Option<(usize, Comparison, &'a Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = conjunct else { return None };
    let comparison = comparison_of(*op)?;
    let column = |expr: &Expr| input_position(expr, step).filter(|position| *position < table.columns.len());
    match (column(left), column(right)) {
        (Some(column), None) if is_constant(right, parameters) => Some((column, comparison, right)),
        (None, Some(column)) if is_constant(left, parameters) => Some((column, comparison.reversed(), left)),
        _ => None,
    }
}

/// Returns the position of the input column that the expression stands for, through aliases.
pub(super) fn input_position(expr: &Expr, step: &Step) -> Option<usize> {
    match expr {
        Expr::Column(column) => step.input.maybe_index_of_column(column),
        Expr::Alias(alias) => input_position(&alias.expr, step),
        // The cast changes the SQL type, not the value.
        Expr::Cast(cast) => {
            let position = input_position(&cast.expr, step)?;
            (step.input.field(position).data_type() == cast.field.data_type()).then_some(position)
        }
        _ => None,
    }
}

/// Returns the positions of the columns that the steps up to the first projection read.
pub(super) fn needed_columns(steps: &[Step], width: usize) -> Vec<usize> {
    let mut needed = vec![false; width];
    let mut is_projected = false;
    for step in steps {
        let exprs: Vec<&Expr> = match &step.kind {
            StepKind::Filter(filter) => vec![filter],
            StepKind::Project(exprs) | StepKind::Aggregate(exprs) => exprs.iter().collect(),
            StepKind::Sort(sorts) => sorts.iter().map(|sort| &sort.expr).collect(),
            StepKind::Limit { .. } => Vec::new(),
        };
        let columns = exprs.into_iter().flat_map(|expr| expr.column_refs());
        for position in columns.filter_map(|column: &Column| step.input.maybe_index_of_column(column)) {
            needed[position] = true;
        }
        if matches!(step.kind, StepKind::Project(_) | StepKind::Aggregate(_)) {
            is_projected = true;
            break;
        }
    }
    (0..width).filter(|position| !is_projected || needed[*position]).collect()
}

/// Returns whether the steps compute only the MIN or MAX of the first index column that varies within the range:
/// `Some(true)` if its row is found from the end of the range (MAX).
fn extreme_direction(steps: &[Step], table: &Table, access: &IndexAccess) -> Option<bool> {
    let mut origin: Vec<ColumnId> = table.columns.iter().map(|column| column.id).collect();
    let mut is_leading = true;
    for step in steps {
        let of = |expr: &Expr| input_position(expr, step).and_then(|position| origin.get(position).copied());
        match &step.kind {
            // The index range implies this filter.
            StepKind::Filter(_) if is_leading => {}
            StepKind::Filter(_) => return None,
            StepKind::Project(exprs) => {
                origin = exprs.iter().map(of).collect::<Option<_>>()?;
                is_leading = false;
            }
            StepKind::Aggregate(exprs) => {
                let [Expr::AggregateFunction(call)] = exprs.as_slice() else { return None };
                let [argument] = call.params.args.as_slice() else { return None };
                let column = of(argument).filter(|column| access.varying_columns().first() == Some(column))?;
                // NULLs do not count, and come last.
                let is_required = table.column(column).is_some_and(|column| column.not_null);
                return match StandardAggregate::from_function(&call.func) {
                    _ if call.params.filter.is_some() => None,
                    Some(StandardAggregate::Min) => Some(false),
                    Some(StandardAggregate::Max) if is_required => Some(true),
                    _ => None,
                };
            }
            StepKind::Sort(_) | StepKind::Limit { .. } => return None,
        }
    }
    None
}

/// Returns whether the index returns the rows in the order of the first sort: `Some(true)` if from its end.
fn index_order_direction(steps: &[Step], table: &Table, access: &IndexAccess) -> Option<bool> {
    // For each column of the step's input, the table column that it stands for.
    let mut origin: Option<Vec<Option<ColumnId>>> = None;
    for step in steps {
        let of = |expr: &Expr| {
            let position = input_position(expr, step)?;
            match &origin {
                Some(origin) => origin.get(position).copied().flatten(),
                None => table.columns.get(position).map(|column| column.id),
            }
        };
        match &step.kind {
            StepKind::Filter(_) => {}
            StepKind::Project(exprs) => origin = Some(exprs.iter().map(of).collect()),
            StepKind::Aggregate(_) | StepKind::Limit { .. } => return None,
            StepKind::Sort(sorts) => {
                let fixed = &access.columns[..access.columns.len() - access.varying_columns().len()];
                let mut varying = access.varying_columns().iter();
                let mut backwards = None;
                for sort in sorts {
                    let column = of(&sort.expr)?;
                    if fixed.contains(&column) {
                        continue;
                    }
                    let is_next = varying.next() == Some(&column) && sort.asc != sort.nulls_first;
                    if !is_next || backwards.is_some_and(|backwards| backwards == sort.asc) {
                        return None;
                    }
                    backwards = Some(!sort.asc);
                }
                return Some(backwards.unwrap_or(false));
            }
        }
    }
    None
}
