//! Shared table: a DataFusion table provider whose rows are the result of a plan and are computed once per run.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, Result, TableReference, internal_datafusion_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Projection, TableProviderFilterPushDown, TableScanBuilder, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use futures::future::{BoxFuture, ready};
use plan::estimate::RelationEstimate;
use plan::{take_unique_name, unique_name};

/// Relation name of a shared table's columns within its own plan, whose other relations it hides.
const SHARED_RELATION_NAME: &str = "shared";

/// Physical planner for scans of shared tables in one run.
pub trait SharedScanPlanner: std::fmt::Debug + Send + Sync {
    /// Returns the operator that reads a table. `columns` are indices in the table's schema, in output order.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    fn plan_scan(
        &self,
        table: &SharedTable,
        columns: &[usize],
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>>;
}

/// Session configuration extension with the planner for scans of shared tables in one run.
#[derive(Debug)]
pub struct SharedScanExtension(pub Arc<dyn SharedScanPlanner>);

/// Table whose rows are the result of a part of a plan.
pub struct SharedTable {
    /// Number among the shared tables of the plan.
    pub(super) number: usize,
    /// Alias of the part's first occurrence; `subquery` if it has none.
    name: String,
    /// Columns with unique names.
    pub(super) schema: SchemaRef,
    /// Optimized plan of all rows and columns, with unique column names.
    pub(super) plan: LogicalPlan,
    estimate: RelationEstimate,
    /// Whether the table is a MATERIALIZED WITH query.
    is_materialized: bool,
    /// Whether readers get the rows in the order in which the plan produces them.
    is_ordered: bool,
}

impl SharedTable {
    /// Creates the table of a repeated part. `body` is the result of [`with_unique_names`], optimized.
    pub(super) fn new(number: usize, name: Option<&str>, body: LogicalPlan, estimate: RelationEstimate) -> Self {
        let schema = Arc::new(Schema::new(body.schema().fields().clone()));
        let name = name.unwrap_or("subquery").to_owned();
        Self { number, name, schema, plan: body, estimate, is_materialized: false, is_ordered: false }
    }

    /// Makes it the table of a MATERIALIZED WITH query, whose columns are `fields` in the enclosing plan.
    pub(super) fn into_materialized(self, fields: &Fields, is_ordered: bool) -> Self {
        Self { schema: Arc::new(Schema::new(fields.clone())), is_materialized: true, is_ordered, ..self }
    }

    /// Returns the alias of the part's first occurrence; `subquery` if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether readers get the rows in the order in which the plan produces them.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Returns the estimated number of rows.
    #[must_use]
    pub fn expected_rows(&self) -> f64 {
        self.estimate.rows
    }

    /// Returns whether the table is a MATERIALIZED WITH query.
    #[must_use]
    pub fn is_materialized(&self) -> bool {
        self.is_materialized
    }

    /// Returns the number of columns.
    pub(super) fn column_count(&self) -> usize {
        self.schema.fields().len()
    }

    /// Returns the name of a column in the table's own plan.
    pub(super) fn plan_column(&self, column: usize) -> Column {
        self.plan.schema().columns().swap_remove(column)
    }

    /// Returns the estimate of the rows, for the columns of `projection`, or for all columns without one.
    pub(crate) fn relation(&self, projection: Option<&Vec<usize>>) -> RelationEstimate {
        match projection {
            Some(projection) => {
                let columns = projection.iter().filter_map(|column| self.estimate.columns.get(*column).cloned());
                RelationEstimate { rows: self.estimate.rows, columns: columns.collect() }
            }
            None => self.estimate.clone(),
        }
    }

    /// Returns whether these columns have exactly the types, nullability and metadata of `others`.
    pub(super) fn has_types_of(&self, columns: &[usize], others: &DFSchema) -> bool {
        let are_alike = |(own, other): (&usize, &Arc<Field>)| {
            let own = self.schema.field(*own);
            own.data_type() == other.data_type()
                && own.is_nullable() == other.is_nullable()
                && own.metadata() == other.metadata()
        };
        columns.len() == others.fields().len() && columns.iter().zip(others.fields()).all(are_alike)
    }

    /// Returns a scan of columns, renamed to `named`, the schema of the part that the scan replaces. `name` is the scan's
    /// relation name, which no other relation of the plan has.
    pub(super) fn scan(
        self: &Arc<Self>,
        name: TableReference,
        columns: &[usize],
        named: &DFSchema,
    ) -> Result<LogicalPlan> {
        let source = provider_as_source(Arc::<Self>::clone(self));
        let columns = columns.iter().zip(named.iter()).map(|(column, (relation, field))| {
            let column = Column::new(Some(name.clone()), self.schema.field(*column).name());
            Expr::Column(column).alias_qualified(relation.cloned(), field.name())
        });
        let columns = columns.collect();
        let scan = TableScanBuilder::new(name, source).build()?;
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::TableScan(scan)))?))
    }

    /// Returns the operator that reads the rows in the current run.
    fn plan_scan(&self, session: &dyn Session, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let scans = session.config().get_extension::<SharedScanExtension>();
        let scans = scans.ok_or_else(|| internal_datafusion_err!("{self:?} is read outside of a run"))?;
        let all: Vec<usize> = (0..self.column_count()).collect();
        scans.0.plan_scan(self, projection.unwrap_or(&all), session)
    }
}

/// Returns the plan with unique column names, all in one relation. Optimizer rules may change the names of a plan's
/// columns, but not the names under such an alias.
pub(super) fn with_unique_names(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let mut names: HashSet<String> = columns.iter().map(|column| column.name.clone()).collect();
    let is_named = names.len() == columns.len();
    let plan = LogicalPlanBuilder::from(plan);
    if is_named {
        return plan.alias(SHARED_RELATION_NAME)?.build();
    }
    let mut seen = HashSet::new();
    let columns = columns.into_iter().map(|column| {
        if seen.insert(column.name.clone()) {
            return Expr::Column(column);
        }
        let name = take_unique_name(&mut names, &column.name);
        Expr::Column(column).alias(name)
    });
    plan.project(columns.collect::<Vec<_>>())?.alias(SHARED_RELATION_NAME)?.build()
}

/// Adds the names of all relations of a plan and its subqueries to `names`.
pub(super) fn collect_relation_names(plan: &LogicalPlan, names: &mut HashSet<TableReference>) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::SubqueryAlias(alias) => names.insert(alias.alias.clone()),
            LogicalPlan::TableScan(scan) => names.insert(scan.table_name.clone()),
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns a relation name that is not among `taken`, and adds it to them.
pub(super) fn take_unique_relation(taken: &mut HashSet<TableReference>, name: &str) -> TableReference {
    let found = TableReference::bare(unique_name(name, |name| taken.contains(&TableReference::bare(name))));
    taken.insert(found.clone());
    found
}

impl std::fmt::Debug for SharedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedTable").field("name", &self.name).field("number", &self.number).finish_non_exhaustive()
    }
}

impl TableProvider for SharedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    // Without `async`: see `plan::StreamTable`.
    fn scan<'a, 'b, 'c, 'd, 'e>(
        &'a self,
        session: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        _filters: &'d [Expr],
        _limit: Option<usize>,
    ) -> BoxFuture<'e, Result<Arc<dyn ExecutionPlan>>>
    where
        'a: 'e,
        'b: 'e,
        'c: 'e,
        'd: 'e,
        Self: 'e,
    {
        Box::pin(ready(self.plan_scan(session, projection)))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
