//! WITH queries that were asked to be MATERIALIZED: each becomes a table of all of its rows, whoever reads it and however often.
//!
//! They are taken out of a plan before anything else is done with it, so that no condition comes into them, and subqueries that run by
//! themselves read the same rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SubqueryAlias};
use functions::external;
use plan::any_expression;
use types::SqlError;

use super::asked::{Asked, written};
use super::narrow::Readers;
use super::parts::Parts;
use super::table::{Read, SharedTable, named};
use super::{Optimized, SharedPlan, by_rules, repeated};
use crate::dependent::is_dependent;
use crate::relation_of;

/// Takes such queries out of plans.
pub(super) struct Once<'a> {
    state: &'a SessionState,
    /// What is done to a plan before the optimizer's rules.
    lower: &'a dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
    /// By name.
    kept: Vec<(String, Arc<SharedTable>)>,
    /// Queries that cannot be kept, and whose rows differ from one reading to the next.
    differing: HashSet<String>,
    scans: usize,
    /// All tables, each after those that it reads.
    pub(super) tables: Vec<SharedPlan>,
}

impl<'a> Once<'a> {
    pub(super) fn new(state: &'a SessionState, lower: &'a dyn Fn(LogicalPlan) -> Result<LogicalPlan>) -> Self {
        Self { state, lower, kept: Vec::new(), differing: HashSet::new(), scans: 0, tables: Vec::new() }
    }

    /// The plan with scans of tables in the place of such queries.
    pub(super) fn taken_out(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if !asks_for_it(&plan)? {
            return Ok(plan);
        }
        let taken = plan.transform_down_with_subqueries(|node| {
            let LogicalPlan::SubqueryAlias(alias) = &node else { return Ok(Transformed::no(node)) };
            if Asked::of(alias.alias.table()) != Some(Asked::Once) {
                return Ok(Transformed::no(node));
            }
            let Some(table) = self.table(alias)? else { return Ok(Transformed::no(node)) };
            let all: Vec<usize> = (0..table.width()).collect();
            self.scans += 1;
            let scan = table.scan(Read::Kept(self.scans), &all, alias.input.schema())?;
            let alias = SubqueryAlias::try_new(Arc::new(scan), alias.alias.clone())?;
            Ok(Transformed::new(LogicalPlan::SubqueryAlias(alias), true, TreeNodeRecursion::Jump))
        });
        taken.map(|taken| taken.data)
    }

    /// The table that a query becomes; `None` for one that depends on the row or the step around it.
    fn table(&mut self, alias: &SubqueryAlias) -> Result<Option<Arc<SharedTable>>> {
        let name = alias.alias.table();
        if let Some((_, table)) = self.kept.iter().find(|(known, _)| known == name) {
            return Ok(Some(Arc::clone(table)));
        }
        let parts = Parts::of(&alias.input)?;
        if !parts.is_closed() || steps(&alias.input)? {
            if is_volatile(&alias.input)? && !self.differing.insert(name.to_owned()) {
                let what =
                    "reading a WITH query with a volatile function more than once for each row or step around it";
                return Err(external(SqlError::unsupported(what)));
            }
            return Ok(None);
        }
        let body = self.taken_out(alias.input.as_ref().clone())?;
        let body = named((self.lower)(body)?)?;
        let fields = body.schema().fields().clone();
        let Optimized { plan, shared } = repeated(body, self.state, self.next_number())?;
        self.tables.extend(shared);
        let estimate = relation_of(&plan);
        let table = SharedTable::new(self.next_number(), Some(written(name)), plan, estimate);
        let table = Arc::new(table.kept(&fields, parts.is_ordered()));
        self.tables.push(SharedPlan::whole(Arc::clone(&table)));
        self.kept.push((name.to_owned(), Arc::clone(&table)));
        Ok(Some(table))
    }

    /// The number of the table that comes next.
    pub(super) fn next_number(&self) -> usize {
        self.tables.iter().map(|shared| shared.table.number + 1).max().unwrap_or(0)
    }

    /// All tables of a plan, first those that others read, without columns that none reads.
    pub(super) fn narrowed(self, optimized: Optimized) -> Result<Optimized> {
        let (mut readers, mut hides_readers) = (Readers::default(), false);
        let after = std::iter::once(&optimized.plan).chain(optimized.shared.iter().map(|shared| &shared.plan));
        for plan in after {
            readers.add(plan)?;
            hides_readers |= hides_plans(plan)?;
        }
        let mut tables = Vec::with_capacity(self.tables.len() + optimized.shared.len());
        for mut shared in self.tables.into_iter().rev() {
            let table = &shared.table;
            hides_readers |= hides_plans(&table.body)?;
            if table.is_kept() && !hides_readers && !is_volatile(&table.body)? {
                let Some(columns) = readers.columns(table) else { continue };
                let plan = LogicalPlanBuilder::from(table.body.clone());
                let plan = plan.project(columns.iter().map(|column| Expr::Column(table.inner(*column))))?;
                shared = SharedPlan { plan: by_rules(plan.build()?, self.state)?, columns, table: Arc::clone(table) };
            }
            readers.add(&shared.plan)?;
            tables.push(shared);
        }
        tables.reverse();
        tables.extend(optimized.shared);
        Ok(Optimized { plan: optimized.plan, shared: tables })
    }
}

/// Whether a query in a plan is to be computed once: few plans have such.
fn asks_for_it(plan: &LogicalPlan) -> Result<bool> {
    let mut asks = false;
    plan.apply_with_subqueries(|node| {
        asks |= is_kept(node);
        Ok(if asks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(asks)
}

fn is_kept(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::SubqueryAlias(alias) if Asked::of(alias.alias.table()) == Some(Asked::Once))
}

/// Whether a plan is a step of a recursion, or runs one: as far as its rows are asked for.
fn steps(plan: &LogicalPlan) -> Result<bool> {
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
    any_expression(plan, Expr::is_volatile_node)
}

/// Whether plans are out of sight in it, whose scans are not found.
pub(super) fn hides_plans(plan: &LogicalPlan) -> Result<bool> {
    any_expression(plan, is_dependent)
}
