//! Referential actions: changes of rows that refer to deleted or changed keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog::{Constraint, ConstraintKind, ReferentialAction, Table};
use datafusion::sql::sqlparser::ast::Ident;
use syntax::parse_stored_expr;
use syntax::statement::{AssignedValue, Assignment, ConflictUpdate as Written};
use types::{ColumnId, SqlError, SqlResult};

use super::on_conflict;
use super::target::WriteTarget;
use crate::bind::Binder;
use crate::statement_plan::{ConflictUpdate, ReferencePlan, ReferencePlans};

/// Plans the referential actions for changes of the columns `changed` of `table`, and transitively for the referring
/// tables, by the OIDs of foreign keys. ON DELETE CASCADE needs no plan.
///
/// # Errors
/// Errors of a DEFAULT or a CHECK.
pub(super) fn plan_referential_actions(
    binder: &Binder<'_>,
    table: &Table,
    changed: &[ColumnId],
) -> SqlResult<ReferencePlans> {
    if changed.is_empty() {
        return Ok(Arc::default());
    }
    let snapshot = &binder.context().snapshot;
    let mut plans = BTreeMap::new();
    let (mut waiting, mut seen) = (vec![table.oid], BTreeSet::new());
    while let Some(oid) = waiting.pop() {
        if !seen.insert(oid) {
            continue;
        }
        for referring in snapshot.tables() {
            for constraint in referring.constraints.iter().filter(|constraint| constraint.enforced) {
                let ConstraintKind::ForeignKey { references, on_delete, on_update, .. } = &constraint.kind else {
                    continue;
                };
                if *references != oid || (changes_nothing(*on_delete) && changes_nothing(*on_update)) {
                    continue;
                }
                let plan = ReferencePlan {
                    delete: plan_action(binder, referring, constraint, *on_delete, false)?,
                    update: plan_action(binder, referring, constraint, *on_update, true)?,
                };
                plans.insert(constraint.oid, plan);
                waiting.push(referring.oid);
            }
        }
    }
    Ok(Arc::new(plans))
}

fn changes_nothing(action: ReferentialAction) -> bool {
    matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict)
}

/// Plans an action on the referring rows; `None` if it changes none of their values.
fn plan_action(
    binder: &Binder<'_>,
    referring: &Arc<Table>,
    constraint: &Constraint,
    action: ReferentialAction,
    is_update: bool,
) -> SqlResult<Option<ConflictUpdate>> {
    let ConstraintKind::ForeignKey { columns, delete_columns, .. } = &constraint.kind else { return Ok(None) };
    let value = |column: &str| match action {
        ReferentialAction::SetNull => Some("NULL".to_owned()),
        ReferentialAction::SetDefault => Some("DEFAULT".to_owned()),
        ReferentialAction::Cascade if is_update => Some(format!("excluded.\"{}\"", column.replace('"', "\"\""))),
        _ => None,
    };
    let set: &[ColumnId] = if is_update || delete_columns.is_empty() { columns } else { delete_columns };
    let mut assignments = Vec::with_capacity(set.len());
    for column in set.iter().filter_map(|id| referring.column(*id)) {
        let Some(text) = value(&column.name) else { return Ok(None) };
        let value = if text == "DEFAULT" {
            datafusion::sql::sqlparser::ast::Expr::Identifier(Ident::new("default"))
        } else {
            parse_stored_expr(&text)?
        };
        let name = Ident::with_quote('"', &column.name);
        assignments.push(Assignment { columns: vec![name], value: AssignedValue::Single(Box::new(value)) });
    }
    let schema = binder.context().snapshot.schema(referring.schema);
    let schema = schema.ok_or_else(|| SqlError::internal("schema of a referring table not found"))?.name.clone();
    let target = WriteTarget { table: Arc::clone(referring), schema };
    let written = Written { assignments, condition: None };
    on_conflict::plan_update(binder, &target, None, None, &written, None, &[]).map(Some)
}
