//! MATERIALIZED WITH queries: each becomes a shared table of all of its rows.
//!
//! They are taken out of a plan before any other step, so that no filter is pushed into them, and so that correlated
//! subqueries, which are planned separately, read the same rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, TableReference};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SubqueryAlias};
use functions::external;
use plan::plan_has_expression;
use types::SqlError;

use super::equal_subplans::Subplans;
use super::narrow_shared_table::Readers;
use super::shared_table::{SharedTable, collect_relation_names, take_unique_relation, with_unique_names};
use super::with_query_reference::{MaterializeClause, WithQuery, WithQueryAliases, WithQueryReference};
use super::{OptimizedPlan, SharedPlan, apply_rules, share_repeated};
use crate::correlated_subqueries::is_correlated_call;
use crate::estimate_relation;

/// Replacement of a statement's MATERIALIZED WITH queries by scans of shared tables.
pub(super) struct MaterializedQueries<'a> {
    state: &'a SessionState,
    /// Rewrite that precedes the optimizer's rules.
    preliminary_rewrite: &'a dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
    /// Tables of queries, in the order in which they were made.
    tables_by_query: Vec<(Arc<WithQuery>, Arc<SharedTable>)>,
    /// Volatile queries that cannot become tables and have been read once: a second reader would see other rows.
    volatile_queries: Vec<Arc<WithQuery>>,
    /// Names of all relations of the plan, so that new ones differ.
    relation_names: HashSet<TableReference>,
    /// The other WITH queries, by the aliases that mark their references from now on.
    pub(super) aliases: WithQueryAliases,
    /// All tables, each after the tables that it reads.
    pub(super) tables: Vec<SharedPlan>,
}

impl<'a> MaterializedQueries<'a> {
    pub(super) fn new(
        state: &'a SessionState,
        preliminary_rewrite: &'a dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Self {
        Self {
            state,
            preliminary_rewrite,
            tables_by_query: Vec::new(),
            volatile_queries: Vec::new(),
            relation_names: HashSet::new(),
            aliases: WithQueryAliases::new(),
            tables: Vec::new(),
        }
    }

    /// Replaces the MATERIALIZED WITH queries of a plan by scans of shared tables, and marks references to the others by
    /// aliases.
    pub(super) fn replace_queries(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if !has_references(&plan)? {
            return Ok(plan);
        }
        collect_relation_names(&plan, &mut self.relation_names)?;
        let taken = plan.transform_down_with_subqueries(|node| {
            let Some(reference) = WithQueryReference::from_plan(&node) else { return Ok(Transformed::no(node)) };
            if reference.query.clause == MaterializeClause::Materialized
                && let Some(table) = self.table_for(reference)?
            {
                let written = reference.alias()?;
                let all: Vec<usize> = (0..table.column_count()).collect();
                let name = take_unique_relation(&mut self.relation_names, table.name());
                let scan = table.scan(name, &all, written.input.schema())?;
                let alias = SubqueryAlias::try_new(Arc::new(scan), written.alias.clone())?;
                return Ok(Transformed::new(LogicalPlan::SubqueryAlias(alias), true, TreeNodeRecursion::Jump));
            }
            Ok(Transformed::yes(self.mark_by_alias(reference)?))
        });
        taken.map(|taken| taken.data)
    }

    /// Returns the input of a reference under an alias of its own, by which later steps find the query.
    fn mark_by_alias(&mut self, reference: &WithQueryReference) -> Result<LogicalPlan> {
        let (query, written) = (&reference.query, reference.alias()?);
        let name = take_unique_relation(&mut self.relation_names, &query.name);
        let marked = SubqueryAlias::try_new(Arc::clone(&written.input), name.clone())?;
        self.aliases.insert(name, Arc::clone(query));
        let alias = SubqueryAlias::try_new(Arc::new(LogicalPlan::SubqueryAlias(marked)), written.alias.clone())?;
        Ok(LogicalPlan::SubqueryAlias(alias))
    }

