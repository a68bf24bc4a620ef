//! A table of the catalog as DataFusion plans it; how its shards are read is execution's part, behind [`PlanScan`].

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use catalog::{Column, Table, TableRows};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result as DfResult, ScalarValue, Statistics};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::future::{BoxFuture, ready};
use session_context::{ListedFiles, Pin};
use shards::{Datum, ShardReader};
use types::SqlType;

use crate::estimate::KnownRows;

/// Turns the scan of a table into an operator.
pub trait PlanScan: Send + Sync + fmt::Debug {
    /// A scan of `table` that gives the columns of `projection` (all without one). `filters` are conjuncts to prune by: rows
    /// that fail them may be left out and are filtered again above; `limit` is how many rows are enough, filters aside.
    ///
    /// # Errors
    /// What cannot be planned, as a `SqlError` within [`datafusion::error::DataFusionError::External`].
    fn plan_scan(
        &self,
        table: &ShardTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
        session: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>>;
}

/// A column that scans for statements that change or lock rows have after the table's own: the row's identity.
pub const ROW_ID: &str = "__row_id";
/// The column after it: where the row is, -1 for a fresh one, else the number of its shard in `shards` << 32 | its number in the shard.
pub const PLACE: &str = "__place";

/// A table with the rows of one snapshot.
pub struct ShardTable {
    /// With the columns of the schema, which may be fewer than the table has.
    pub table: Arc<Table>,
    /// As the catalog has it.
    pub whole: Arc<Table>,
    pub rows: Arc<TableRows>,
    /// Whether the schema ends in [`ROW_ID`] and [`PLACE`].
    pub places: bool,
    /// Keeps the rows of a past state from being deleted.
    pub pin: Option<Pin>,
    /// The files of an external table, opened: one for each of its shards.
    pub files: Option<Arc<[ShardReader]>>,
    /// Facts that rules have found out about the rows.
    pub known: KnownRows,
    schema: SchemaRef,
    planner: Arc<dyn PlanScan>,
}

impl ShardTable {
    /// `table` with `rows`, read by scans that `planner` makes.
    #[must_use]
    pub fn new(table: Arc<Table>, rows: Arc<TableRows>, planner: Arc<dyn PlanScan>) -> Self {
        let schema = schema_of(&table.columns);
        let whole = Arc::clone(&table);
        Self { table, whole, rows, places: false, pin: None, files: None, known: KnownRows::default(), schema, planner }
    }

    /// Planned as `narrow`, which is the same with fewer columns.
    #[must_use]
    pub fn only(self, narrow: Arc<Table>) -> Self {
        Self { schema: schema_of(&narrow.columns), table: narrow, ..self }
    }

    /// The same with other rows.
    #[must_use]
    pub fn with_rows(&self, rows: Arc<TableRows>) -> Self {
        Self {
            table: Arc::clone(&self.table),
            whole: Arc::clone(&self.whole),
            rows,
            places: self.places,
            pin: self.pin.clone(),
            files: self.files.clone(),
            known: KnownRows::default(),
            schema: Arc::clone(&self.schema),
            planner: Arc::clone(&self.planner),
        }
    }

    /// An external `table` with the files that are `listed`.
    #[must_use]
    pub fn of_files(table: Arc<Table>, listed: ListedFiles, planner: Arc<dyn PlanScan>) -> Self {
        Self { files: Some(listed.readers), ..Self::new(table, listed.rows, planner) }
    }

    /// The table with what keeps its rows from being deleted.
    #[must_use]
    pub fn held_by(self, pin: Option<Pin>) -> Self {
        Self { pin, ..self }
    }

    /// The table with the columns that say which row each is.
    #[must_use]
    pub fn with_places(self) -> Self {
        let place = |name| Arc::new(SqlType::Int8.arrow_field(name, false));
        let fields = self.schema.fields().iter().cloned().chain([ROW_ID, PLACE].map(place));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { schema, places: true, ..self }
    }

    /// What the shards say about the columns of the schema, or of a `projection` of it. The number of rows is exact; what is said of columns is
    /// where all rows lie in shards, bounds where no text was cut.
    #[must_use]
    pub fn table_statistics(&self, projection: Option<&Vec<usize>>) -> Statistics {
        let column = |index: usize| match self.table.columns.get(index) {
            Some(column) => self.column_statistics(column),
            // Of the places of rows nothing is said.
            None => ColumnStatistics::new_unknown(),
        };
        let (columns, bytes): (Vec<_>, _) = match projection {
            Some(projection) => {
                let columns: Vec<_> = projection.iter().copied().map(column).collect();
                let bytes = columns.iter().filter_map(|column| column.byte_size.get_value()).sum();
                (columns, bytes)
            }
            None => {
                let bytes = to_usize(self.rows.shards.bytes + self.rows.fresh.memory_bytes());
                ((0..self.schema.fields().len()).map(column).collect(), bytes)
            }
        };
        Statistics {
            num_rows: Precision::Exact(to_usize(self.rows.len())),
            total_byte_size: Precision::Inexact(bytes),
            column_statistics: columns,
        }
    }

