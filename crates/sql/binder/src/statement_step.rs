//! Steps of a statement as log spans.

use tracing::{Span, debug_span};

/// Step of a statement from its text to its rows, in order. Statements skip the steps they do not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Parse text to statements.
    Parse,
    /// Fetch the historical snapshots and file lists that relations need.
    Resolve,
    /// Resolve names and types to the first logical plan.
    Bind,
    /// Find rows by an index (primary-key fast path), skipping the steps up to the commit.
    LookUpKeys,
    /// Choose a cluster and wait for admission.
    Admit,
    /// Evaluate subplans for LIMIT counts, scalar subqueries and join keys: each is a query that takes the steps
    /// below.
    EvaluateSubplans,
    /// Run the optimizer's rules.
    Optimize,
    /// Plan physical operators.
    PlanOperators,
    /// Compile operators for the engine.
    Compile,
    /// Partition the operators that were not compiled, for several threads.
    Partition,
    /// Cut operators into stages for the workers of a cluster.
    Distribute,
    /// Run the operators.
    Run,
    /// End the statement's transaction.
    Commit,
}

impl Step {
    /// Log target of these spans: the filter `info,step=debug` logs when each step of each statement begins and ends.
    pub const TARGET: &str = "step";

    /// Creates the span of the step, which is disabled unless its log target is enabled.
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
