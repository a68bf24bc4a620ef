//! Fast path without waiting: Bind, Execute and Sync of a compiled key lookup over unflushed rows, without futures and
//! contexts around the steps. A statement that turns out to be no such case takes the general path of
//! `extended_query.rs` from the start.

use std::sync::Arc;

use binder::Step;
use key_lookup::KeyLookupRun;
use types::{SqlResult, SqlType};
use value_codec::decode;
use value_codec::encode::TextStyle;

use crate::bound_statement::{BoundPlan, BoundStatement};
use crate::extended_query_requests::{BindRequest, expand_formats};
use crate::metrics::StatementKind;
use crate::portal::{Portal, PortalProgress};
use crate::prepared_statement::PreparedStatement;
use crate::result_sink::ResultSink;
use crate::running_statement::Statement;
use crate::session::Session;
use crate::started_statement::command_tag;

impl Session {
    /// Binds a statement with a compiled key lookup, whose validity is checked when it runs. `None`: the general path
    /// has to be taken.
    pub fn try_bind_fast(&mut self, bind: &BindRequest) -> Option<SqlResult<()>> {
        let prepared = self.prepared.get(&bind.statement)?;
        let types = &prepared.parameters;
        let is_eligible = !prepared.key_lookups.is_empty()
            && bind.parameters.len() == types.len()
            && !types.iter().any(SqlType::is_reg_type)
            && !self.transaction_block.is_failed()
            && (bind.portal.is_empty() || !self.portals.contains_key(&bind.portal));
        if !is_eligible {
            return None;
        }
        let prepared = Arc::clone(prepared);
        Some(match self.try_create_portal(bind, &prepared) {
            Ok(portal) => {
                self.portals.insert(bind.portal.clone(), portal?);
                Ok(())
            }
            Err(error) => {
                self.portals.remove(&bind.portal);
                self.begin(prepared.text()).record(prepared.text(), Err(&error), None);
                Err(error)
            }
        })
    }

    /// Creates the portal; `None` if there is no key lookup for the types of the parameters yet.
    fn try_create_portal(&self, bind: &BindRequest, prepared: &Arc<PreparedStatement>) -> SqlResult<Option<Portal>> {
        let types = &prepared.parameters;
        let formats = expand_formats(&bind.parameter_formats, types.len(), "parameter", "parameters")?;
        let dates = self.settings().date_context(self.instance.clock.now_us());
        let parameters = bind.parameters.iter().zip(formats).zip(types).enumerate();
        let values = parameters.map(|(index, ((bytes, format), sql_type))| {
            decode::decode_parameter(index + 1, bytes.as_deref(), format, sql_type, &dates)
        });
        let values = values.collect::<SqlResult<Vec<_>>>()?;
        let Some(program) = prepared.key_lookups.find(|| prepared.parameter_types_for(&values)) else {
            return Ok(None);
        };
        let bound = BoundStatement { values, plan: BoundPlan::KeyLookup(program) };
        let mut portal = Portal::bound(Arc::clone(prepared), bound, prepared.columns.clone());
        if let Some(columns) = &portal.columns {
            portal.formats = expand_formats(&bind.result_formats, columns.len(), "result", "columns")?;
        }
        Ok(Some(portal))
    }

    /// Executes a portal and sends all its rows. `None`: the general path has to be taken.
    pub fn try_execute_fast(&mut self, name: &str, client: &mut dyn ResultSink) -> Option<SqlResult<()>> {
        let portal = self.portals.get(name)?;
        let PortalProgress::Bound(BoundStatement { plan: BoundPlan::KeyLookup(program), .. }) = &portal.progress else {
            return None;
        };
        if !program.is_select() {
            return None;
        }
        let prepared = Arc::clone(&portal.prepared);
        let mut portal = self.portals.remove(name)?;
        let statement = self.begin(prepared.text());
        let ran = match self.try_select_fast(&portal, &statement, client) {
            Ok(Some(rows)) => Ok(command_tag("SELECT", rows)),
            Ok(None) => {
                self.portals.insert(name.to_owned(), portal);
                return None;
            }
            Err(error) => Err(error),
        };
        let outcome = self.end_without_commit(ran);
        statement.record_fast_path(
            prepared.text(),
            outcome.as_ref().map(|_| ()),
            self.settings().log_min_duration_statement(),
        );
        Some(outcome.map(|tag| {
            portal.progress = PortalProgress::Finished { tag_word: "SELECT" };
            self.portals.insert(name.to_owned(), portal);
            self.complete(tag, client);
        }))
    }

    /// Encodes the rows of a portal into the client's buffer and returns their number. `None`: the general path has to
    /// be taken.
    fn try_select_fast(
        &mut self,
        portal: &Portal,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Option<u64>> {
        let PortalProgress::Bound(BoundStatement { plan: BoundPlan::KeyLookup(lookup), values }) = &portal.progress
        else {
            return Ok(None);
        };
        self.enter_transaction(portal.prepared.parsed.as_ref(), statement)?;
        let Some(program) =
            lookup.if_valid(self.transaction_block.session_state(), &self.transaction_block.view().state)
        else {
            return Ok(None);
        };
        let run = KeyLookupRun { lookup: program, parameters: values, session: None };
        let Some(rows) = run.try_read_nonblocking(self.transaction_block.transaction())? else { return Ok(None) };
        let Some(columns) = &portal.columns else { return Ok(None) };
        // The span is opened only now: on the general path, the lookup opens its own.
        drop(Step::LookUpKeys.span());
        statement.set_kind(StatementKind::Query);
        let style = TextStyle {
            zone: self.settings().zone(),
            names: Arc::new(system_catalog::catalog_names(&self.statement_context(statement))),
        };
        let count = client.send_key_lookup_rows(rows, columns, &portal.formats, &style)?;
        self.instance.metrics.rows_out.inc_by(count);
        Ok(Some(count))
    }

    /// Ends an implicit transaction that has nothing to commit; `false`: the general path has to be taken.
    pub fn try_sync_fast(&mut self) -> bool {
        if self.transaction_block.is_explicit() {
            return true;
        }
        if self.transaction_block.check_snapshot().is_err()
            || self.stage_on_commit().is_err()
            || !self.transaction_block.try_end_read_only()
        {
            return false;
        }
        self.end_portals(true);
        true
    }
}