    /// Whether all there is lies in shards that have no NULL in a column, by its place in the schema. Of no shards nobody needs to know.
    pub fn has_no_null(&self, place: usize) -> bool {
        let column = self.table.columns.get(place);
        let is_known = self.files.is_none() && self.rows.is_settled() && self.rows.shards.live_rows() != 0;
        is_known && column.is_some_and(|column| self.rows.shards.summary(column).nulls == 0)
    }

    fn column_statistics(&self, column: &Column) -> ColumnStatistics {
        let summary = self.rows.shards.summary(column);
        let bound = |datum: &Option<Datum>| {
            let value = datum.as_ref().and_then(|datum| scalar(datum, &column.sql_type));
            match value {
                Some(value) if summary.bounds_exact => Precision::Exact(value),
                Some(value) => Precision::Inexact(value),
                None => Precision::Absent,
            }
        };
        let statistics = ColumnStatistics {
            null_count: Precision::Exact(to_usize(summary.nulls)),
            max_value: bound(&summary.max),
            min_value: bound(&summary.min),
            sum_value: Precision::Absent,
            distinct_count: Precision::Inexact(to_usize(summary.distinct)),
            byte_size: Precision::Inexact(to_usize(summary.bytes)),
        };
        if self.files.is_some() {
            // Bounds may be cut, and how many values there are is not said.
            return ColumnStatistics { distinct_count: Precision::Absent, ..statistics.to_inexact() };
        }
        match (self.rows.is_settled(), self.rows.fresh.is_empty() && self.rows.own.layer.is_empty()) {
            (true, _) => statistics,
            (false, true) => statistics.to_inexact(),
            // Fresh rows may lie beyond the bounds of shards, and bounds are believed: a column with one value between them is not sorted by.
            (false, false) => ColumnStatistics {
                min_value: Precision::Absent,
                max_value: Precision::Absent,
                ..statistics.to_inexact()
            },
        }
    }
}

/// The Arrow schema of columns, SQL types in the fields' metadata.
#[must_use]
pub fn schema_of(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| column.sql_type.arrow_field(&column.name, !column.not_null);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// A statistics value as the planner compares it; `None` where the type has no such values.
#[must_use]
pub fn scalar(datum: &Datum, sql_type: &SqlType) -> Option<ScalarValue> {
    Some(match (datum, sql_type) {
        (Datum::Bool(value), SqlType::Bool) => ScalarValue::Boolean(Some(*value)),
        (Datum::Int(value), SqlType::Int2) => ScalarValue::Int16(Some(i16::try_from(*value).ok()?)),
        (Datum::Int(value), SqlType::Int4) => ScalarValue::Int32(Some(i32::try_from(*value).ok()?)),
        (Datum::Int(value), SqlType::Int8) => ScalarValue::Int64(Some(*value)),
        (Datum::Int(value), SqlType::Date) => ScalarValue::Date32(Some(i32::try_from(*value).ok()?)),
        (Datum::Int(value), SqlType::Time) => ScalarValue::Time64Microsecond(Some(*value)),
        (Datum::Int(value), SqlType::Timestamp) => ScalarValue::TimestampMicrosecond(Some(*value), None),
        (Datum::Int(value), SqlType::TimestampTz) => {
            ScalarValue::TimestampMicrosecond(Some(*value), Some(types::arrow_field::UTC.into()))
        }
        (Datum::Decimal(value), SqlType::Numeric { precision, scale }) => {
            ScalarValue::Decimal128(Some(*value), *precision, i8::try_from(*scale).ok()?)
        }
        (Datum::Float(value), SqlType::Float8) => ScalarValue::Float64(Some(*value)),
        #[expect(clippy::cast_possible_truncation, reason = "a float4's bound is a float4")]
        (Datum::Float(value), SqlType::Float4) => ScalarValue::Float32(Some(*value as f32)),
        (Datum::Text(value), SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_)) => {
            ScalarValue::Utf8View(Some(value.clone()))
        }
        _ => return None,
    })
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl fmt::Debug for ShardTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardTable").field("table", &self.table.name).field("rows", &self.rows.len()).finish()
    }
}

impl TableProvider for ShardTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    // Without `async`: see `StreamTable`.
    fn scan<'a, 'b, 'c, 'd, 'e>(
        &'a self,
        session: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        filters: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'e, DfResult<Arc<dyn ExecutionPlan>>>
    where
        'a: 'e,
        'b: 'e,
        'c: 'e,
        'd: 'e,
        Self: 'e,
    {
        Box::pin(ready(self.planner.plan_scan(self, projection, filters, limit, session)))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.table_statistics(None))
    }
}
