//! Chains whose expressions are compiled for certain parameter types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use rowstore::StoredColumn;
use types::SqlResult;

use super::IndexUse;
use super::compiled_steps::{CompiledStep, LimitOffset};
use super::index_join::IndexJoinSource;
use super::index_range::IndexRangeSource;
use super::lookup_chain::{Chain, Source, Step, StepKind};
use super::row_projection::RowProjection;
use super::row_update::RowUpdate;
use super::stored_columns;
use super::unnest::UnnestSource;
use super::values_source::ValuesSource;
use super::vectorized_expression::{parameter_fields, step_input_schema};

/// Compiled chain: a source of rows and the steps applied to them.
#[derive(Debug)]
pub(super) struct CompiledChain {
    /// Types of the parameters.
    parameter_types: Vec<DataType>,
    /// Number of parameters appended to each row: all, or none if no step reads one.
    pub(super) parameter_columns: usize,
    /// True if no step reads the parameters as columns of one row, so that none has to be built.
    pub(super) ignores_parameter_row: bool,
    pub(super) parameter_schema: SchemaRef,
    pub(super) source: RowSource,
    pub(super) steps: Vec<CompiledStep>,
    /// Returned columns, if the steps only choose stored columns.
    pub(super) stored_columns: Option<Arc<[StoredColumn]>>,
    /// Like `plain`, for a query that locks its rows.
    pub(super) locked_columns: Option<Arc<[StoredColumn]>>,
    /// Projections computed value by value, if that is possible.
    pub(super) projection: Option<RowProjection>,
    /// UPDATE applied to the stored form of the rows, if that is possible.
    pub(super) update: Option<RowUpdate>,
}

/// Source of a compiled chain's rows.
#[derive(Debug)]
pub(super) enum RowSource {
    IndexRange(Box<IndexRangeSource>),
    IndexJoin(Box<IndexJoinSource>),
    /// No index helps: the plan has to be run.
    NoIndex,
    Values(ValuesSource),
    Unnest(UnnestSource),
    SingleRow,
    CallerRows {
        schema: SchemaRef,
    },
}

