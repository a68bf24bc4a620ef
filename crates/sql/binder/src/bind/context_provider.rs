//! Provider of relations and functions for DataFusion's planner, from this statement's catalog snapshot and session.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use catalog::{Relation, Table};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, TableReference};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::sql::sqlparser::ast::Query;
use functions::error::to_datafusion;
use optimizer::correlated_subqueries::{ARRAY_SUBQUERY, array_subquery};
use plan::ShardTable;
use session_context::{ListedFiles, SnapshotPin, StatementContext};
use system_catalog::sequence_table;
use types::{Condition, Oid, SqlError, SqlResult};

use super::cast_type::PostgresTypes;
use super::modification::StatementRows;
use super::referenced_columns::ReferencedColumns;
use super::relation_lookup::{self, RelationName, ResolvedRelation};
use super::relation_planner::SourcePlanner;
use super::relation_source::RelationSource;
use super::undefined_function::UndefinedFunction;
use super::{Binder, time_travel, view};

/// DataFusion context provider of one statement.
pub(super) struct Provider<'a> {
    binder: &'a Binder<'a>,
    state: Arc<SessionState>,
    expr_planners: Vec<Arc<dyn ExprPlanner>>,
    relation_planners: [Arc<dyn RelationPlanner>; 1],
    types: Arc<dyn TypePlanner>,
    /// Columns that the query names; tables are planned with these only.
    referenced_columns: Option<ReferencedColumns>,
    /// Cache of the tables found so far.
    table_cache: RefCell<HashMap<TableReference, Arc<dyn TableSource>>>,
}

impl<'a> Provider<'a> {
    pub(super) fn new(binder: &'a Binder<'a>) -> Self {
        let state = binder.state();
        let mut expr_planners = state.expr_planners().to_vec();
        expr_planners.push(Arc::new(datafusion::functions_aggregate::planner::AggregateFunctionPlanner));
        expr_planners.push(Arc::new(datafusion::functions_window::planner::WindowFunctionPlanner));
        Self {
            binder,
            state,
            expr_planners,
            relation_planners: [Arc::new(SourcePlanner::default())],
            types: Arc::new(PostgresTypes),
            referenced_columns: None,
            table_cache: RefCell::default(),
        }
    }

    /// Creates the provider of a query with resolved names, with tables reduced to the columns that it names; `rows`
    /// are the statement's own rows.
    ///
    /// # Errors
    /// Errors of views that the query reads.
    pub(super) fn for_query(binder: &'a Binder<'a>, query: &Query, rows: &StatementRows) -> SqlResult<Self> {
        let provider = Self { referenced_columns: ReferencedColumns::collect(query), ..Self::new(binder) };
        let scan = |source: &RelationSource, name: &TableReference| provider.source_of(source, name, rows);
        let planner = SourcePlanner::for_query(query, &binder.relation_sources, scan)?;
        Ok(Self { relation_planners: [Arc::new(planner)], ..provider })
    }

    /// Returns the table source of a relation that refers to a source.
    fn source_of(
        &self,
        source: &RelationSource,
        name: &TableReference,
        rows: &StatementRows,
    ) -> SqlResult<Arc<dyn TableSource>> {
        let of_statement = |rows: &Option<Arc<dyn TableSource>>| {
            rows.clone().ok_or_else(|| {
                SqlError::internal(format!("no table is registered for the rows of relation source {source:?}"))
            })
        };
        match source {
            RelationSource::Snapshot(target) => {
                let (context, pin) = time_travel::context_at_snapshot(self.binder.context, *target)?;
                self.table_source(name, &context, Some(pin), false)
            }
            RelationSource::RowIdentity => {
                self.table_source(name, self.binder.context, self.binder.snapshot_pin.clone(), true)
            }
            RelationSource::NewRows => of_statement(&rows.new),
            RelationSource::ConflictingRows => of_statement(&rows.conflicting),
            RelationSource::WithQuery(query) => Err(SqlError::internal(format!(
                "the reference to WITH query {} was planned as a table scan",
                query.name
            ))),
        }
    }

