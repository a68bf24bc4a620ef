//! The steps of a statement's way, as spans of the log.

use tracing::{Span, debug_span};

/// A step on a statement's way from its text to its rows, in order. What a statement does not need, it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Text becomes statements.
    Parse,
    /// States of the past and files that names stand for are fetched.
    Resolve,
    /// Names and types are found: the first plan.
    Bind,
    /// Rows are found by an index, without the steps between this and the commit.
    LookUpKeys,
    /// A cluster is chosen, and the statement's turn waited for.
    Admit,
    /// Counts of LIMIT, values of subqueries and keys of joins are found: each a query that takes the steps below.
    EvaluateSubplans,
    /// The optimizer's rules make a better plan.
    Optimize,
    /// A plan becomes operators.
    PlanOperators,
    /// The engine's programs take the place of operators.
    Compile,
    /// Operators that programs leave are partitioned for several threads.
    Partition,
    /// Operators are cut into stages, for the workers of a cluster.
    Distribute,
    /// Operators give their rows.
    Run,
    /// The statement's transaction ends.
    Commit,
}

impl Step {
    /// The target of these spans in the log: the filter `info,step=debug` logs when each step of each statement begins and ends.
    pub const TARGET: &str = "step";

    /// A span that lasts as long as the step; nothing where nobody listens.
    #[must_use]
    pub fn span(self) -> Span {
        match self {
            Self::Parse => debug_span!(target: Step::TARGET, "parse"),
            Self::Resolve => debug_span!(target: Step::TARGET, "resolve"),
            Self::Bind => debug_span!(target: Step::TARGET, "bind"),
            Self::LookUpKeys => debug_span!(target: Step::TARGET, "look_up_keys"),
            Self::Admit => debug_span!(target: Step::TARGET, "admit"),
            Self::EvaluateSubplans => debug_span!(target: Step::TARGET, "evaluate_subplans"),
            Self::Optimize => debug_span!(target: Step::TARGET, "optimize"),
            Self::PlanOperators => debug_span!(target: Step::TARGET, "plan_operators"),
            Self::Compile => debug_span!(target: Step::TARGET, "compile"),
            Self::Partition => debug_span!(target: Step::TARGET, "partition"),
            Self::Distribute => debug_span!(target: Step::TARGET, "distribute"),
            Self::Run => debug_span!(target: Step::TARGET, "run"),
            Self::Commit => debug_span!(target: Step::TARGET, "commit"),
        }
    }
}
