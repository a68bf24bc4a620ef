//! EXPLAIN of statements that change or lock rows. With ANALYZE they are run first, and the measurements of their
//! input's operators are read afterwards.

use std::time::Duration;

use binder::{ExplainPlan, ModifyPlan, QueryPlan, WritePlan};
use catalog::Table;
use compile::estimate::Estimate;
use dml::ModifyOutcome;
use exchange::{PreparedQuery, Purpose};
use executor::RunContext;
use row_locks::AttemptOutcome;
use txn::Transaction;
use types::{SqlError, SqlResult};

use crate::explainer::{Explainer, Explanation};
use crate::key_lookup_tree;
use crate::measurements::ActualRun;
use crate::plan_node::{Node, NodeKind, Property, Value};
use crate::text::milliseconds;
use crate::tree;

impl Explainer {
    pub(crate) async fn explain_modify(
        &self,
        plan: &ExplainPlan,
        modify: &ModifyPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<Explanation>> {
        let mut ran = None;
        if plan.analyze {
            let start = self.clock.monotonic();
            let AttemptOutcome::Done(changed) = self.dml.modify(modify, transaction, context).await? else {
                return Ok(AttemptOutcome::Conflict);
            };
            ran = Some((changed, self.clock.monotonic().saturating_sub(start)));
        }
        let (prepared, planning) = self.ran_or_planned(&modify.input, context, ran.is_some()).await?;
        let (name, key) = match modify.command_tag {
            "UPDATE" => ("Update", "Rows Updated"),
            "DELETE" => ("Delete", "Rows Deleted"),
            _ => ("Merge", "Rows Changed"),
        };
        let properties = ran.iter().map(|(changed, _)| Property::new(key, Value::Count(changed.rows))).collect();
        let input = key_lookup_tree::show_index_scans(
            tree::build_input_tree(&prepared, plan, &context.settings),
            &plan.inner,
            context,
            ran.is_some(),
        );
        let root = modify_node(name, &modify.table, input, properties, modify.returning.is_some(), ran.as_ref());
        let (execution, memory) = (ran.map(|(_, time)| time), plan.analyze.then(|| context.memory.used().peak as u64));
        Ok(AttemptOutcome::Done(Explanation {
            root,
            planning_time: planning,
            execution_time: execution,
            peak_memory_bytes: memory,
            location: prepared.location(),
        }))
    }

    pub(crate) async fn explain_write(
        &self,
        plan: &ExplainPlan,
        write: &WritePlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<Explanation>> {
        let Some(query) = &write.input else {
            return Err(SqlError::unsupported("EXPLAIN of a statement that writes no rows"));
        };
        let mut ran = None;
        if plan.analyze {
            let start = self.clock.monotonic();
            let AttemptOutcome::Done(written) = self.dml.write(write, transaction, context).await? else {
                return Ok(AttemptOutcome::Conflict);
            };
            ran = Some((written, self.clock.monotonic().saturating_sub(start)));
        }
        let (prepared, planning) = self.ran_or_planned(query, context, ran.is_some()).await?;
        let mut properties = Vec::new();
        if let Some(conflict) = &write.conflict {
            let resolution = if conflict.update.is_some() { "UPDATE" } else { "NOTHING" };
            properties.push(Property::text("Conflict Resolution", resolution));
            let keys = conflict.arbiters.iter().map(|key| write.table.index_name(*key).to_owned());
            properties.push(Property::list("Conflict Arbiter Indexes", keys));
        }
        properties.extend(ran.iter().map(|(written, _)| Property::new("Rows Written", Value::Count(written.rows))));
        let input = tree::build_input_tree(&prepared, plan, &context.settings);
        let root = modify_node("Insert", &write.table, input, properties, write.returning.is_some(), ran.as_ref());
        let (execution, memory) = (ran.map(|(_, time)| time), plan.analyze.then(|| context.memory.used().peak as u64));
        Ok(AttemptOutcome::Done(Explanation {
            root,
            planning_time: planning,
            execution_time: execution,
            peak_memory_bytes: memory,
            location: prepared.location(),
        }))
    }

    /// Explains SELECT … FOR UPDATE, where LIMIT and OFFSET count locked rows.
    pub(crate) async fn explain_locking(
        &self,
        plan: &ExplainPlan,
        query: &QueryPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<Explanation>> {
        let (skip, limit) = query.locked_limit.counts()?;
        let mut ran = None;
        if plan.analyze {
            let start = self.clock.monotonic();
            let AttemptOutcome::Done(batches) = self.dml.query_locked(query, transaction, context).await? else {
                return Ok(AttemptOutcome::Conflict);
            };
            let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
            ran = Some((rows, self.clock.monotonic().saturating_sub(start)));
        }
        let (prepared, planning) = self.ran_or_planned(query, context, ran.is_some()).await?;
        let input = key_lookup_tree::show_index_scans(
            tree::build_input_tree(&prepared, plan, &context.settings),
            &plan.inner,
            context,
            ran.is_some(),
        );
        let estimate = input.estimate;
        let actual = |rows| ran.map(|(_, time)| ActualRun { rows, time_ms: Some((0.0, milliseconds(time))) });
        let locked = ran.map_or(0, |(rows, _)| rows);
        let lock = Node {
            name: "LockRows".to_owned(),
            kind: NodeKind::Other,
            relation: None,
            properties: Vec::new(),
            estimate,
            engine: None,
            actual: actual(locked),
            init_plans: Vec::new(),
            children: vec![input],
        };
        let root = if skip == 0 && limit.is_none() {
            lock
        } else {
            let counts = [("Limit", limit), ("Offset", (0 < skip).then_some(skip))];
            let counts = counts.into_iter().filter_map(|(key, count)| Some(Property::new(key, Value::Count(count?))));
            let rows = estimate.rows.saturating_sub(skip).min(limit.unwrap_or(u64::MAX));
            Node {
                name: "Limit".to_owned(),
                kind: NodeKind::Other,
                relation: None,
                properties: counts.collect(),
                estimate: Estimate { rows, ..estimate },
                engine: None,
                actual: actual(locked),
                init_plans: Vec::new(),
                children: vec![lock],
            }
        };
        let (execution, memory) = (ran.map(|(_, time)| time), plan.analyze.then(|| context.memory.used().peak as u64));
        Ok(AttemptOutcome::Done(Explanation {
            root,
            planning_time: planning,
            execution_time: execution,
            peak_memory_bytes: memory,
            location: prepared.location(),
        }))
    }

    /// Returns the operators that ran, or plans those of `query`, with the planning time.
    async fn ran_or_planned(
        &self,
        query: &QueryPlan,
        context: &RunContext,
        ran: bool,
    ) -> SqlResult<(PreparedQuery, Duration)> {
        match context.first_plan.get().filter(|_| ran) {
            Some(noted) => Ok(noted),
            None => self.plan_operators(query, context, Purpose::Explain).await,
        }
    }
}

/// Creates the node of a statement that changes rows, over the tree of its input.
fn modify_node(
    name: &str,
    table: &Table,
    input: Node,
    properties: Vec<Property>,
    returns: bool,
    ran: Option<&(ModifyOutcome, Duration)>,
) -> Node {
    let actual = ran.map(|(changed, time)| {
        let rows = changed.returning.iter().map(|batch| batch.num_rows() as u64).sum();
        let start = input.actual.as_ref().and_then(|actual| actual.time_ms).map_or(0.0, |(start, _)| start);
        ActualRun { rows, time_ms: Some((start, milliseconds(*time))) }
    });
    let estimate = if returns { input.estimate } else { Estimate { rows: 0, width: 0, ..input.estimate } };
    Node {
        name: name.to_owned(),
        kind: NodeKind::Other,
        relation: Some(table.name.clone()),
        properties,
        estimate,
        engine: None,
        actual,
        init_plans: Vec::new(),
        children: vec![input],
    }
}
