//! What plans are made and run with: options, rules and the few functions that rules look up by name.

use std::sync::Arc;

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::prelude::SessionConfig;

use crate::semantics::{self, Session};
use crate::{Settings, optimize, series};

/// What is the same for all statements of a server.
#[derive(Debug)]
pub(crate) struct Base {
    state: SessionState,
}

impl Base {
    pub(crate) fn new(runtime: Arc<RuntimeEnv>) -> Self {
        let mut config = SessionConfig::new().with_create_default_catalog_and_schema(false);
        let options = config.options_mut();
        options.sql_parser.enable_ident_normalization = false;
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.collect_spans = true;
        options.sql_parser.map_string_types_to_utf8view = true;
        // Queries over an ordered subquery rely on its order, as array_agg does.
        options.sql_parser.enable_subquery_sort_elimination = false;
        // It takes a limit beneath window functions, which then see fewer rows.
        options.optimizer.enable_topk_aggregation = false;
        // It compares what may be NULL, which operators say of every cast, and the plan only of casts of what may be.
        options.execution.skip_physical_aggregate_schema_check = true;
        // An exchange that spills reads the first of its files to the end before the next, and waits for ever for a file
        // that stays open while another has the rows (DataFusion #24883): each batch gets its own.
        options.execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1).expect("1 is not zero");
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_optimizer_rules(optimize::rules(true))
            .with_query_planner(Arc::new(series::Planning))
            .with_physical_optimizer_rules(optimize::physical_rules(true))
            // What DISTINCT ON becomes.
            .with_aggregate_functions(vec![first_value_udaf(), last_value_udaf()])
            .build();
        Self { state }
    }

    /// The state of one statement.
    pub(crate) fn statement(&self, settings: &Settings, session: &Arc<Session>) -> Arc<SessionState> {
        let mut config = self.state.config().clone().with_batch_size(settings.batch_size());
        if let Some(partitions) = settings.target_partitions() {
            config = config.with_target_partitions(partitions);
        }
        let mut state = SessionStateBuilder::new_from_existing(self.state.clone());
        if !settings.optimizer() {
            state = state
                .with_optimizer_rules(optimize::rules(false))
                .with_physical_optimizer_rules(optimize::physical_rules(false));
        }
        let state = state
            .with_config(optimize::configure(config, settings.optimizer()))
            .with_analyzer_rules(semantics::analyzer_rules(session))
            .with_expr_planners(semantics::expr_planners(session))
            .build();
        Arc::new(state)
    }
}
