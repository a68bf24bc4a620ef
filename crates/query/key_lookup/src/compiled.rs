//! A chain whose expressions are compiled for parameters of certain types.

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

/// A chain that can run.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Of the parameters.
    types: Vec<DataType>,
    /// How many parameters lie beside the rows: all, or none where no step reads one.
    pub(super) carried: usize,
    /// No step asks for the parameters as columns of one row.
    pub(super) is_apart: bool,
    pub(super) schema: SchemaRef,
    pub(super) source: Rows,
    pub(super) steps: Vec<Run>,
    /// The columns that are given as they are stored, where no step does more.
    pub(super) plain: Option<Arc<[StoredColumn]>>,
    /// As `plain`, of a query that locks its rows.
    pub(super) locked: Option<Arc<[StoredColumn]>>,
    /// What becomes of each row, where it can be made value by value.
    pub(super) row_by_row: Option<RowByRow>,
    /// What an UPDATE does, where it can be done to the rows as they are stored.
    pub(super) patch: Option<Patch>,
}

#[derive(Debug)]
pub(super) enum Rows {
    Keyed(Box<KeyedRows>),
    Joined(Box<JoinedRows>),
    /// No index helps.
    Scanned,
    Written(WrittenRows),
    Unnested(UnnestedRows),
    One,
    Given {
        schema: SchemaRef,
    },
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

    /// Of a chain whose rows no index finds.
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

    /// Whether it is for parameters of the types of these.
    pub(super) fn takes(&self, values: &[ScalarValue]) -> bool {
        self.types.len() == values.len() && self.types.iter().zip(values).all(|(of, value)| *of == value.data_type())
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
}