    /// Returns the table source of a relation at the snapshot of `context`, which `pin` holds; a table has the columns
    /// that identify its rows if `has_row_positions`.
    fn table_source(
        &self,
        name: &TableReference,
        context: &Arc<StatementContext>,
        pin: Option<SnapshotPin>,
        has_row_positions: bool,
    ) -> SqlResult<Arc<dyn TableSource>> {
        let name = RelationName { schema: name.schema().map(str::to_owned), name: name.table().to_owned() };
        match relation_lookup::find_relation(context, &name)? {
            ResolvedRelation::Catalog(Relation::Table(table)) => {
                self.check_readable(table.owner, "table", &table.name)?;
                if table.external.is_some() {
                    return self.external_table(table, pin.is_some());
                }
                let rows = Arc::clone(context.snapshot.rows(table.oid));
                let scan = Arc::clone(&self.binder.environment.scan);
                if has_row_positions {
                    let table = ShardTable::new(table, rows, scan).with_pin(pin).with_row_positions();
                    return Ok(provider_as_source(Arc::new(table)));
                }
                let narrow = self.referenced_columns.as_ref().map(|named| named.prune_table(&table));
                let table = ShardTable::new(table, rows, scan).with_pin(pin);
                Ok(provider_as_source(Arc::new(match narrow {
                    Some(narrow) => table.with_columns_of(narrow),
                    None => table,
                })))
            }
            ResolvedRelation::Catalog(Relation::View(found)) => {
                self.check_readable(found.owner, "view", &found.name)?;
                view::view_source(self.binder, context, pin, &found)
            }
            ResolvedRelation::Catalog(Relation::Sequence(sequence)) => {
                self.check_readable(sequence.owner, "sequence", &sequence.name)?;
                let position = context.sequences.position(&sequence);
                sequence_table(&position).map(provider_as_source)
            }
            ResolvedRelation::System(schema, name) => {
                system_catalog::table(schema, &name, context).map(provider_as_source).ok_or_else(|| {
                    SqlError::internal(format!(
                        "system table {schema}.{name} was resolved, but does not exist in the system catalog"
                    ))
                })
            }
        }
    }

    /// Returns an external table with the files listed for the statement.
    fn external_table(&self, table: Arc<Table>, is_past: bool) -> SqlResult<Arc<dyn TableSource>> {
        if is_past {
            return Err(SqlError::unsupported("AS OF of an external table"));
        }
        let context = self.binder.context;
        let listed = if context.has_rows { context.inputs.files_of(table.oid)? } else { ListedFiles::new(Vec::new()) };
        let table = ShardTable::from_files(table, listed, Arc::clone(&self.binder.environment.scan));
        Ok(provider_as_source(Arc::new(table)))
    }

    fn check_readable(&self, owner: Oid, kind: &str, name: &str) -> SqlResult<()> {
        if may_read(self.binder.context, self.binder.reader_role, owner) {
            return Ok(());
        }
        Err(SqlError::new(Condition::InsufficientPrivilege, format!("permission denied for {kind} {name}")))
    }
}

/// Returns whether a role may read what another one owns. Ownership is the only privilege.
pub(super) fn may_read(context: &StatementContext, reader: Oid, owner: Oid) -> bool {
    let is_superuser = context.snapshot.role(reader).is_some_and(|role| role.superuser)
        || (context.role.oid == reader && context.role.superuser);
    is_superuser || owner == reader
}

impl ContextProvider for Provider<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        if let Some(known) = self.table_cache.borrow().get(&name) {
            return Ok(Arc::clone(known));
        }
        let pin = self.binder.snapshot_pin.clone();
        let source = self.table_source(&name, self.binder.context, pin, false).map_err(to_datafusion)?;
        // Each reference to a view has its own plan.
        if source_as_provider(&source).is_ok_and(|provider| provider.is::<ShardTable>()) {
            self.table_cache.borrow_mut().insert(name, Arc::clone(&source));
        }
        Ok(source)
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expr_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::clone(&self.types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
        if name == ARRAY_SUBQUERY {
            return Some(array_subquery());
        }
        if let Some(function) = functions::scalar(name, self.binder.session()) {
            return Some(function);
        }
        if let Some(function) = system_catalog::function(name, self.binder.context) {
            return Some(function);
        }
        let is_planned_elsewhere = name == "unnest" || self.is_aggregate_or_window(name);
        (!is_planned_elsewhere).then(|| UndefinedFunction::udf(name))
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        functions::aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        functions::window(name)
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        functions::scalar_names().map(str::to_owned).collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Provider<'_> {
    fn is_aggregate_or_window(&self, name: &str) -> bool {
        functions::aggregate(name).is_some() || functions::window(name).is_some()
    }
}
