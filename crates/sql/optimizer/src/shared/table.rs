//! What several scans share, as DataFusion plans it: a table whose rows are those of a plan.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DFSchema, Result, TableReference, internal_datafusion_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Projection, TableProviderFilterPushDown, TableScanBuilder, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use futures::future::{BoxFuture, ready};
use plan::estimate::Relation;

/// What the rows of a part are called within its plan.
const RELATION: &str = "shared\u{1}";

/// Which scan of a plan it is, so that no other has its name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// Of a WITH query.
    Kept(usize),
    /// The number of the first table that the plan repeats, and that of the scan.
    Repeated(usize, usize),
}

/// Makes the operators that read shared tables in one run.
pub trait PlanSharedScan: std::fmt::Debug + Send + Sync {
    /// The operator that reads a table. `columns` are places in the table's schema, in the order in which they are read.
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

/// The run's scans of shared tables: an extension of the configuration that they are planned with.
#[derive(Debug)]
pub struct SharedScans(pub Arc<dyn PlanSharedScan>);

/// The rows of a part of a plan.
pub struct SharedTable {
    /// Among the shared tables of its plan.
    pub(super) number: usize,
    /// The part's first name; empty for a subquery without a name.
    name: String,
    /// The columns, each under a name of its own.
    pub(super) schema: SchemaRef,
    /// The plan of all rows and columns, under names of their own.
    pub(super) body: LogicalPlan,
    estimate: Relation,
    /// Of a WITH query that was asked to be MATERIALIZED.
    is_kept: bool,
    /// Whether readers get the rows in the order in which they are made.
    is_ordered: bool,
}

impl SharedTable {
    /// `body` is what [`named`] gives, optimized.
    pub(super) fn new(number: usize, name: Option<&str>, body: LogicalPlan, estimate: Relation) -> Self {
        let schema = Arc::new(Schema::new(body.schema().fields().clone()));
        let name = name.unwrap_or("subquery").to_owned();
        Self { number, name, schema, body, estimate, is_kept: false, is_ordered: false }
    }

    /// As a WITH query that was asked to be MATERIALIZED, with `fields` for columns as the plan around it knows them.
    pub(super) fn kept(self, fields: &Fields, is_ordered: bool) -> Self {
        Self { schema: Arc::new(Schema::new(fields.clone())), is_kept: true, is_ordered, ..self }
    }

    /// The first name of the part; empty for a subquery without a name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether readers get the rows in the order in which they are made.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// The expected number of rows.
    #[must_use]
    pub fn expected_rows(&self) -> f64 {
        self.estimate.rows
    }

    /// Whether it is of a WITH query that was asked to be MATERIALIZED.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) fn width(&self) -> usize {
        self.schema.fields().len()
    }

    /// The column of the plan.
    pub(super) fn inner(&self, column: usize) -> Column {
        self.body.schema().columns().swap_remove(column)
    }

    /// What is believed of the rows; the columns of `projection`, all without one.
    pub(crate) fn relation(&self, projection: Option<&Vec<usize>>) -> Relation {
        match projection {
            Some(projection) => {
                let columns = projection.iter().filter_map(|column| self.estimate.columns.get(*column).cloned());
                Relation { rows: self.estimate.rows, columns: columns.collect() }
            }
            None => self.estimate.clone(),
        }
    }

    /// Whether some of the columns are of exactly the types of others.
    pub(super) fn has_columns(&self, columns: &[usize], others: &DFSchema) -> bool {
        let are_alike = |(own, other): (&usize, &Arc<Field>)| {
            let own = self.schema.field(*own);
            own.data_type() == other.data_type()
                && own.is_nullable() == other.is_nullable()
                && own.metadata() == other.metadata()
        };
        columns.len() == others.fields().len() && columns.iter().zip(others.fields()).all(are_alike)
    }

    /// A scan of columns under the names of the part that it stands for.
    pub(super) fn scan(self: &Arc<Self>, read: Read, columns: &[usize], named: &DFSchema) -> Result<LogicalPlan> {
        let source = provider_as_source(Arc::<Self>::clone(self));
        let name = match read {
            Read::Kept(number) => format!("{}\u{1}kept {number}", self.name),
            Read::Repeated(first, number) => format!("{}\u{1}{first} {number}", self.name),
        };
        let name = TableReference::bare(name);
        let columns = columns.iter().zip(named.iter()).map(|(column, (relation, field))| {
            let column = Column::new(Some(name.clone()), self.schema.field(*column).name());
            Expr::Column(column).alias_qualified(relation.cloned(), field.name())
        });
        let columns = columns.collect();
        let scan = TableScanBuilder::new(name, source).build()?;
        Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::TableScan(scan)))?))
    }

    /// The operator that reads its rows in a run.
    fn plan_scan(&self, session: &dyn Session, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let scans = session.config().get_extension::<SharedScans>();
        let scans = scans.ok_or_else(|| internal_datafusion_err!("{self:?} is read outside of a run"))?;
        let all: Vec<usize> = (0..self.width()).collect();
        scans.0.plan_scan(self, projection.unwrap_or(&all), session)
    }
}

/// The plan with each column under a name of its own, and all of one relation: rules change the names of what a plan gives, but never those.
pub(super) fn named(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut names = HashSet::new();
    let columns = plan.schema().columns();
    let is_named = columns.iter().all(|column| names.insert(column.name.clone()));
    let plan = LogicalPlanBuilder::from(plan);
    if is_named {
        return plan.alias(RELATION)?.build();
    }
    let columns = columns.into_iter().enumerate().map(|(place, column)| {
        let name = format!("{}\u{1}{place}", column.name);
        Expr::Column(column).alias(name)
    });
    plan.project(columns)?.alias(RELATION)?.build()
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
