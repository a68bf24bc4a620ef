//! A chain whose expressions are compiled for parameters of certain types, and its steps over one batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{
    SortColumn, SortOptions, cast, concat, filter_record_batch, lexsort_to_indices, take_record_batch,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use catalog::CatalogState;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregate, LoweredAggregateBuilder};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use planner::error::from_datafusion;
use planner::functions;
use planner::semantics::Session;
use rowstore::{StoredColumn, Tuple};
use types::numeric::Digits;
use types::{SqlError, SqlResult};

use super::chain::{Chain, Effect, Source, Step, moment_column, parameter_column};
use super::join::JoinedRows;
use super::patch::{Applied, Patch};
use super::plain::{self, StoredRows};
use super::row_by_row::RowByRow;
use super::source::{Asked, KeyedRows, Read};
use super::{IndexUse, Patched};
use crate::Execution;

/// A chain that can run.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Of the parameters.
    types: Vec<DataType>,
    /// How many parameters lie beside the rows: all, or none where no step reads one.
    carried: usize,
    schema: SchemaRef,
    pub(super) source: Rows,
    pub(super) steps: Vec<Run>,
    /// The columns that are given as they are stored, where no step does more.
    pub(super) plain: Option<Arc<[StoredColumn]>>,
    /// As `plain`, of a query that locks its rows.
    locked: Option<Arc<[StoredColumn]>>,
    /// What becomes of each row, where it can be made value by value.
    pub(super) row_by_row: Option<RowByRow>,
    /// What an UPDATE does, where it can be done to the rows as they are stored.
    patch: Option<Patch>,
}

#[derive(Debug)]
pub(super) enum Rows {
    Keyed(Box<KeyedRows>),
    Joined(Box<JoinedRows>),
    /// No index helps.
    Scanned,
    Written {
        rows: Vec<Vec<Expression>>,
        schema: SchemaRef,
    },
    One,
    Given {
        schema: SchemaRef,
    },
}

/// An aggregate, and which rows it is of.
type Aggregate = (Arc<AggregateFunctionExpr>, Option<Expression>);

pub(super) type Expression = Arc<dyn PhysicalExpr>;

#[derive(Debug)]
pub(super) enum Run {
    Filter(Expression),
    Project(Vec<Expression>, SchemaRef),
    Aggregate(Vec<Aggregate>, SchemaRef),
    Sort(Vec<(Expression, SortOptions)>),
    Cut { skip: Option<Expression>, fetch: Option<Expression> },
}

/// What a run gives, and what it read.
pub(super) struct Made {
    pub(super) rows: RecordBatch,
    pub(super) read: Vec<Asked>,
}

/// OFFSET and LIMIT of one run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) skip: usize,
    pub(super) fetch: Option<usize>,
}

