//! SQL cursors and prepared statements: DECLARE, FETCH, MOVE, CLOSE and EXECUTE.

use std::sync::Arc;

use binder::{QueryPlan, SessionCommand, StatementPlan};
use session_context::ScalarValue;
use syntax::Expr;
use syntax::statement::FetchDirection;
use types::{Condition, SqlError, SqlResult};
use value_codec::encode::Format;

use crate::planning_work::PlanningWork;
use crate::portal::{Portal, PortalLifetime, PortalProgress, unknown_cursor};
use crate::prepared_statement::{PreparedStatement, unknown_statement};
use crate::result_rows::{Columns, Rows};
use crate::result_sink::ResultSink;
use crate::retry_reason::AttemptResult;
use crate::running_statement::Statement;
use crate::session::{Session, StatementPosition};
use crate::started_statement::{OpenResult, StartedStatement, command_tag};
use crate::statement_timer::StatementState;
use crate::transaction_block::outside_block_error;

impl Session {
    /// EXECUTE: plans and runs a prepared statement with its arguments.
    pub(crate) async fn execute_prepared(
        &mut self,
        name: &str,
        arguments: &[Expr],
        place: StatementPosition,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<StartedStatement> {
        self.add_prepared_to_request(name);
        let prepared = self.prepared.get(name).map(Arc::clone).ok_or_else(|| unknown_statement(name))?;
        if prepared.parsed.is_none() {
            return Ok(StartedStatement::Done(String::new()));
        }
        let planned = Box::pin(self.plan_execute(name, arguments, statement)).await?;
        let planned =
            planned.ok_or_else(|| SqlError::internal("planning EXECUTE of a non-empty statement returned no plan"))?;
        prepared.check_columns(self.columns_of(&planned)?.as_deref())?;
        Box::pin(self.start_plan(planned, true, place, statement, client)).await
    }

    /// Plans a prepared statement with these arguments; `None` for an empty query string.
    pub(crate) async fn plan_execute(
        &mut self,
        name: &str,
        arguments: &[Expr],
        statement: &Statement,
    ) -> SqlResult<Option<StatementPlan>> {
        let prepared = self.prepared.get(name).map(Arc::clone).ok_or_else(|| unknown_statement(name))?;
        let Some(parsed) = &prepared.parsed else { return Ok(None) };
        if parsed.explained_execute().is_some() {
            return Err(SqlError::unsupported("EXECUTE of a prepared EXPLAIN EXECUTE"));
        }
        if arguments.len() != prepared.parameters.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {} parameters but got {}.", prepared.parameters.len(), arguments.len());
            return Err(SqlError::new(Condition::SyntaxError, message).with_detail(detail));
        }
        let values = self.argument_values(&prepared, arguments, statement).await?;
        self.plan_for_values(&prepared, &values, statement).await.map(Some)
    }

    /// Evaluates the arguments of EXECUTE once.
    async fn argument_values(
        &mut self,
        prepared: &Arc<PreparedStatement>,
        arguments: &[Expr],
        statement: &Statement,
    ) -> SqlResult<Vec<ScalarValue>> {
        if arguments.is_empty() {
            return Ok(Vec::new());
        }
        statement.enter_state(StatementState::Plan);
        let (planner, context) = (Arc::clone(&self.instance.planner), self.statement_context(statement));
        let (arguments, prepared) = (arguments.to_vec(), Arc::clone(prepared));
        let evaluating =
            PlanningWork::from_work(move || planner.evaluate_arguments(&arguments, &prepared.parameters, &context));
        self.run_planning(evaluating).await
    }

    #[expect(clippy::too_many_arguments, reason = "each is a word of the statement")]
    pub(crate) async fn declare(
        &mut self,
        name: String,
        query: &QueryPlan,
        hold: bool,
        scroll: Option<bool>,
        binary: bool,
        place: StatementPosition,
        statement: &Statement,
    ) -> AttemptResult<()> {
        if scroll == Some(true) {
            return Err(SqlError::unsupported("a SCROLL cursor").into());
        }
        if !hold && !self.transaction_block.is_explicit() && place.is_only {
            return Err(outside_block_error("DECLARE CURSOR").into());
        }
        if self.portals.contains_key(&name) {
            return Err(SqlError::new(Condition::DuplicateCursor, format!("cursor \"{name}\" already exists")).into());
        }
        let rows = self.open_query(query, statement).await?;
        let prepared = PreparedStatement::for_cursor(Arc::clone(&rows.columns));
        let format = if binary { Format::Binary } else { Format::Text };
        let life = if hold { PortalLifetime::HoldUntilCommit } else { PortalLifetime::Transaction };
        self.portals.insert(name, Portal::cursor(prepared, rows, format, life, self.cursors_declared));
        self.cursors_declared += 1;
        Ok(())
    }

