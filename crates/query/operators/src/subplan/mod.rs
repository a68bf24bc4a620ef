//! SubPlans: the operator that evaluates expressions with correlated subqueries that have no join form.
//!
//! `exec.rs` computes a batch's expressions, which wait for the subqueries' runs (`expression.rs`) as other operators wait for their inputs:
//! no thread waits. `answers.rs` runs a subquery once for each distinct combination of the outer values it uses, and keeps its answers while there is
//! memory for them.

mod answers;
mod exec;
mod expression;
mod plan;

#[cfg(test)]
mod tests;

pub(crate) use self::plan::plan_sub_plan;