impl Compiled {
    /// The chain for parameters of the types of `values`.
    pub(super) fn of(chain: &Chain, values: &[ScalarValue]) -> SqlResult<Self> {
        let types: Vec<DataType> = values.iter().map(ScalarValue::data_type).collect();
        let parameters = parameter_fields(&types, chain.moments.len());
        let schema = Arc::new(Schema::new(parameters.clone()));
        let mut ordered = false;
        let source = match &chain.source {
            Source::Table { table, places } => match KeyedRows::of(table, *places, &chain.steps, &parameters)? {
                Some(keyed) => {
                    ordered = keyed.is_ordered;
                    Rows::Keyed(Box::new(keyed))
                }
                None => return Ok(Self::of_scanned(types, schema)),
            },
            Source::Joined { tables } => match JoinedRows::of(tables, &chain.steps, &parameters)? {
                Some(joined) => Rows::Joined(Box::new(joined)),
                None => return Ok(Self::of_scanned(types, schema)),
            },
            Source::Rows { rows, schema } => {
                let over = Arc::new(Schema::new(parameters.clone()));
                let over = DFSchema::try_from(over).map_err(from_datafusion)?;
                let cells = |row: &Vec<Expr>| row.iter().map(|cell| compile(cell, &over)).collect::<SqlResult<_>>();
                let rows: Vec<Vec<Expression>> = rows.iter().map(cells).collect::<SqlResult<_>>()?;
                let fields = schema.fields().iter().enumerate().map(|(column, field)| {
                    let forms = rows.iter().map(|row| row[column].data_type(over.as_arrow()).map_err(from_datafusion));
                    let forms = forms.collect::<SqlResult<Vec<_>>>()?;
                    let widest = forms.into_iter().reduce(widest).ok_or_else(|| SqlError::internal("no rows"))?;
                    Ok(Field::new(field.name(), widest, true))
                });
                let schema = Arc::new(Schema::new(fields.collect::<SqlResult<Vec<_>>>()?));
                Rows::Written { rows, schema }
            }
            Source::OneRow => Rows::One,
            Source::Given { schema } => Rows::Given { schema: Arc::clone(schema.inner()) },
        };
        let mut actual: Vec<DataType> = match &source {
            Rows::Keyed(keyed) => keyed.types(),
            Rows::Joined(joined) => joined.types(),
            Rows::Written { schema, .. } | Rows::Given { schema } => {
                schema.fields().iter().map(|field| field.data_type().clone()).collect()
            }
            Rows::Scanned | Rows::One => Vec::new(),
        };
        let mut narrowed = match &source {
            Rows::Keyed(keyed) => Some(keyed.needed.clone()),
            Rows::Joined(joined) => Some(joined.needed.clone()),
            _ => None,
        };
        let is_apart = matches!(source, Rows::Written { .. }) && !chain.steps.iter().any(Step::reads_parameters);
        let carried = if is_apart { &[] } else { parameters.as_slice() };
        let mut steps = Vec::with_capacity(chain.steps.len());
        for step in &chain.steps {
            if matches!(step.effect, Effect::Sort(_)) && std::mem::take(&mut ordered) {
                continue;
            }
            let over = schema_over(step, narrowed.as_deref(), &actual, carried)?;
            let run = Run::of(&step.effect, &over, carried, &parameters)?;
            if let Run::Project(_, schema) | Run::Aggregate(_, schema) = &run {
                let count = schema.fields().len() - carried.len();
                actual = schema.fields()[..count].iter().map(|field| field.data_type().clone()).collect();
                narrowed = None;
            }
            steps.push(run);
        }
        let plain = match &source {
            Rows::Keyed(keyed) => plain::columns(&chain.steps, keyed, chain.is_locking)?,
            _ => None,
        };
        let (plain, locked) = if chain.is_locking { (None, plain) } else { (plain, None) };
        let patch = match &source {
            Rows::Keyed(keyed) if chain.is_patch && keyed.is_exact => {
                Patch::of(&keyed.table, &chain.steps, &parameters)?
            }
            _ => None,
        };
        let carried = carried.len();
        let is_computed = plain.is_none() && !chain.is_locking && patch.is_none();
        let row_by_row = is_computed.then(|| RowByRow::of(&source, &steps, &schema, carried)).flatten();
        Ok(Self { types, carried, schema, source, steps, plain, locked, row_by_row, patch })
    }

    /// Of a chain whose rows no index finds.
    fn of_scanned(types: Vec<DataType>, schema: SchemaRef) -> Self {
        Self {
            types,
            carried: 0,
            schema,
            source: Rows::Scanned,
            steps: Vec::new(),
            plain: None,
            locked: None,
            row_by_row: None,
            patch: None,
        }
    }

    /// Whether it is for parameters of the types of these.
    pub(super) fn takes(&self, values: &[ScalarValue]) -> bool {
        self.types.len() == values.len() && self.types.iter().zip(values).all(|(of, value)| *of == value.data_type())
    }