    /// FETCH: skips rows where the direction asks for it; the caller sends the rows.
    pub(crate) async fn fetch(&mut self, cursor: String, direction: FetchDirection) -> SqlResult<StartedStatement> {
        let CursorMove { skip, take } = self.resolve_forward_move(&cursor, direction)?;
        if skip > 0 {
            self.skip_cursor_rows(&cursor, Some(skip)).await?;
        }
        Ok(StartedStatement::Rows(OpenResult::Cursor { name: cursor, rows_wanted: take }))
    }

    pub(crate) async fn move_cursor(&mut self, cursor: &str, direction: FetchDirection) -> SqlResult<StartedStatement> {
        let CursorMove { skip, take } = self.resolve_forward_move(cursor, direction)?;
        if skip > 0 {
            self.skip_cursor_rows(cursor, Some(skip)).await?;
        }
        let moved = self.skip_cursor_rows(cursor, take).await?;
        Ok(StartedStatement::Done(command_tag("MOVE", moved)))
    }

    pub(crate) fn close_cursor(&mut self, name: Option<&str>) -> SqlResult<StartedStatement> {
        match name {
            Some(name) => {
                self.portals.remove(name).ok_or_else(|| unknown_cursor(name))?;
                Ok(StartedStatement::Done("CLOSE CURSOR".to_owned()))
            }
            None => {
                self.portals.clear();
                Ok(StartedStatement::Done("CLOSE CURSOR ALL".to_owned()))
            }
        }
    }

    /// Returns the rows of an open cursor; at its end these are empty but still have columns.
    pub(crate) fn cursor_rows(&mut self, name: &str) -> SqlResult<&mut Rows> {
        self.cursor(name).map(|(rows, _)| rows)
    }

    /// Returns the rows of an open cursor with the formats that it was declared with.
    pub(crate) fn cursor(&mut self, name: &str) -> SqlResult<(&mut Rows, &[Format])> {
        let portal = self.portals.get_mut(name).ok_or_else(|| unknown_cursor(name))?;
        match &mut portal.progress {
            PortalProgress::Open(OpenResult::Plan { rows, .. }, _) => Ok((rows, &portal.formats)),
            _ => Err(SqlError::new(
                Condition::ObjectNotInPrerequisiteState,
                format!("portal \"{name}\" is not a cursor that FETCH can read"),
            )),
        }
    }

    /// Returns the columns of a statement's result, those of FETCH and EXECUTE included.
    pub(crate) fn columns_of(&self, planned: &StatementPlan) -> SqlResult<Option<Columns>> {
        match planned {
            StatementPlan::Session(SessionCommand::Fetch { cursor, .. }) => match self.portals.get(cursor) {
                Some(portal) => Ok(portal.columns.clone()),
                None => Err(unknown_cursor(cursor)),
            },
            StatementPlan::Session(SessionCommand::Execute { name, .. }) => match self.prepared.get(name) {
                Some(prepared) => Ok(prepared.columns.clone()),
                None => Err(unknown_statement(name)),
            },
            planned => Ok(planned.columns().map(Into::into)),
        }
    }

    async fn skip_cursor_rows(&mut self, cursor: &str, count: Option<u64>) -> SqlResult<u64> {
        Ok(self.cursor_rows(cursor)?.skip(count).await?.rows)
    }

    /// Converts a direction to forward steps from the position of the cursor; backward ones are refused, as for a NO
    /// SCROLL cursor.
    fn resolve_forward_move(&mut self, cursor: &str, direction: FetchDirection) -> SqlResult<CursorMove> {
        let position = self.cursor_rows(cursor)?.position();
        match direction {
            FetchDirection::ForwardAll => Ok(CursorMove { skip: 0, take: None }),
            FetchDirection::Forward(count) if count > 0 => Ok(CursorMove { skip: 0, take: Some(count.unsigned_abs()) }),
            FetchDirection::Relative(count) if count > 0 => {
                Ok(CursorMove { skip: count.unsigned_abs() - 1, take: Some(1) })
            }
            FetchDirection::Absolute(row) if row > 0 && row.unsigned_abs() > position => {
                Ok(CursorMove { skip: row.unsigned_abs() - position - 1, take: Some(1) })
            }
            _ => Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, "cursor can only scan forward")
                .with_hint("Kiln's cursors are NO SCROLL: fetch NEXT, FORWARD or ALL.")),
        }
    }
}

/// Movement of a cursor: rows to skip, then rows to return (`None`: all).
struct CursorMove {
    skip: u64,
    take: Option<u64>,
}
