//! Chains whose expressions are compiled for certain parameter types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use rowstore::StoredColumn;
use types::SqlResult;

use super::IndexUse;
use super::chain::{Chain, Effect, Source, Step};
use super::expression::{parameter_fields, schema_over};
use super::join::JoinedRows;
use super::patch::Patch;
use super::plain;
use super::row_by_row::RowByRow;
use super::source::KeyedRows;
use super::steps::{Counts, Run};
use super::unnested::UnnestedRows;
use super::written::WrittenRows;

/// Compiled chain: a source of rows and the steps applied to them.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Types of the parameters.
    types: Vec<DataType>,
    /// Number of parameters appended to each row: all, or none if no step reads one.
    pub(super) carried: usize,
    /// True if no step reads the parameters as columns of one row, so that none has to be built.
    pub(super) is_apart: bool,
    pub(super) schema: SchemaRef,
    pub(super) source: Rows,
    pub(super) steps: Vec<Run>,
    /// Returned columns, if the steps only choose stored columns.
    pub(super) plain: Option<Arc<[StoredColumn]>>,
    /// Like `plain`, for a query that locks its rows.
    pub(super) locked: Option<Arc<[StoredColumn]>>,
    /// Projections computed value by value, if that is possible.
    pub(super) row_by_row: Option<RowByRow>,
    /// UPDATE applied to the stored form of the rows, if that is possible.
    pub(super) patch: Option<Patch>,
}

/// Source of a compiled chain's rows.
#[derive(Debug)]
pub(super) enum Rows {
    Keyed(Box<KeyedRows>),
    Joined(Box<JoinedRows>),
    /// No index helps: the plan has to be run.
    Scanned,
    Written(WrittenRows),
    Unnested(UnnestedRows),
    One,
    Given {
        schema: SchemaRef,
    },
}

impl Compiled {
    /// Compiles a chain for parameters with the types of `values`.
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
            Source::Rows { rows, schema } => Rows::Written(WrittenRows::of(rows, schema, &parameters)?),
            Source::Unnested { arrays, schema: made } => match UnnestedRows::of(arrays, made, &parameters)? {
                Some(unnested) => Rows::Unnested(unnested),
                None => return Ok(Self::of_scanned(types, schema)),
            },
            Source::OneRow => Rows::One,
            Source::Given { schema } => Rows::Given { schema: Arc::clone(schema.inner()) },
        };
        let mut actual: Vec<DataType> = match &source {
            Rows::Keyed(keyed) => keyed.types(),
            Rows::Joined(joined) => joined.types(),
            Rows::Written(WrittenRows { schema, .. })
            | Rows::Unnested(UnnestedRows { schema, .. })
            | Rows::Given { schema } => schema.fields().iter().map(|field| field.data_type().clone()).collect(),
            Rows::Scanned | Rows::One => Vec::new(),
        };
        let mut narrowed = match &source {
            Rows::Keyed(keyed) => Some(keyed.needed.clone()),
            Rows::Joined(joined) => Some(joined.needed.clone()),
            _ => None,
        };
        let needs_none =
            matches!(source, Rows::Written(_) | Rows::Unnested(_)) && !chain.steps.iter().any(Step::reads_parameters);
        let carried = if needs_none { &[] } else { parameters.as_slice() };
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
        let is_cut = steps.iter().any(|step| matches!(step, Run::Cut { .. }));
        let is_apart = matches!(&source, Rows::Written(written) if carried == 0 && !is_cut && written.is_alike());
        let is_computed = plain.is_none() && !chain.is_locking && patch.is_none();
        let row_by_row = is_computed.then(|| RowByRow::of(&source, &steps, &schema, carried)).flatten();
        Ok(Self { types, carried, is_apart, schema, source, steps, plain, locked, row_by_row, patch })
    }

    /// Returns the form of a chain whose rows no index finds.
    fn of_scanned(types: Vec<DataType>, schema: SchemaRef) -> Self {
        Self {
            types,
            carried: 0,
            is_apart: false,
            schema,
            source: Rows::Scanned,
            steps: Vec::new(),
            plain: None,
            locked: None,
            row_by_row: None,
            patch: None,
        }
    }

    /// Returns true if it was compiled for parameters of these types.
    pub(super) fn takes(&self, values: &[ScalarValue]) -> bool {
        self.types.len() == values.len() && self.types.iter().zip(values).all(|(of, value)| *of == value.data_type())
    }

    /// Returns the indexes that find the rows.
    pub(super) fn described(&self) -> Vec<IndexUse> {
        match &self.source {
            Rows::Keyed(keyed) => vec![keyed.described()],
            Rows::Joined(joined) => joined.described(),
            _ => Vec::new(),
        }
    }

    /// Returns true if the first row of the index range gives the result (MIN or MAX).
    pub(super) fn is_extreme(&self) -> bool {
        matches!(&self.source, Rows::Keyed(keyed) if keyed.is_extreme)
    }

    /// Returns the number of source rows that may be enough, if they come in order and only filters and projections
    /// precede LIMIT.
    pub(super) fn wanted(&self, counts: Counts) -> Option<usize> {
        if self.is_extreme() {
            return Some(1);
        }
        let before = self.steps.iter().take_while(|step| !matches!(step, Run::Cut { .. }));
        let is_plain = before.clone().all(|step| matches!(step, Run::Filter(_) | Run::Project(..)));
        let fetch = counts.fetch.filter(|_| is_plain && before.count() < self.steps.len())?;
        Some((counts.skip + fetch).max(1))
    }
}
