//! Operator that evaluates expressions with correlated subqueries that have no join form.
//!
//! - `plan.rs`: makes the operator of a SubPlan node,
//! - `exec.rs`: the operator, which evaluates expressions batch by batch,
//! - `expression.rs`: expressions that wait for subqueries asynchronously, without blocking a thread,
//! - `subquery_results.rs`: runs a subquery once per distinct combination of its outer values, and caches the results
//!   while there is memory.

mod exec;
mod expression;
mod plan;
mod subquery_results;

#[cfg(test)]
mod tests;

pub(crate) use self::plan::plan_sub_plan;
