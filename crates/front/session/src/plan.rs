//! How a session plans: by what it has at the moment, on threads that nobody else waits for.

use std::pin::pin;
use std::sync::Arc;

use binder::Planned;
use session_context::StatementContext;
use syntax::Parsed;
use types::{SqlResult, SqlType};

use crate::planning::Planning;
use crate::session::Session;

/// Texts up to so many bytes are parsed where they arrive: that takes some microseconds, about as long as to give them to another thread.
const SHORT_TEXT_BYTES: usize = 2_048;

impl Session {
    /// The plan of a statement. What is known, or takes no longer than to give it to another thread, is made at once.
    pub(crate) fn planning(
        &self,
        parsed: &Arc<Parsed>,
        parameters: &[Option<SqlType>],
        context: Arc<StatementContext>,
    ) -> SqlResult<Planning<Planned>> {
        let planner = Arc::clone(&self.instance.planner);
        if parsed.is_light() {
            return planner.plan(parsed, parameters, &context).map(Planning::Done);
        }
        if let Some(known) = planner.known(parsed, parameters, &context) {
            return Ok(Planning::Done(Planned::Query(known)));
        }
        let (parsed, parameters) = (Arc::clone(parsed), parameters.to_vec());
        Ok(Planning::of(move || planner.plan(&parsed, &parameters, &context)))
    }

    /// Waits for planning to be done.
    pub(crate) fn planned<T: Send + 'static>(
        &self,
        planning: Planning<T>,
    ) -> impl Future<Output = SqlResult<T>> + Send + use<T> {
        let executor = Arc::clone(self.instance.execution.executor());
        async move {
            match planning {
                Planning::Done(outcome) => Ok(outcome),
                Planning::Work(work) => executor.planning().run(work).await,
            }
        }
    }

    /// The statements of a string, in order.
    pub async fn parse(&mut self, sql: &Arc<String>) -> SqlResult<Vec<Arc<Parsed>>> {
        let begun = self.instance.clock.monotonic();
        let parsed = if sql.len() <= SHORT_TEXT_BYTES {
            let parsed = self.instance.planner.parse(sql).map(shared);
            parsed.inspect_err(|error| self.begin(sql).note(sql, Err(error), None))
        } else {
            let statement = self.begin(sql);
            let (planner, text) = (Arc::clone(&self.instance.planner), Arc::clone(sql));
            let parsing = self.instance.execution.executor().planning().run(move || planner.parse(&text).map(shared));
            let parsed = statement.watch(pin!(parsing)).await;
            parsed.inspect_err(|error| statement.note(sql, Err(error), None))
        };
        self.parsed_in = self.instance.clock.monotonic().saturating_sub(begun);
        parsed
    }
}

fn shared(statements: Vec<Parsed>) -> Vec<Arc<Parsed>> {
    statements.into_iter().map(Arc::new).collect()
}
