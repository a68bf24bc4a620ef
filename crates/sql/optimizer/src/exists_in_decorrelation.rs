//! Decorrelation of EXISTS and IN, from the innermost subquery outward.
//!
//! DataFusion's rule walks all of a subquery's plan, and hashes everything below each filter in it: n levels take n³
//! steps. Here the rule gets subqueries whose inputs are replaced by placeholders.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, Projection, Subquery};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use functions::error::to_datafusion;
use types::interrupt;

use crate::datafusion_rules::RuleKind;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// DataFusion's rule `decorrelate_predicate_subquery`, given a placeholder for the input of each subquery that is not
/// correlated.
#[derive(Debug)]
pub(super) struct PlaceholderDecorrelation {
    rule: Rule,
}

impl PlaceholderDecorrelation {
    /// Wraps `rule` if it is `decorrelate_predicate_subquery`; returns other rules unchanged.
    pub(super) fn wrap(rule: Rule) -> Rule {
        if RuleKind::DecorrelatePredicateSubquery.matches(rule.as_ref()) { Arc::new(Self { rule }) } else { rule }
    }

    fn rewrite_node(&self, node: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &node else { return Ok(Transformed::no(node)) };
        let is_membership = |part: &Expr| Ok(matches!(part, Expr::Exists(_) | Expr::InSubquery(_)));
        if !filter.predicate.exists(is_membership)? {
            return Ok(Transformed::no(node));
        }
        interrupt::check().map_err(to_datafusion)?;
        let mut replaced = ReplacedInputs::default();
        let shallow = node.clone().map_subqueries(|subquery| replaced.replace(subquery))?.data;
        let rewritten = self.rule.rewrite(shallow, config)?;
        if !rewritten.transformed {
            return Ok(Transformed::no(node));
        }
        rewritten.transform_data(|joined| replaced.restore(joined))
    }
}

impl OptimizerRule for PlaceholderDecorrelation {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|node| self.rewrite_node(node, config))
    }
}

/// Replaced inputs of subqueries, each with the schema of its placeholder. The schema's address identifies the
/// placeholder.
#[derive(Default)]
struct ReplacedInputs(Vec<(DFSchemaRef, Arc<LogicalPlan>)>);

impl ReplacedInputs {
    /// Replaces the input of a subquery's projection by a placeholder. Correlated subqueries stay complete, because the
    /// rule has to pull their references to outer columns up.
    fn replace(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Subquery(subquery) = &plan else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::Projection(Projection { expr, input, schema, .. }) = subquery.subquery.as_ref() else {
            return Ok(Transformed::no(plan));
        };
        if !subquery.subquery.all_out_ref_exprs().is_empty() {
            return Ok(Transformed::no(plan));
        }
        let input_schema = Arc::new(input.schema().as_ref().clone());
        self.0.push((Arc::clone(&input_schema), Arc::clone(input)));
        let row = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema: input_schema });
        let shallow = Projection::try_new_with_schema(expr.clone(), Arc::new(row), Arc::clone(schema))?;
        let shallow = Arc::new(LogicalPlan::Projection(shallow));
        Ok(Transformed::yes(LogicalPlan::Subquery(Subquery { subquery: shallow, ..subquery.clone() })))
    }

    /// Replaces the placeholders by the inputs.
    fn restore(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if self.0.is_empty() {
            return Ok(Transformed::no(plan));
        }
        plan.transform_down_with_subqueries(|node| {
            let LogicalPlan::EmptyRelation(relation) = &node else { return Ok(Transformed::no(node)) };
            Ok(match self.0.iter().find(|(schema, _)| Arc::ptr_eq(schema, &relation.schema)) {
                Some((_, input)) => Transformed::new(input.as_ref().clone(), true, TreeNodeRecursion::Jump),
                None => Transformed::no(node),
            })
        })
    }
}