    /// The rows; `None` where the plan has to be run.
    pub(super) async fn run(
        &self,
        execution: &Execution,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<Made>> {
        let one = self.one_row(values)?;
        let Some(counts) = self.counts(&one)? else { return Ok(None) };
        let made = |rows: &RecordBatch, read| Ok(Some(Made { rows: self.visible(rows), read }));
        let none = Vec::new;
        match &self.source {
            Rows::Scanned | Rows::Given { .. } => Ok(None),
            Rows::One => made(&self.take_steps(one.clone(), &one, counts)?, none()),
            Rows::Written { rows, schema } => {
                made(&self.take_steps(written(rows, schema, &one, self.carried)?, &one, counts)?, none())
            }
            Rows::Joined(joined) => {
                let Some((rows, read)) = joined.read(view, &one)? else { return Ok(None) };
                made(&self.take_steps(rows, &one, counts)?, read)
            }
            Rows::Keyed(keyed) => {
                let Some(range) = keyed.range(&one)? else {
                    return made(&self.take_steps(keyed.none(&one)?, &one, counts)?, none());
                };
                let mut limit = self.wanted(counts);
                loop {
                    let Some(read) = keyed.read(execution, view, &range, limit).await? else { return Ok(None) };
                    let rows = self.take_steps(keyed.batch_of(&read, view, &one)?, &one, counts)?;
                    match limit.filter(|_| !self.is_extreme() && !read.is_all && Some(rows.num_rows()) != counts.fetch)
                    {
                        // Filters have left too few.
                        Some(tried) => limit = Some(tried * 4),
                        None => return made(&rows, vec![keyed.asked(range, read.found)]),
                    }
                }
            }
        }
    }

    /// The rows as they are stored or computed one by one, with what was read; `None` where they are not given so, or the plan has to be run.
    pub(super) async fn run_plain(
        &self,
        execution: &Execution,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(StoredRows, Option<Asked>)>> {
        let Rows::Keyed(keyed) = &self.source else { return Ok(None) };
        if self.plain.is_none() && self.row_by_row.is_none() {
            return Ok(None);
        }
        let one = self.one_row(values)?;
        let Some(counts) = self.counts(&one)? else { return Ok(None) };
        let Some(range) = keyed.range(&one)? else {
            return Ok(self.given(Vec::new(), counts, values)?.map(|rows| (rows, None)));
        };
        let Some(read) = keyed.read(execution, view, &range, self.wanted(counts)).await? else { return Ok(None) };
        let Some(rows) = self.given(read.tuples, counts, values)? else { return Ok(None) };
        Ok(Some((rows, Some(keyed.asked(range, read.found)))))
    }

    /// What is given of rows that were found: the columns that are wanted, or what is computed of them; `None` where that takes arrays.
    pub(super) fn given(
        &self,
        found: Vec<Tuple>,
        counts: Counts,
        values: &[ScalarValue],
    ) -> SqlResult<Option<StoredRows>> {
        let mut rows = found;
        rows.drain(..counts.skip.min(rows.len()));
        rows.truncate(counts.fetch.unwrap_or(usize::MAX));
        match &self.plain {
            Some(columns) => Ok(Some(StoredRows { rows, columns: Arc::clone(columns) })),
            None => self.computed_rows(&rows, values),
        }
    }

    /// The rows that are to be locked, and their columns that are given; `None` where they are not given as they are stored, or the plan
    /// has to be run.
    pub(super) async fn run_locking(
        &self,
        execution: &Execution,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(Read, Arc<[StoredColumn]>, Asked)>> {
        let (Some(columns), Rows::Keyed(keyed)) = (&self.locked, &self.source) else { return Ok(None) };
        if self.steps.iter().any(|step| matches!(step, Run::Cut { .. })) {
            return Ok(None);
        }
        let range = match keyed.constants_at_once(values) {
            Some(constants) => keyed.access.range(|at| Ok(constants[at]))?,
            None => keyed.range(&self.one_row(values)?)?,
        };
        // Where no row can be meant, the plan is as fast.
        let Some(range) = range else { return Ok(None) };
        let Some(read) = keyed.read(execution, view, &range, None).await? else { return Ok(None) };
        let asked = keyed.asked(range, read.found.clone());
        Ok(Some((read, Arc::clone(columns), asked)))
    }

    /// What an UPDATE makes of its rows, with what was read; `None` where it is no patch, or the plan has to be run.
    pub(super) async fn run_patch(
        &self,
        execution: &Execution,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(Patched, Asked)>> {
        let (Some(patch), Rows::Keyed(keyed)) = (&self.patch, &self.source) else { return Ok(None) };
        let columns = Arc::clone(&patch.columns);
        let range = match keyed.constants_at_once(values) {
            Some(constants) => keyed.access.range(|at| Ok(constants[at]))?,
            None => keyed.range(&self.one_row(values)?)?,
        };
        // Where no row can be meant, the plan is as fast.
        let Some(range) = range else { return Ok(None) };
        let Some(read) = keyed.read(execution, view, &range, None).await? else { return Ok(None) };
        let applied = patch.apply(&read.tuples, values, || self.one_row(values))?;
        let Some(Applied { rows, returning }) = applied else { return Ok(None) };
        let found = read.found.clone();
        Ok(Some((Patched { found, rows, columns, returning }, keyed.asked(range, read.found))))
    }

    /// One row of the parameters.
    pub(super) fn one_row(&self, values: &[ScalarValue]) -> SqlResult<RecordBatch> {
        let parameters = values.iter().map(|value| value.to_array().map_err(from_datafusion));
        batch(&self.schema, parameters.collect::<SqlResult<_>>()?, 1)
    }

    /// What becomes of rows that are given.
    pub(super) fn run_over(&self, given: &RecordBatch, values: &[ScalarValue]) -> SqlResult<RecordBatch> {
        let one = self.one_row(values)?;
        let Rows::Given { schema } = &self.source else {
            return Err(SqlError::internal("rows that are not asked for"));
        };
        let fields = schema.fields().iter().chain(one.schema_ref().fields()).cloned();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = given.columns().iter().cloned().chain(repeated(&one, given.num_rows())?).collect();
        let rows = batch(&schema, columns, given.num_rows())?;
        self.take_steps(rows, &one, Counts::default()).map(|made| self.visible(&made))
    }

    /// The indexes that find the rows.
    pub(super) fn described(&self) -> Vec<IndexUse> {
        match &self.source {
            Rows::Keyed(keyed) => vec![keyed.described()],
            Rows::Joined(joined) => joined.described(),
            _ => Vec::new(),
        }
    }

    /// Whether the first row of the source tells all.
    pub(super) fn is_extreme(&self) -> bool {
        matches!(&self.source, Rows::Keyed(keyed) if keyed.is_extreme)
    }

    /// How many rows of the source may be enough: known where they come in order and nothing but filters lies before LIMIT.
    pub(super) fn wanted(&self, counts: Counts) -> Option<usize> {
        if self.is_extreme() {
            return Some(1);
        }
        let before = self.steps.iter().take_while(|step| !matches!(step, Run::Cut { .. }));
        let is_plain = before.clone().all(|step| matches!(step, Run::Filter(_) | Run::Project(..)));
        let fetch = counts.fetch.filter(|_| is_plain && before.count() < self.steps.len())?;
        Some((counts.skip + fetch).max(1))
    }

    /// OFFSET and LIMIT; `None` for counts that are refused.
    fn counts(&self, one: &RecordBatch) -> SqlResult<Option<Counts>> {
        let mut counts = Counts::default();
        for step in &self.steps {
            let Run::Cut { skip, fetch } = step else { continue };
            let count = |count: &Option<Expression>| -> SqlResult<Result<Option<usize>, ()>> {
                let Some(count) = count else { return Ok(Ok(None)) };
                let value = evaluate(count, one)?;
                let Some(value) = value.as_primitive_opt::<Int64Type>() else { return Ok(Err(())) };
                if value.is_null(0) {
                    return Ok(Ok(None));
                }
                Ok(usize::try_from(value.value(0)).map(Some).map_err(|_| ()))
            };
            let (Ok(skip), Ok(fetch)) = (count(skip)?, count(fetch)?) else { return Ok(None) };
            counts = Counts { skip: skip.unwrap_or(0), fetch };
        }
        Ok(Some(counts))
    }

    pub(super) fn take_steps(&self, rows: RecordBatch, one: &RecordBatch, counts: Counts) -> SqlResult<RecordBatch> {
        let mut rows = rows;
        for step in &self.steps {
            rows = match step {
                Run::Filter(condition) => {
                    let holds = evaluate(condition, &rows)?;
                    filter_record_batch(&rows, holds.as_boolean()).map_err(internal)?
                }
                Run::Project(columns, schema) => {
                    let mut made: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
                    for column in columns {
                        made.push(evaluate(column, &rows)?);
                    }
                    made.extend_from_slice(&rows.columns()[rows.num_columns() - self.carried..]);
                    batch(schema, made, rows.num_rows())?
                }
                Run::Aggregate(aggregates, schema) => {
                    let mut made: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
                    for aggregate in aggregates {
                        made.push(aggregated(aggregate, &rows)?);
                    }
                    made.extend_from_slice(&one.columns()[..self.carried]);
                    batch(schema, made, 1)?
                }
                Run::Sort(sorts) if 1 < rows.num_rows() => {
                    let columns = sorts
                        .iter()
                        .map(|(by, options)| Ok(SortColumn { values: evaluate(by, &rows)?, options: Some(*options) }));
                    let order = lexsort_to_indices(&columns.collect::<SqlResult<Vec<_>>>()?, None);
                    take_record_batch(&rows, &order.map_err(internal)?).map_err(internal)?
                }
                Run::Sort(_) => rows,
                Run::Cut { .. } => {
                    let start = counts.skip.min(rows.num_rows());
                    let left = rows.num_rows() - start;
                    rows.slice(start, counts.fetch.map_or(left, |fetch| fetch.min(left)))
                }
            };
        }
        Ok(rows)
    }

    /// The rows without the parameters.
    pub(super) fn visible(&self, rows: &RecordBatch) -> RecordBatch {
        let visible: Vec<usize> = (0..rows.num_columns() - self.carried).collect();
        rows.project(&visible).expect("columns that are there")
    }
}

impl Run {
    fn of(effect: &Effect, over: &DFSchema, carried: &[Field], parameters: &[Field]) -> SqlResult<Self> {
        Ok(match effect {
            Effect::Filter(condition) => Self::Filter(compile(condition, over)?),
            Effect::Project(exprs) => {
                let columns: Vec<Expression> =
                    exprs.iter().map(|expr| compile(expr, over)).collect::<SqlResult<_>>()?;
                let mut fields = Vec::with_capacity(columns.len() + carried.len());
                for (column, expr) in columns.iter().zip(exprs) {
                    let made = column.data_type(over.as_arrow()).map_err(from_datafusion)?;
                    fields.push(Field::new(expr.schema_name().to_string(), made, true));
                }
                fields.extend_from_slice(carried);
                Self::Project(columns, Arc::new(Schema::new(fields)))
            }
            Effect::Aggregate(exprs) => {
                let mut aggregates = Vec::with_capacity(exprs.len());
                let mut fields = Vec::with_capacity(exprs.len() + carried.len());
                for expr in exprs {
                    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
                    let made = LoweredAggregateBuilder::new(expr, over, over.as_arrow(), &props, &context).build();
                    let LoweredAggregate { aggregate, filter, .. } = made.map_err(from_datafusion)?;
                    let of = aggregate.field().data_type().clone();
                    fields.push(Field::new(expr.schema_name().to_string(), of, true));
                    aggregates.push((aggregate, filter));
                }
                fields.extend_from_slice(carried);
                Self::Aggregate(aggregates, Arc::new(Schema::new(fields)))
            }
            Effect::Sort(sorts) => {
                let sort = |sort: &datafusion::logical_expr::SortExpr| {
                    let options = SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first };
                    compile(&sort.expr, over).map(|by| (by, options))
                };
                Self::Sort(sorts.iter().map(sort).collect::<SqlResult<_>>()?)
            }
            // Counts are of parameters alone: they are asked before any row is read.
            Effect::Cut { skip, fetch } => {
                let over = Arc::new(Schema::new(parameters.to_vec()));
                let over = &DFSchema::try_from(over).map_err(from_datafusion)?;
                let count = |count: &Option<Expr>| count.as_ref().map(|count| compile(count, over)).transpose();
                Self::Cut { skip: count(skip)?, fetch: count(fetch)? }
            }
        })
    }
}

/// What an aggregate gives of the rows.
fn aggregated((aggregate, filter): &Aggregate, rows: &RecordBatch) -> SqlResult<ArrayRef> {
    let counted = match filter {
        Some(filter) => {
            let holds = evaluate(filter, rows)?;
            &filter_record_batch(rows, holds.as_boolean()).map_err(internal)?
        }
        None => rows,
    };
    let values: Vec<ArrayRef> =
        aggregate.expressions().iter().map(|value| evaluate(value, counted)).collect::<SqlResult<_>>()?;
    let mut accumulator = aggregate.create_accumulator().map_err(from_datafusion)?;
    accumulator.update_batch(&values).map_err(from_datafusion)?;
    accumulator.evaluate().and_then(|value| value.to_array()).map_err(from_datafusion)
}

/// What the expressions of a step are over: the columns at `narrowed` of its input, or all, as they really are, then the parameters.
pub(super) fn schema_over(
    step: &Step,
    narrowed: Option<&[usize]>,
    actual: &[DataType],
    parameters: &[Field],
) -> SqlResult<DFSchema> {
    let all: Vec<usize> = (0..step.input.fields().len()).collect();
    let positions = narrowed.unwrap_or(&all);
    let mut fields: Vec<_> = positions
        .iter()
        .zip(actual)
        .map(|(position, actual)| {
            let (qualifier, field) = step.input.qualified_field(*position);
            let field = field.as_ref().clone().with_data_type(actual.clone());
            (qualifier.cloned(), Arc::new(field))
        })
        .collect();
    fields.extend(parameters.iter().map(|field| (None, Arc::new(field.clone()))));
    DFSchema::new_with_metadata(fields, std::collections::HashMap::default()).map_err(from_datafusion)
}

/// The parameters as columns, of which the first are moments.
fn parameter_fields(types: &[DataType], moments: usize) -> Vec<Field> {
    let name = |at: usize| match at.checked_sub(moments) {
        None => moment_column(at),
        Some(at) => parameter_column(&format!("${}", at + 1)),
    };
    types.iter().enumerate().map(|(at, of)| Field::new(name(at), of.clone(), true)).collect()
}

pub(super) fn compile(expr: &Expr, over: &DFSchema) -> SqlResult<Expression> {
    create_physical_expr(expr, over, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        .map_err(from_datafusion)
}

/// What the expression, which is of no column, means for a statement; without one, what it meant when it was planned.
pub(super) fn moment(expr: &Expr, session: Option<&Arc<Session>>) -> SqlResult<ScalarValue> {
    let expr = match session {
        Some(session) => functions::for_statement(expr.clone(), session).map_err(from_datafusion)?,
        None => expr.clone(),
    };
    let one = batch(&Arc::new(Schema::empty()), Vec::new(), 1)?;
    let value = evaluate(&compile(&expr, &DFSchema::empty())?, &one)?;
    ScalarValue::try_from_array(&value, 0).map_err(from_datafusion)
}

/// Whether the expression is of parameters alone.
pub(super) fn is_constant(expr: &Expr, over: &DFSchema) -> bool {
    expr.column_refs().into_iter().all(|column: &Column| over.maybe_index_of_column(column).is_some())
}

/// The form that values of both forms have: numerics of several rows come with the digits that each was sent with.
fn widest(left: DataType, right: DataType) -> DataType {
    match (left, right) {
        (DataType::Decimal128(a, a_scale), DataType::Decimal128(b, b_scale)) if 0 <= a_scale && 0 <= b_scale => {
            let digits = |precision, scale: i8| Digits::new(precision, scale.unsigned_abs());
            digits(a, a_scale).union_with(digits(b, b_scale)).sql_type().arrow_type()
        }
        (DataType::Null, form) | (form, _) => form,
    }
}

/// Rows written out, each with the `carried` parameters.
fn written(rows: &[Vec<Expression>], schema: &SchemaRef, one: &RecordBatch, carried: usize) -> SqlResult<RecordBatch> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len() + one.num_columns());
    for column in 0..schema.fields().len() {
        let form = schema.field(column).data_type();
        let cell = |row: &Vec<Expression>| {
            let cell = evaluate(&row[column], one)?;
            if cell.data_type() == form { Ok(cell) } else { cast(&cell, form).map_err(internal) }
        };
        let cells = rows.iter().map(cell).collect::<SqlResult<Vec<_>>>()?;
        columns.push(match cells.as_slice() {
            [cell] => Arc::clone(cell),
            cells => concat(&cells.iter().map(|cell| &**cell).collect::<Vec<_>>()).map_err(internal)?,
        });
    }
    if carried == 0 {
        return batch(schema, columns, rows.len());
    }
    columns.extend(repeated(one, rows.len())?);
    let fields = schema.fields().iter().chain(one.schema_ref().fields()).cloned();
    batch(&Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, rows.len())
}

/// The parameters beside so many rows.
pub(super) fn repeated(one: &RecordBatch, rows: usize) -> SqlResult<Vec<ArrayRef>> {
    if rows == 1 {
        return Ok(one.columns().to_vec());
    }
    let repeat = |values: &ArrayRef| {
        let value = ScalarValue::try_from_array(values, 0)?;
        value.to_array_of_size(rows)
    };
    one.columns().iter().map(|values| repeat(values).map_err(from_datafusion)).collect()
}

pub(super) fn evaluate(expr: &Expression, rows: &RecordBatch) -> SqlResult<ArrayRef> {
    expr.evaluate(rows).and_then(|value| value.into_array(rows.num_rows())).map_err(from_datafusion)
}

pub(super) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> SqlResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(internal)
}

pub(super) fn internal(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("rows by key: {error}"))
}