impl CompiledChain {
    /// Compiles a chain for parameters with the types of `values`.
    pub(super) fn compile(chain: &Chain, values: &[ScalarValue]) -> SqlResult<Self> {
        let types: Vec<DataType> = values.iter().map(ScalarValue::data_type).collect();
        let parameters = parameter_fields(&types, chain.statement_constants.len());
        let schema = Arc::new(Schema::new(parameters.clone()));
        let mut ordered = false;
        let source = match &chain.source {
            Source::Table { table, places } => {
                match IndexRangeSource::try_new(table, *places, &chain.steps, &parameters)? {
                    Some(keyed) => {
                        ordered = keyed.is_ordered;
                        RowSource::IndexRange(Box::new(keyed))
                    }
                    None => return Ok(Self::without_index(types, schema)),
                }
            }
            Source::InnerJoin { tables } => match IndexJoinSource::try_new(tables, &chain.steps, &parameters)? {
                Some(joined) => RowSource::IndexJoin(Box::new(joined)),
                None => return Ok(Self::without_index(types, schema)),
            },
            Source::Values { rows, schema } => RowSource::Values(ValuesSource::compile(rows, schema, &parameters)?),
            Source::Unnest { arrays, schema: made } => match UnnestSource::try_compile(arrays, made, &parameters)? {
                Some(unnested) => RowSource::Unnest(unnested),
                None => return Ok(Self::without_index(types, schema)),
            },
            Source::OneRow => RowSource::SingleRow,
            Source::CallerRows { schema } => RowSource::CallerRows { schema: Arc::clone(schema.inner()) },
        };
        let mut actual: Vec<DataType> = match &source {
            RowSource::IndexRange(keyed) => keyed.column_types(),
            RowSource::IndexJoin(joined) => joined.column_types(),
            RowSource::Values(ValuesSource { schema, .. })
            | RowSource::Unnest(UnnestSource { schema, .. })
            | RowSource::CallerRows { schema } => {
                schema.fields().iter().map(|field| field.data_type().clone()).collect()
            }
            RowSource::NoIndex | RowSource::SingleRow => Vec::new(),
        };
        let mut narrowed = match &source {
            RowSource::IndexRange(keyed) => Some(keyed.needed.clone()),
            RowSource::IndexJoin(joined) => Some(joined.needed.clone()),
            _ => None,
        };
        let needs_none = matches!(source, RowSource::Values(_) | RowSource::Unnest(_))
            && !chain.steps.iter().any(Step::reads_parameters);
        let carried = if needs_none { &[] } else { parameters.as_slice() };
        let mut steps = Vec::with_capacity(chain.steps.len());
        for step in &chain.steps {
            if matches!(step.kind, StepKind::Sort(_)) && std::mem::take(&mut ordered) {
                continue;
            }
            let over = step_input_schema(step, narrowed.as_deref(), &actual, carried)?;
            let run = CompiledStep::compile(&step.kind, &over, carried, &parameters)?;
            if let CompiledStep::Project(_, schema) | CompiledStep::Aggregate(_, schema) = &run {
                let count = schema.fields().len() - carried.len();
                actual = schema.fields()[..count].iter().map(|field| field.data_type().clone()).collect();
                narrowed = None;
            }
            steps.push(run);
        }
        let plain = match &source {
            RowSource::IndexRange(keyed) => {
                stored_columns::choose_stored_columns(&chain.steps, keyed, chain.locks_rows)?
            }
            _ => None,
        };
        let (plain, locked) = if chain.locks_rows { (None, plain) } else { (plain, None) };
        let patch = match &source {
            RowSource::IndexRange(keyed) if chain.is_update && keyed.range_implies_filters => {
                RowUpdate::try_new(&keyed.table, &chain.steps, &parameters)?
            }
            _ => None,
        };
        let carried = carried.len();
        let is_cut = steps.iter().any(|step| matches!(step, CompiledStep::Limit { .. }));
        let is_apart =
            matches!(&source, RowSource::Values(written) if carried == 0 && !is_cut && written.is_vectorized());
        let is_computed = plain.is_none() && !chain.locks_rows && patch.is_none();
        let row_by_row = is_computed.then(|| RowProjection::try_new(&source, &steps, &schema, carried)).flatten();
        Ok(Self {
            parameter_types: types,
            parameter_columns: carried,
            ignores_parameter_row: is_apart,
            parameter_schema: schema,
            source,
            steps,
            stored_columns: plain,
            locked_columns: locked,
            projection: row_by_row,
            update: patch,
        })
    }

    /// Returns the form of a chain whose rows no index finds.
    fn without_index(types: Vec<DataType>, schema: SchemaRef) -> Self {
        Self {
            parameter_types: types,
            parameter_columns: 0,
            ignores_parameter_row: false,
            parameter_schema: schema,
            source: RowSource::NoIndex,
            steps: Vec::new(),
            stored_columns: None,
            locked_columns: None,
            projection: None,
            update: None,
        }
    }

    /// Returns true if it was compiled for parameters of these types.
    pub(super) fn matches_types(&self, values: &[ScalarValue]) -> bool {
        self.parameter_types.len() == values.len()
            && self.parameter_types.iter().zip(values).all(|(of, value)| *of == value.data_type())
    }

    /// Returns the indexes that find the rows.
    pub(super) fn index_uses(&self) -> Vec<IndexUse> {
        match &self.source {
            RowSource::IndexRange(keyed) => vec![keyed.index_use()],
            RowSource::IndexJoin(joined) => joined.index_uses(),
            _ => Vec::new(),
        }
    }

    /// Returns true if the first row of the index range gives the result (MIN or MAX).
    pub(super) fn needs_first_row_only(&self) -> bool {
        matches!(&self.source, RowSource::IndexRange(keyed) if keyed.needs_first_row_only)
    }

    /// Returns the number of source rows that may be enough, if they come in order and only filters and projections
    /// precede LIMIT.
    pub(super) fn source_row_limit(&self, counts: LimitOffset) -> Option<usize> {
        if self.needs_first_row_only() {
            return Some(1);
        }
        let before = self.steps.iter().take_while(|step| !matches!(step, CompiledStep::Limit { .. }));
        let is_plain = before.clone().all(|step| matches!(step, CompiledStep::Filter(_) | CompiledStep::Project(..)));
        let fetch = counts.fetch.filter(|_| is_plain && before.count() < self.steps.len())?;
        Some((counts.skip + fetch).max(1))
    }
}
