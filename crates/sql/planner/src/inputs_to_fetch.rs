//! Determines the inputs that must be fetched before a statement is bound: states for AS OF, files of external tables.

use std::sync::Arc;

use binder::{Binder, time_travel_target};
use catalog::CatalogState;
use session_context::{MissingInputs, StatementContext};
use syntax::statement::TableSource;
use syntax::{ParsedStatement, Statement};
use types::SqlType;
use types::stack_limit::with_planning_stack;

use crate::Planner;

#[cfg(test)]
mod tests;

/// Number of relations up to which name lookup is faster than handing the work to another thread.
const FEW_RELATIONS_MAX: usize = 16;

/// Inputs that a statement may need beside the catalog, judged without name lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PossibleInputs {
    /// None.
    Nothing,
    /// Files of a few tables; determining which takes microseconds.
    FilesOfFewTables,
    /// Any inputs; determining which may take long.
    Any,
}

impl Planner {
    /// Returns whether binding a statement may need inputs beside the catalog, without looking up its names.
    #[must_use]
    pub fn may_miss_inputs(parsed: &ParsedStatement, state: &CatalogState) -> PossibleInputs {
        if parsed.has_no_expressions() {
            return PossibleInputs::Nothing;
        }
        let needs_own = match &parsed.statement {
            Statement::Explain(explained) => return Self::may_miss_inputs(&explained.statement, state),
            Statement::Undrop(_) | Statement::CreateExternalTable(_) => true,
            Statement::CreateTable(create) => matches!(&create.source, TableSource::Clone { version: Some(_), .. }),
            _ => false,
        };
        let read = &parsed.relations_read;
        if needs_own || read.iter().any(|relation| relation.version.is_some()) {
            PossibleInputs::Any
        } else if read.is_empty() || !state.has_external_tables() {
            PossibleInputs::Nothing
        } else if read.len() <= FEW_RELATIONS_MAX {
            PossibleInputs::FilesOfFewTables
        } else {
            PossibleInputs::Any
        }
    }

    /// Returns the inputs that a statement needs and `context` lacks: states for AS OF and UNDROP, and files of
    /// external tables, also those read through views. Errors of the statement are ignored; planning reports them.
    #[must_use]
    pub fn missing_inputs(
        &self,
        parsed: &ParsedStatement,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> MissingInputs {
        with_planning_stack(|| {
            let binder = Binder::new(self.environment(), context).with_text(parsed).with_parameters(parameter_types);
            let mut missing = MissingInputs::default();
            binder.add_missing_inputs(&parsed.relations_read, &mut missing);
            add_missing_of_statement(&binder, &parsed.statement, &mut missing);
            missing
        })
    }
}

/// Adds the inputs that the statement itself needs, beside those of the relations that it reads.
fn add_missing_of_statement(binder: &Binder<'_>, statement: &Statement, missing: &mut MissingInputs) {
    let context = binder.context();
    let mut moment = None;
    match statement {
        Statement::Undrop(name) => {
            missing.last_drop = ddl::last_drop(context, name).ok().flatten();
            moment = missing.last_drop.as_ref().map(ddl::time_before_drop);
        }
        Statement::CreateTable(create) => {
            if let TableSource::Clone { version: Some(version), .. } = &create.source {
                moment = time_travel_target(binder, version).ok();
            }
        }
        Statement::CreateExternalTable(create) => {
            let location = ddl::location_to_read(context, create);
            let location = location.filter(|location| !context.inputs.columns.contains_key(*location));
            missing.location = location.map(str::to_owned);
        }
        Statement::Explain(explained) => add_missing_of_statement(binder, &explained.statement.statement, missing),
        _ => {}
    }
    missing.moments.extend(moment.filter(|moment| !context.inputs.states.contains_key(moment)));
}
