//! Plans of queries that were asked before: a dashboard's are bound and optimized once, as long as nothing is committed.

use std::collections::HashMap;
use std::sync::Arc;

use binder::{QueryPlan, is_settled};
use catalog::CatalogState;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use plan::ShardTable;
use session_context::StatementContext;
use settings::Settings;
use types::{CommitTs, Oid};

#[cfg(test)]
mod tests;

/// Plans at once; the one that was not asked for longest makes room for the next.
const PLANS_MAX: usize = 256;
/// Bytes of a text whose plan is kept.
const TEXT_BYTES_MAX: usize = 65_536;
/// Bytes of all plans together, and of one: short texts can have large ones.
const BYTES_MAX: usize = 64 << 20;
const PLAN_BYTES_MAX: usize = BYTES_MAX / 8;
/// Estimated memory of an operator and of an expression node in a kept plan, analysed and optimized forms together: measured on unions of tables
/// and chains of OR, and rounded up.
const OPERATOR_BYTES: usize = 4 << 10;
const EXPRESSION_NODE_BYTES: usize = 256;
/// Estimated memory of one column in an operator's schema.
const COLUMN_BYTES: usize = 128;

/// Plans by their queries' texts, all of one state of the catalog.
#[derive(Debug, Default)]
pub(crate) struct KeptPlans(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    of: Option<(CommitTs, Arc<CatalogState>)>,
    plans: HashMap<String, KeptPlan>,
    /// Estimated memory of all plans.
    bytes: usize,
    /// Counts what is asked for.
    asked: u64,
}

#[derive(Debug)]
struct KeptPlan {
    query: QueryPlan,
    bytes: usize,
    settings: Arc<Settings>,
    roles: [Oid; 2],
    database: String,
    /// The value of `asked` when it was asked for last.
    last: u64,
}

impl KeptPlans {
    /// The plan of a query without parameters as it was made for this or another session, if it would be made the same now.
    pub(crate) fn get(&self, text: &str, context: &StatementContext) -> Option<QueryPlan> {
        let mut kept = self.0.lock();
        kept.forget_earlier(context);
        if !kept.is_of(context) {
            return None;
        }
        kept.asked += 1;
        let asked = kept.asked;
        let plan = kept.plans.get_mut(text)?;
        let holds = plan.roles == roles(context)
            && plan.database == context.database
            && (Arc::ptr_eq(&plan.settings, &context.settings) || plan.settings.plan_as(&context.settings));
        holds.then(|| {
            plan.last = asked;
            QueryPlan { phases: plan.query.phases.anew(), ..plan.query.clone() }
        })
    }

    /// Keeps the plan of a query if another statement would get the same, which is to be optimized once then.
    pub(crate) fn keep(&self, text: &str, query: QueryPlan, context: &StatementContext) -> QueryPlan {
        let is_of_session = context.snapshot.schema_by_name(&context.temp_schema_name()).is_some();
        if TEXT_BYTES_MAX < text.len() || is_of_session {
            return query;
        }
        if !query.parameters.is_empty() {
            return query;
        }
        let Some(bytes) = cacheable_bytes(&query).filter(|bytes| *bytes <= PLAN_BYTES_MAX) else { return query };
        let query = query.optimized_once();
        let mut kept = self.0.lock();
        kept.forget_earlier(context);
        if kept.of.is_none() {
            kept.of = Some((context.commit, Arc::clone(&context.snapshot)));
        }
        if !kept.is_of(context) {
            return query;
        }
        kept.forget(text);
        while PLANS_MAX <= kept.plans.len() || BYTES_MAX < kept.bytes + bytes {
            kept.forget_oldest();
        }
        let plan = KeptPlan {
            query: query.clone(),
            bytes,
            settings: Arc::clone(&context.settings),
            roles: roles(context),
            database: context.database.clone(),
            last: kept.asked,
        };
        kept.bytes += bytes;
        kept.plans.insert(text.to_owned(), plan);
        query
    }
}

impl Kept {
    fn is_of(&self, context: &StatementContext) -> bool {
        self.of.as_ref().is_some_and(|(_, state)| Arc::ptr_eq(state, &context.snapshot))
    }

    /// Forgets everything once there is a newer state: an old one keeps rows in memory that nobody can see any more.
    fn forget_earlier(&mut self, context: &StatementContext) {
        if self.of.as_ref().is_some_and(|(commit, _)| *commit < context.commit) && !self.is_of(context) {
            self.of = None;
            self.plans.clear();
            self.bytes = 0;
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.plans.iter().min_by_key(|(_, plan)| plan.last).map(|(text, _)| text.clone());
        self.forget(&oldest.expect("where no plan is kept there is room for one"));
    }

    fn forget(&mut self, text: &str) {
        if let Some(plan) = self.plans.remove(text) {
            self.bytes -= plan.bytes;
        }
    }
}

fn roles(context: &StatementContext) -> [Oid; 2] {
    [context.role.oid, context.session_role.oid]
}

/// The bytes that a plan takes, estimated; `None` where it may not be kept. What is kept means the same for every statement on its state of the
/// catalog: it reads but rows of tables, and nothing in it tells the time, takes its chance or asks who runs it.
pub(crate) fn cacheable_bytes(query: &QueryPlan) -> Option<usize> {
    if !query.locks.is_empty() || query.has_read_now {
        return None;
    }
    let (mut is_lasting, mut bytes) = (true, 0);
    let walked = query.plan.apply_with_subqueries(|node| {
        bytes += OPERATOR_BYTES + node.schema().fields().len() * COLUMN_BYTES;
        is_lasting &= match node {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
                .is_ok_and(|provider| provider.downcast_ref::<ShardTable>().is_some_and(is_committed)),
            LogicalPlan::Extension(_) | LogicalPlan::RecursiveQuery(_) => false,
            _ => true,
        };
        node.apply_expressions(|expr| {
            is_lasting = is_lasting
                && !expr.exists(|part| {
                    bytes += EXPRESSION_NODE_BYTES;
                    Ok(!is_settled(part))
                })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_lasting { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    (walked.is_ok() && is_lasting).then_some(bytes)
}

/// Whether a table's rows are those of the state: not of files, the past or the transaction.
fn is_committed(table: &ShardTable) -> bool {
    table.files.is_none() && table.pin.is_none() && table.rows.own.is_empty()
}
