//! System tables as DataFusion tables, whose rows are computed from the statement's snapshot when the statement is
//! physically planned.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DfResult;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use functions::error::to_datafusion;
use futures::future::{BoxFuture, ready};
use session_context::StatementContext;

use super::row_builder::RowBuilder;
use super::row_source::{RowRestriction, RowSource, VisibleRelations};
use super::table_definition::{ParsedTableDefinition, SystemTables};

/// Table of `pg_catalog`, `information_schema` or `sys`, for one statement.
pub(super) struct SystemTable {
    relation: Arc<ParsedTableDefinition>,
    context: Arc<StatementContext>,
    system_tables: &'static SystemTables,
}

impl SystemTable {
    /// Finds the table called `name` in `schema`.
    pub(super) fn find(
        schema: &str,
        name: &str,
        context: &Arc<StatementContext>,
        system_tables: &'static SystemTables,
    ) -> Option<Self> {
        let relation = Arc::clone(system_tables.find(schema, name)?);
        Some(Self { relation, context: Arc::clone(context), system_tables })
    }

    /// Computes the rows, restricted by `filters` where the table can use them, and plans a scan of them.
    fn plan_rows(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> DfResult<Arc<dyn ExecutionPlan>> {
        let relations = VisibleRelations { context: &self.context, system_tables: self.system_tables };
        let source = RowSource::new(relations, restriction(filters, &self.relation.arrow_schema));
        let mut rows = RowBuilder::new(&self.relation);
        (self.relation.definition.rows)(&source, &mut rows);
        if let Some(error) = rows.take_failure() {
            return Err(to_datafusion(error));
        }
        let batch = rows.finish()?;
        let batches = if batch.num_rows() == 0 { Vec::new() } else { vec![batch] };
        Ok(MemorySourceConfig::try_new_exec(&[batches], self.schema(), projection.cloned())?)
    }
}

impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.relation.arrow_schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    // Returns a boxed future instead of being `async`: see `plan::StreamTable`.
    fn scan<'a, 'b, 'c, 'd, 'e>(
        &'a self,
        _session: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        filters: &'d [Expr],
        _limit: Option<usize>,
    ) -> BoxFuture<'e, DfResult<Arc<dyn ExecutionPlan>>>
    where
        'a: 'e,
        'b: 'e,
        'c: 'e,
        'd: 'e,
        Self: 'e,
    {
        Box::pin(ready(self.plan_rows(projection, filters)))
    }

    /// Equality filters on the first column, such as `attrelid` or `token`, may reduce the rows that are computed;
    /// DataFusion still applies all filters.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// Extracts the restriction of the first column of `schema` from filters such as `attrelid = 16384`.
fn restriction(filters: &[Expr], schema: &Schema) -> RowRestriction {
    let mut wanted = RowRestriction::default();
    for filter in filters {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = filter else { continue };
        if let (Expr::Column(column), Expr::Literal(value, _)) | (Expr::Literal(value, _), Expr::Column(column)) =
            (left.as_ref(), right.as_ref())
            && schema.index_of(&column.name).is_ok_and(|position| position == 0)
        {
            wanted.first_column = Some(value.clone());
        }
    }
    wanted
}

impl fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemTable({}.{})", self.relation.definition.schema, self.relation.definition.name)
    }
}
