//! Fast path without waiting: Bind, Execute and Sync of a compiled key lookup over unflushed rows, without futures and
//! contexts around the steps. A statement that turns out to be no such case takes the general path of `extended.rs`
//! from the start.

use std::sync::Arc;

use binder::Step;
use key_lookup::PointRun;
use types::{SqlResult, SqlType};
use value_codec::decode;
use value_codec::encode::TextStyle;

use crate::bind::{Bind, formats_of};
use crate::bound::{Bound, BoundPlan};
use crate::metrics::Kind;
use crate::portal::{Portal, Progress};
use crate::prepared::Prepared;
use crate::result_sink::ResultSink;
use crate::session::Session;
use crate::started::tag;
use crate::statement::Statement;

impl Session {
    /// Binds a statement with a compiled key lookup, whose validity is checked when it runs. `None`: the general path
    /// has to be taken.
    pub fn bind_at_once(&mut self, bind: &Bind) -> Option<SqlResult<()>> {
        let prepared = self.prepared.get(&bind.statement)?;
        let types = &prepared.parameters;
        let is_plain = !prepared.programs.are_none()
            && bind.parameters.len() == types.len()
            && !types.iter().any(SqlType::names_objects)
            && !self.block.is_failed()
            && (bind.portal.is_empty() || !self.portals.contains_key(&bind.portal));
        if !is_plain {
            return None;
        }
        let prepared = Arc::clone(prepared);
        Some(match self.bound_at_once(bind, &prepared) {
            Ok(portal) => {
                self.portals.insert(bind.portal.clone(), portal?);
                Ok(())
            }
            Err(error) => {
                self.portals.remove(&bind.portal);
                self.begin(prepared.text()).note(prepared.text(), Err(&error), None);
                Err(error)
            }
        })
    }

    /// Creates the portal; `None` if there is no key lookup for the types of the parameters yet.
    fn bound_at_once(&self, bind: &Bind, prepared: &Arc<Prepared>) -> SqlResult<Option<Portal>> {
        let types = &prepared.parameters;
        let formats = formats_of(&bind.parameter_formats, types.len(), "parameter", "parameters")?;
        let dates = self.settings().date_context(self.instance.clock.now_us());
        let parameters = bind.parameters.iter().zip(formats).zip(types).enumerate();
        let values = parameters.map(|(index, ((bytes, format), sql_type))| {
            decode::parameter(index + 1, bytes.as_deref(), format, sql_type, &dates)
        });
        let values = values.collect::<SqlResult<Vec<_>>>()?;
        let Some(program) = prepared.programs.find(|| prepared.types_with(&values)) else { return Ok(None) };
        let bound = Bound { values, plan: BoundPlan::Program(program) };
        let mut portal = Portal::bound(Arc::clone(prepared), bound, prepared.columns.clone());
        if let Some(columns) = &portal.columns {
            portal.formats = formats_of(&bind.result_formats, columns.len(), "result", "columns")?;
        }
        Ok(Some(portal))
    }

    /// Executes a portal and sends all its rows. `None`: the general path has to be taken.
    pub fn execute_at_once(&mut self, name: &str, client: &mut dyn ResultSink) -> Option<SqlResult<()>> {
        let portal = self.portals.get(name)?;
        let Progress::Bound(Bound { plan: BoundPlan::Program(program), .. }) = &portal.progress else { return None };
        if !program.is_select() {
            return None;
        }
        let prepared = Arc::clone(&portal.prepared);
        let mut portal = self.portals.remove(name)?;
        let statement = self.begin(prepared.text());
        let ran = match self.select_at_once(&portal, &statement, client) {
            Ok(Some(rows)) => Ok(tag("SELECT", rows)),
            Ok(None) => {
                self.portals.insert(name.to_owned(), portal);
                return None;
            }
            Err(error) => Err(error),
        };
        let outcome = self.note_outcome(ran);
        statement.note_at_once(
            prepared.text(),
            outcome.as_ref().map(|_| ()),
            self.settings().log_min_duration_statement(),
        );
        Some(outcome.map(|tag| {
            portal.progress = Progress::Finished { word: "SELECT" };
            self.portals.insert(name.to_owned(), portal);
            self.complete(tag, client);
        }))
    }

    /// Encodes the rows of a portal into the client's buffer and returns their number. `None`: the general path has to
    /// be taken.
    fn select_at_once(
        &mut self,
        portal: &Portal,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Option<u64>> {
        let Progress::Bound(Bound { plan: BoundPlan::Program(kept), values }) = &portal.progress else {
            return Ok(None);
        };
        self.enter(portal.prepared.parsed.as_ref(), statement)?;
        let Some(program) = kept.now(self.block.held(), &self.block.view().state) else { return Ok(None) };
        let run = PointRun { program, values, session: None };
        let Some(found) = run.rows_at_once(self.block.transaction())? else { return Ok(None) };
        let Some(columns) = &portal.columns else { return Ok(None) };
        // The span is opened only now: on the general path, the lookup opens its own.
        drop(Step::LookUpKeys.span());
        statement.is(Kind::Query);
        let style = TextStyle {
            zone: self.settings().zone(),
            names: Arc::new(system_catalog::names(&self.context(statement))),
        };
        let count = client.put_all(found, columns, &portal.formats, &style)?;
        self.instance.metrics.rows_out.inc_by(count);
        Ok(Some(count))
    }

    /// Ends an implicit transaction that has nothing to commit; `false`: the general path has to be taken.
    pub fn sync_at_once(&mut self) -> bool {
        if self.block.is_explicit() {
            return true;
        }
        if self.block.check_live().is_err() || self.stage_on_commit().is_err() || !self.block.end_unwritten() {
            return false;
        }
        self.end_portals(true);
        true
    }
}
