//! Views: the stored query is planned at each reference, with the privileges of the view's owner.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Schema, SchemaRef};
use catalog::View;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableSource, TableType};
use datafusion::sql::sqlparser::ast::Query;
use functions::error::from_datafusion;
use session_context::{SnapshotPin, StatementContext};
use syntax::{Statement, parse};
use types::{Condition, SqlError, SqlResult};

use super::error_position::StatementText;
use super::relation_source::RelationSources;
use super::{Binder, query};

/// Limit on the nesting of views.
const VIEW_DEPTH_MAX: usize = 64;

/// Returns the view as a relation that is its query, over the snapshot of `context`; `pin` holds the objects of a
/// historical snapshot.
pub(super) fn view_source(
    binder: &Binder<'_>,
    context: &Arc<StatementContext>,
    pin: Option<SnapshotPin>,
    view: &View,
) -> SqlResult<Arc<dyn TableSource>> {
    if binder.view_depth >= VIEW_DEPTH_MAX {
        let message = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
        return Err(SqlError::new(Condition::InvalidObjectDefinition, message));
    }
    let inner = Binder {
        environment: binder.environment,
        context,
        reader_role: view.owner,
        snapshot_pin: pin,
        session: Arc::clone(&binder.session),
        state: OnceLock::from(binder.state()),
        view_depth: binder.view_depth + 1,
        text: StatementText::default(),
        parameter_types: &[],
        unplaced_parameters: RefCell::default(),
        relation_sources: RelationSources::default(),
        planning_timings: binder.planning_timings.clone(),
    };
    let bound = query::resolve_names(&inner, &definition(view)?)?;
    let plan = query::analyze(&inner, query::build_logical_plan(&inner, bound.query, &[])?)?;
    let named = rename_columns(plan, view)?;
    Ok(PlanSource::table_source(named))
}

/// Parses the stored query.
fn definition(view: &View) -> SqlResult<Query> {
    let broken =
        |why: String| SqlError::internal(format!("could not parse the stored query of view {}: {why}", view.name));
    let statements = parse(&view.definition).map_err(|error| broken(error.to_string()))?;
    match statements.into_iter().next().map(|parsed| parsed.statement) {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(broken("its text is not a query".to_owned())),
    }
}

/// Renames the query's columns to the view's names, without qualifiers.
fn rename_columns(plan: LogicalPlan, view: &View) -> SqlResult<LogicalPlan> {
    let columns = plan.schema().columns();
    if columns.len() != view.columns.len() {
        return Err(SqlError::internal(format!("view {} has other columns than its query", view.name)));
    }
    let exprs = columns.into_iter().zip(&view.columns).map(|(column, (name, _))| Expr::Column(column).alias(name));
    Projection::try_new(exprs.collect(), Arc::new(plan)).map(LogicalPlan::Projection).map_err(from_datafusion)
}

/// Relation that DataFusion replaces by its plan.
pub(super) struct PlanSource {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl PlanSource {
    /// Creates the relation of `plan`, whose columns have no qualifiers.
    pub(super) fn table_source(plan: LogicalPlan) -> Arc<dyn TableSource> {
        let schema = Arc::new(Schema::new(plan.schema().fields().clone()));
        Arc::new(Self { plan, schema })
    }
}

impl TableSource for PlanSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}