    /// Returns the table of a query, planning it on first use; `None` for a query that depends on an outer row or on a
    /// recursive query's step.
    ///
    /// # Errors
    /// `0A000` if such a query is volatile and read more than once, and errors of planning it.
    fn table_for(&mut self, reference: &WithQueryReference) -> Result<Option<Arc<SharedTable>>> {
        let (query, input) = (&reference.query, &reference.alias()?.input);
        if let Some((_, table)) = self.tables_by_query.iter().find(|(known, _)| Arc::ptr_eq(known, query)) {
            return Ok(Some(Arc::clone(table)));
        }
        let parts = Subplans::from_plan(input, &self.aliases)?;
        if !parts.is_uncorrelated() || is_recursive(input)? {
            if is_volatile(input)? {
                if self.volatile_queries.iter().any(|known| Arc::ptr_eq(known, query)) {
                    let what = "reading a WITH query with a volatile function more than once in a correlated or \
                                recursive query";
                    return Err(external(SqlError::unsupported(what)));
                }
                self.volatile_queries.push(Arc::clone(query));
            }
            return Ok(None);
        }
        let body = self.replace_queries(input.as_ref().clone())?;
        let body = with_unique_names((self.preliminary_rewrite)(body)?)?;
        let fields = body.schema().fields().clone();
        let OptimizedPlan { plan, shared } = share_repeated(body, self.state, self.next_number(), &self.aliases)?;
        self.tables.extend(shared);
        let estimate = estimate_relation(&plan);
        let table = SharedTable::new(self.next_number(), Some(&query.name), plan, estimate);
        let table = Arc::new(table.into_materialized(&fields, parts.is_ordered()));
        self.tables.push(SharedPlan::with_all_columns(Arc::clone(&table)));
        self.tables_by_query.push((Arc::clone(query), Arc::clone(&table)));
        Ok(Some(table))
    }

    /// Returns the number of the next table.
    pub(super) fn next_number(&self) -> usize {
        self.tables.iter().map(|shared| shared.table.number + 1).max().unwrap_or(0)
    }

    /// Adds these tables to an optimized plan, without the columns that nothing reads; tables come before their
    /// readers.
    pub(super) fn into_optimized(self, optimized: OptimizedPlan) -> Result<OptimizedPlan> {
        let (mut readers, mut hides_readers) = (Readers::default(), false);
        let after = std::iter::once(&optimized.plan).chain(optimized.shared.iter().map(|shared| &shared.plan));
        for plan in after {
            readers.add(plan)?;
            hides_readers |= has_correlated_calls(plan)?;
        }
        let mut tables = Vec::with_capacity(self.tables.len() + optimized.shared.len());
        for mut shared in self.tables.into_iter().rev() {
            let table = &shared.table;
            hides_readers |= has_correlated_calls(&table.plan)?;
            if table.is_materialized() && !hides_readers && !is_volatile(&table.plan)? {
                let Some(columns) = readers.columns(table) else { continue };
                let plan = LogicalPlanBuilder::from(table.plan.clone());
                let plan = plan.project(columns.iter().map(|column| Expr::Column(table.plan_column(*column))))?;
                shared =
                    SharedPlan { plan: apply_rules(plan.build()?, self.state)?, columns, table: Arc::clone(table) };
            }
            readers.add(&shared.plan)?;
            tables.push(shared);
        }
        tables.reverse();
        tables.extend(optimized.shared);
        Ok(OptimizedPlan { plan: optimized.plan, shared: tables })
    }
}

/// Returns whether a plan has references to WITH queries with a clause; few plans have.
fn has_references(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= WithQueryReference::from_plan(node).is_some();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Returns whether a plan contains a recursive query or reads one's work table. Recursion stops when its reader does,
/// so its rows are not computed in advance.
fn is_recursive(plan: &LogicalPlan) -> Result<bool> {
    let mut steps = false;
    plan.apply_with_subqueries(|node| {
        steps |= match node {
            LogicalPlan::RecursiveQuery(_) => true,
            LogicalPlan::TableScan(scan) => {
                source_as_provider(&scan.source).is_ok_and(|provider| provider.is::<CteWorkTable>())
            }
            _ => false,
        };
        Ok(if steps { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(steps)
}

fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    plan_has_expression(plan, Expr::is_volatile_node)
}

/// Returns whether a plan calls correlated subqueries, whose plans, and the scans in them, a walk does not visit.
pub(super) fn has_correlated_calls(plan: &LogicalPlan) -> Result<bool> {
    plan_has_expression(plan, is_correlated_call)
}
