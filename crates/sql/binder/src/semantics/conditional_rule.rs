//! Wrapper of analyzer rules that visits a plan only if it contains nodes to which the rule applies; most plans have
//! none.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::grouping_set::has_sets;
use super::grouping_set::is_grouping;

type Rule = Arc<dyn AnalyzerRule + Send + Sync>;

/// Analyzer rule that applies to certain nodes.
#[derive(Debug)]
pub(super) struct ConditionalRule {
    rule: Rule,
    applies_to: fn(&LogicalPlan) -> bool,
    /// True if the rule changes the schemas of the nodes above.
    changes_schema: bool,
}

impl ConditionalRule {
    /// Wraps a rule for calls of GROUPING().
    pub(super) fn grouping_calls(rule: Rule) -> Rule {
        Arc::new(Self { rule, applies_to: calls_grouping, changes_schema: true })
    }

    /// Wraps a rule for GROUPING SETS.
    pub(super) fn grouping_sets(rule: Rule) -> Rule {
        let concerns = |node: &LogicalPlan| matches!(node, LogicalPlan::Aggregate(aggregate) if has_sets(aggregate));
        Arc::new(Self { rule, applies_to: concerns, changes_schema: false })
    }

    /// Wraps a rule for UNNEST.
    pub(super) fn unnested_lists(rule: Rule) -> Rule {
        Arc::new(Self { rule, applies_to: |node| matches!(node, LogicalPlan::Unnest(_)), changes_schema: false })
    }
}

impl AnalyzerRule for ConditionalRule {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_there = false;
        plan.apply_with_subqueries(|node| {
            is_there |= (self.applies_to)(node);
            Ok(if is_there { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_there {
            return Ok(plan);
        }
        let plan = self.rule.analyze(plan, config)?;
        if !self.changes_schema {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes)).data()
    }
}

fn calls_grouping(node: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = node else { return false };
    aggregate.aggr_expr.iter().any(|mut expr| {
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        matches!(expr, Expr::AggregateFunction(call) if is_grouping(&call.func))
    })
}
