//! Before a statement is bound: what has to be fetched that its names stand for.

use std::sync::Arc;

use binder::{Binder, moment_of};
use catalog::CatalogState;
use session_context::{MissingInputs, StatementContext};
use syntax::statement::TableSource;
use syntax::{Parsed, Statement};
use types::SqlType;
use types::stack::with_planning_stack;

use crate::Planner;

#[cfg(test)]
mod tests;

/// Relations whose names are looked up sooner than another thread is asked.
const FEW_NAMES: usize = 16;

/// Inputs that a statement may miss, judged without looking at its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayMiss {
    Nothing,
    /// Files of a few tables: which, is found in microseconds.
    FilesOfFew,
    Any,
}

impl Planner {
    /// Whether a statement may need more than the catalog to be bound, without looking at its names.
    #[must_use]
    pub fn may_miss_inputs(parsed: &Parsed, state: &CatalogState) -> MayMiss {
        if parsed.is_light() {
            return MayMiss::Nothing;
        }
        let needs_own = match &parsed.statement {
            Statement::Explain(explained) => return Self::may_miss_inputs(&explained.statement, state),
            Statement::Undrop(_) | Statement::CreateExternalTable(_) => true,
            Statement::CreateTable(create) => matches!(&create.source, TableSource::Clone { version: Some(_), .. }),
            _ => false,
        };
        let read = &parsed.relations_read;
        if needs_own || read.iter().any(|relation| relation.version.is_some()) {
            MayMiss::Any
        } else if read.is_empty() || !state.has_external_tables() {
            MayMiss::Nothing
        } else if read.len() <= FEW_NAMES {
            MayMiss::FilesOfFew
        } else {
            MayMiss::Any
        }
    }

    /// The inputs that a statement needs and `context` lacks: states of AS OF and UNDROP, files of external tables, under views too. Errors of the
    /// statement are left to planning.
    #[must_use]
    pub fn missing_inputs(
        &self,
        parsed: &Parsed,
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

/// What the statement needs for itself, beside the relations that it reads.
fn add_missing_of_statement(binder: &Binder<'_>, statement: &Statement, missing: &mut MissingInputs) {
    let context = binder.context();
    let mut moment = None;
    match statement {
        Statement::Undrop(name) => {
            missing.last_drop = ddl::last_drop(context, name).ok().flatten();
            moment = missing.last_drop.as_ref().map(ddl::moment_before);
        }
        Statement::CreateTable(create) => {
            if let TableSource::Clone { version: Some(version), .. } = &create.source {
                moment = moment_of(binder, version).ok();
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
