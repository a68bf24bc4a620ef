//! A table of the catalog as DataFusion plans it; a later crate plans the scan of its shards, behind [`TableScanPlanner`].

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
use session_context::{ListedFiles, SnapshotPin};
use shards::{Datum, ShardReader};
use types::SqlType;

use crate::estimate::EstimateCache;

/// Planner of table scans.
pub trait TableScanPlanner: Send + Sync + fmt::Debug {
    /// Plans a scan of `table` that returns the columns of `projection`, or all.
    ///
    /// `filters` are conjuncts to prune by: the scan may omit rows that fail them, and the plan filters again above it.
    /// `limit` is the number of rows that suffice, ignoring filters.
    ///
    /// # Errors
    /// A `SqlError` within [`datafusion::error::DataFusionError::External`].
    fn plan_scan(
        &self,
        table: &ShardTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
        session: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>>;
}

/// Column with the row's id, which scans for statements that change or lock rows add after the table's columns.
pub const ROW_ID: &str = "__row_id";
/// Column with the row's position, after [`ROW_ID`]: -1 for a fresh row, else index of the shard << 32 | ordinal in it.
pub const ROW_POSITION: &str = "__place";

/// Table with the rows of one snapshot, as a leaf of plans.
pub struct ShardTable {
    /// Definition with the columns of the schema, which may be fewer than the table has.
    pub table: Arc<Table>,
    /// Definition in the catalog, with all columns.
    pub catalog_table: Arc<Table>,
    pub rows: Arc<TableRows>,
    /// True if the schema ends in [`ROW_ID`] and [`ROW_POSITION`].
    pub has_row_positions: bool,
    /// Guard that keeps the rows of a historical snapshot from being deleted.
    pub pin: Option<SnapshotPin>,
    /// Opened files of an external table, one for each of its shards.
    pub files: Option<Arc<[ShardReader]>>,
    /// Cached estimates about the rows.
    pub estimates: EstimateCache,
    schema: SchemaRef,
    planner: Arc<dyn TableScanPlanner>,
}

impl ShardTable {
    /// Creates a table with the rows of a snapshot, whose scans `planner` plans.
    #[must_use]
    pub fn new(table: Arc<Table>, rows: Arc<TableRows>, planner: Arc<dyn TableScanPlanner>) -> Self {
        let schema = schema_of(&table.columns);
        let whole = Arc::clone(&table);
        Self {
            table,
            catalog_table: whole,
            rows,
            has_row_positions: false,
            pin: None,
            files: None,
            estimates: EstimateCache::default(),
            schema,
            planner,
        }
    }

    /// Reduces the schema to the columns of `narrow`, the same table with fewer columns.
    #[must_use]
    pub fn with_columns_of(self, narrow: Arc<Table>) -> Self {
        Self { schema: schema_of(&narrow.columns), table: narrow, ..self }
    }

    /// Returns a copy with other rows.
    #[must_use]
    pub fn with_rows(&self, rows: Arc<TableRows>) -> Self {
        Self {
            table: Arc::clone(&self.table),
            catalog_table: Arc::clone(&self.catalog_table),
            rows,
            has_row_positions: self.has_row_positions,
            pin: self.pin.clone(),
            files: self.files.clone(),
            estimates: EstimateCache::default(),
            schema: Arc::clone(&self.schema),
            planner: Arc::clone(&self.planner),
        }
    }

    /// Creates an external table with its listed files.
    #[must_use]
    pub fn from_files(table: Arc<Table>, listed: ListedFiles, planner: Arc<dyn TableScanPlanner>) -> Self {
        Self { files: Some(listed.readers), ..Self::new(table, listed.rows, planner) }
    }

    /// Sets the guard that keeps the rows from being deleted.
    #[must_use]
    pub fn with_pin(self, pin: Option<SnapshotPin>) -> Self {
        Self { pin, ..self }
    }

    /// Adds the columns [`ROW_ID`] and [`ROW_POSITION`] to the schema.
    #[must_use]
    pub fn with_row_positions(self) -> Self {
        let place = |name| Arc::new(SqlType::Int8.arrow_field(name, false));
        let fields = self.schema.fields().iter().cloned().chain([ROW_ID, ROW_POSITION].map(place));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { schema, has_row_positions: true, ..self }
    }

