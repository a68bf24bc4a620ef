//! DataFusion session states, with which plans are built and run: options, rules and the few functions that rules
//! look up by name.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;
use plan::{NoFragmentCache, OperatorPlanning, RunStreams, TableScanPlanner};
use session_context::EvaluationContext;
use settings::Settings;

use crate::semantics;

/// Limit on cached states; combinations of settings are few.
const CACHED_STATES_MAX: usize = 16;

/// Environment shared by the binders of all statements of a server: the factory of scans, and DataFusion states by
/// settings.
#[derive(Debug)]
pub struct Environment {
    /// Factory of table scans.
    pub(super) scan: Arc<dyn TableScanPlanner>,
    operators: OperatorPlanning,
    state: SessionState,
    /// Cached states by settings.
    states: Mutex<HashMap<StateKey, SessionState>>,
}

/// Minimum memory in bytes of one partition of a query: its buffers, and its state while the rest is spilled.
const PARTITION_BYTES_MIN: usize = 512 << 10;

/// Settings that affect a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct StateKey {
    batch_size: usize,
    target_partitions: Option<usize>,
    optimizer: bool,
    fragment_cache: bool,
}

/// Configuration for the same statement with a single partition.
#[derive(Debug)]
struct SinglePartitionConfig(SessionConfig);

impl Environment {
    /// Creates an environment: `scan` creates table scans, `operators` plans operators, plans run in `runtime` with
    /// `parts` partitions unless a setting overrides it.
    #[must_use]
    pub fn new(
        scan: Arc<dyn TableScanPlanner>,
        operators: OperatorPlanning,
        runtime: Arc<RuntimeEnv>,
        parts: usize,
    ) -> Self {
        let mut config =
            SessionConfig::new().with_create_default_catalog_and_schema(false).with_target_partitions(parts);
        let options = config.options_mut();
        options.sql_parser.enable_ident_normalization = false;
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.collect_spans = true;
        options.sql_parser.map_string_types_to_utf8view = true;
        // Queries over an ordered subquery rely on its order, as `array_agg` does.
        options.sql_parser.enable_subquery_sort_elimination = false;
        // It pushes a limit below window functions, which would then see fewer rows.
        options.optimizer.enable_topk_aggregation = false;
        // It compares nullability, which physical casts always report, and logical casts only for nullable inputs.
        options.execution.skip_physical_aggregate_schema_check = true;
        // A spilling exchange reads its first file to the end before the next, and waits forever for a file that
        // stays open while another one has the rows (DataFusion #24883): each batch gets its own file.
        options.execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1).expect("1 is not zero");
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_optimizer_rules(optimizer::rules(true))
            .with_query_planner(Arc::clone(&operators.planner))
            .with_physical_optimizer_rules((operators.rules)(true))
            // DISTINCT ON is planned as these.
            .with_aggregate_functions(vec![first_value_udaf(), last_value_udaf()])
            .with_analyzer_rules(Vec::new())
            .build();
        Self { scan, operators, state, states: Mutex::default() }
    }

    /// Returns the state for one statement.
    pub(crate) fn statement_state(&self, settings: &Settings, session: &Arc<EvaluationContext>) -> Arc<SessionState> {
        let obeyed = StateKey {
            batch_size: settings.batch_size(),
            target_partitions: settings
                .target_partitions()
                .or_else(|| self.partitions_for_memory(settings.query_memory()?)),
            optimizer: settings.optimizer(),
            fragment_cache: settings.fragment_cache(),
        };
        let known = self.states.lock().get(&obeyed).cloned();
        let mut state = known.unwrap_or_else(|| {
            let state = self.build_state(obeyed);
            let mut made = self.states.lock();
            if CACHED_STATES_MAX <= made.len() {
                made.clear();
            }
            made.insert(obeyed, state.clone());
            state
        });
        for rule in semantics::analyzer_rules(session) {
            state.add_analyzer_rule(rule);
        }
        for planner in semantics::expr_planners(session) {
            state.register_expr_planner(planner).expect("every state takes them");
        }
        Arc::new(state)
    }

    /// Returns the number of partitions for a query with this much memory; `None` if it is the default.
    fn partitions_for_memory(&self, memory_bytes: usize) -> Option<usize> {
        let all = self.state.config().target_partitions();
        Some(partitions_for_memory(memory_bytes, all)).filter(|parts| *parts < all)
    }

    fn build_state(&self, settings: StateKey) -> SessionState {
        let mut config = self.state.config().clone().with_batch_size(settings.batch_size);
        if let Some(partitions) = settings.target_partitions {
            config = config.with_target_partitions(partitions);
        }
        let mut config = optimizer::configure(config, settings.optimizer);
        if !settings.fragment_cache {
            config.set_extension(Arc::new(NoFragmentCache));
        }
        let undivided = SinglePartitionConfig(config.clone().with_target_partitions(1));
        let mut state = SessionStateBuilder::new_from_existing(self.state.clone());
        if !settings.optimizer {
            state = state.with_optimizer_rules(optimizer::rules(false)).with_physical_optimizer_rules((self
                .operators
                .rules)(
                false
            ));
        }
        state.with_config(config.with_extension(Arc::new(undivided))).build()
    }
}

/// Returns the number of partitions for a query with `memory_bytes`: at least one, at most `parts`.
#[must_use]
pub fn partitions_for_memory(memory_bytes: usize, parts: usize) -> usize {
    parts.min((memory_bytes / PARTITION_BYTES_MIN).max(1))
}

/// Returns `state` changed to a single partition per operator.
#[must_use]
pub fn with_single_partition(state: &SessionState) -> SessionState {
    let mut config = match state.config().get_extension::<SinglePartitionConfig>() {
        Some(undivided) => undivided.0.clone(),
        None => state.config().clone().with_target_partitions(1),
    };
    if let Some(streams) = state.config().get_extension::<RunStreams>() {
        config.set_extension(streams);
    }
    let mut state = state.clone();
    *state.config_mut() = config;
    state
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use datafusion::catalog::Session as DataFusionSession;
    use datafusion::common::{Result, internal_err};
    use datafusion::execution::context::QueryPlanner;
    use datafusion::logical_expr::{Expr, LogicalPlan};
    use datafusion::physical_plan::ExecutionPlan;
    use plan::ShardTable;

    use super::*;

    /// Scan factory for plans that are not run.
    #[derive(Debug)]
    struct NoScan;

    #[derive(Debug)]
    struct NoOperators;

    #[async_trait]
    impl QueryPlanner for NoOperators {
        async fn create_physical_plan(
            &self,
            _: &LogicalPlan,
            _: &dyn DataFusionSession,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            internal_err!("nothing is run")
        }
    }

    impl TableScanPlanner for NoScan {
        fn plan_scan(
            &self,
            _: &ShardTable,
            _: Option<&Vec<usize>>,
            _: &[Expr],
            _: Option<usize>,
            _: &dyn DataFusionSession,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            internal_err!("nothing is scanned")
        }
    }

    #[test]
    fn little_memory_is_for_few_parts() {
        assert_eq!([0, 1 << 20, 3 << 20, 1 << 30].map(|bytes| partitions_for_memory(bytes, 16)), [1, 2, 6, 16]);
        let operators = OperatorPlanning { planner: Arc::new(NoOperators), rules: |_| Vec::new() };
        let environment = Environment::new(Arc::new(NoScan), operators, Arc::default(), 16);
        assert_eq!(
            (environment.partitions_for_memory(1 << 20), environment.partitions_for_memory(1 << 30)),
            (Some(2), None)
        );
    }
}