    /// Computes statistics of the columns of the schema, or of a projection of it.
    ///
    /// The number of rows is exact. Column statistics are exact if all rows are in shards, bounds only if no text was
    /// truncated.
    #[must_use]
    pub fn table_statistics(&self, projection: Option<&Vec<usize>>) -> Statistics {
        let column = |index: usize| match self.table.columns.get(index) {
            Some(column) => self.column_statistics(column),
            // Row ids and positions have no statistics.
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

    /// Returns whether statistics prove that a column, by its position in the schema, has no NULL; false for an empty
    /// table.
    pub fn has_no_null(&self, place: usize) -> bool {
        let column = self.table.columns.get(place);
        let is_known = self.files.is_none() && self.rows.is_fully_flushed() && self.rows.shards.live_rows() != 0;
        is_known && column.is_some_and(|column| self.rows.shards.summary(column).nulls == 0)
    }

    fn column_statistics(&self, column: &Column) -> ColumnStatistics {
        let summary = self.rows.shards.summary(column);
        let bound = |datum: &Option<Datum>| {
            let value = datum.as_ref().and_then(|datum| datum_to_scalar(datum, &column.sql_type));
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
            // Bounds may be truncated, and files have no counts of distinct values.
            return ColumnStatistics { distinct_count: Precision::Absent, ..statistics.to_inexact() };
        }
        match (self.rows.is_fully_flushed(), self.rows.fresh.is_empty() && self.rows.own_rows.layer.is_empty()) {
            (true, _) => statistics,
            (false, true) => statistics.to_inexact(),
            // Fresh rows may lie beyond the bounds of shards, and DataFusion relies even on inexact bounds: it does not
            // sort by a column whose bounds are equal.
            (false, false) => ColumnStatistics {
                min_value: Precision::Absent,
                max_value: Precision::Absent,
                ..statistics.to_inexact()
            },
        }
    }
}

/// Returns the Arrow schema of columns, with SQL types in the fields' metadata.
#[must_use]
pub fn schema_of(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| column.sql_type.arrow_field(&column.name, !column.not_null);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Converts a statistics value to a scalar of the planner; `None` if the type has no such values.
#[must_use]
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its bounds are known or not")]
pub fn datum_to_scalar(datum: &Datum, sql_type: &SqlType) -> Option<ScalarValue> {
    let int = || if let Datum::Int(value) = datum { Some(*value) } else { None };
    let float = || if let Datum::Float(value) = datum { Some(*value) } else { None };
    Some(match sql_type {
        SqlType::Bool => {
            let Datum::Bool(value) = datum else { return None };
            ScalarValue::Boolean(Some(*value))
        }
        SqlType::Int2 => ScalarValue::Int16(Some(i16::try_from(int()?).ok()?)),
        SqlType::Int4 => ScalarValue::Int32(Some(i32::try_from(int()?).ok()?)),
        SqlType::Int8 => ScalarValue::Int64(Some(int()?)),
        SqlType::Date => ScalarValue::Date32(Some(i32::try_from(int()?).ok()?)),
        SqlType::Time => ScalarValue::Time64Microsecond(Some(int()?)),
        SqlType::Timestamp => ScalarValue::TimestampMicrosecond(Some(int()?), None),
        SqlType::TimestampTz => {
            ScalarValue::TimestampMicrosecond(Some(int()?), Some(types::arrow_field::TIMESTAMPTZ_ZONE.into()))
        }
        SqlType::Numeric { precision, scale } => {
            let Datum::Decimal(value) = datum else { return None };
            ScalarValue::Decimal128(Some(*value), *precision, i8::try_from(*scale).ok()?)
        }
        SqlType::Float8 => ScalarValue::Float64(Some(float()?)),
        #[expect(clippy::cast_possible_truncation, reason = "a float4's bound is a float4")]
        SqlType::Float4 => ScalarValue::Float32(Some(float()? as f32)),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => {
            let Datum::Text(value) = datum else { return None };
            ScalarValue::Utf8View(Some(value.clone()))
        }
        // Not used by estimates.
        SqlType::Interval
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_)
        | SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => return None,
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
