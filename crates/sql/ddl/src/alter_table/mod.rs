//! ALTER TABLE and ALTER VIEW: the actions are applied to a copy of the table one after the other, in the order of
//! PostgreSQL's passes, and constraints on existing rows are checked at the end.
//!
//! - `column.rs`, `column_type.rs`, `identity.rs`: actions on columns,
//! - `constraint.rs`: actions on constraints; `row_check.rs`: checks of existing rows, and values for new columns,
//! - `rename.rs`: new names and schemas,
//! - `alter_view.rs`: actions on views.

mod alter_view;
mod column;
mod column_type;
mod constraint;
mod identity;
mod rename;
mod row_check;

pub(super) use self::rename::refuse_existing_in;

use std::sync::Arc;

use binder::{Binder, DefinePlan, NoRowCheck};
use catalog::{Change, Table};
use session_context::StatementContext;
use syntax::statement::{AlterAction, AlterTable};
use types::{ColumnId, Condition, SqlError, SqlResult};

use super::name_resolution::{self, ResolvedRelation};
use super::{distribution_clauses, storage_parameter};

/// Applies the actions to a table or view, all or none.
///
/// # Errors
/// `42P01` or `42809` if there is no such relation, `42501` for one of another owner, and errors of the actions.
pub fn alter_table(binder: &Binder<'_>, alter: &AlterTable) -> SqlResult<DefinePlan> {
    let context = binder.context();
    let tag = if alter.is_view { "ALTER VIEW" } else { "ALTER TABLE" };
    let Some(found) = name_resolution::resolve_relation(context, &alter.name)? else {
        let missing = name_resolution::undefined_relation(&alter.name);
        if !alter.if_exists {
            return Err(missing);
        }
        let notice = SqlError::new(Condition::SuccessfulCompletion, format!("{}, skipping", missing.message));
        return Ok(DefinePlan { command_tag: tag.to_owned(), notices: vec![notice], ..DefinePlan::default() });
    };
    let mut plan = match found {
        ResolvedRelation::Table(table) if !alter.is_view => {
            name_resolution::check_owner(context, table.owner, "table", &table.name)?;
            apply_actions(binder, &table, &alter.actions)?
        }
        ResolvedRelation::External(table) if !alter.is_view => {
            name_resolution::check_owner(context, table.owner, "table", &table.name)?;
            refuse_on_external(&table, &alter.actions)?;
            apply_actions(binder, &table, &alter.actions)?
        }
        ResolvedRelation::View(view) => {
            name_resolution::check_owner(context, view.owner, "view", &view.name)?;
            alter_view::alter_view(context, &view, &alter.actions)?
        }
        ResolvedRelation::SystemTable => return Err(name_resolution::system_table_error(&alter.name)),
        ResolvedRelation::Table(_)
        | ResolvedRelation::External(_)
        | ResolvedRelation::Sequence(_)
        | ResolvedRelation::Key
        | ResolvedRelation::Index(..) => {
            let kind = if alter.is_view { "view" } else { "table" };
            return Err(name_resolution::wrong_kind_error(name_resolution::split_name(context, &alter.name)?.1, kind));
        }
    };
    tag.clone_into(&mut plan.command_tag);
    Ok(plan)
}

/// Refuses actions on an external table other than a new name, schema, owner or cache policy (`42809`): its columns are
/// those of its files.
fn refuse_on_external(table: &Table, actions: &[AlterAction]) -> SqlResult<()> {
    let is_possible = |action: &AlterAction| match action {
        AlterAction::RenameTo(_) | AlterAction::SetSchema(_) | AlterAction::OwnerTo(_) => true,
        AlterAction::SetParameters(written) | AlterAction::ResetParameters(written) => {
            written.iter().all(|parameter| parameter.name.value == "cache")
        }
        _ => false,
    };
    if actions.iter().all(is_possible) {
        return Ok(());
    }
    let message = format!("ALTER action cannot be performed on relation \"{}\"", table.name);
    Err(SqlError::new(Condition::WrongObjectType, message)
        .with_detail("Only the name, schema, owner and parameter \"cache\" of an external table can be altered."))
}

fn apply_actions(binder: &Binder<'_>, table: &Arc<Table>, actions: &[AlterAction]) -> SqlResult<DefinePlan> {
    let mut ordered: Vec<&AlterAction> = actions.iter().collect();
    ordered.sort_by_key(|action| postgres_pass(action));
    let mut alteration = Alteration::new(binder, table);
    for action in ordered {
        alteration.apply(action)?;
    }
    alteration.finish()
}

/// Returns the pass of PostgreSQL in which an action is applied.
fn postgres_pass(action: &AlterAction) -> u8 {
    match action {
        AlterAction::DropColumn { .. }
        | AlterAction::DropConstraint { .. }
        | AlterAction::DropIdentity { .. }
        | AlterAction::SetDefault { default: None, .. }
        | AlterAction::SetNotNull { not_null: false, .. } => 0,
        AlterAction::SetType { .. } => 1,
        AlterAction::AddColumn { .. } => 2,
        AlterAction::SetNotNull { not_null: true, .. } => 3,
        AlterAction::AddConstraint(_) | AlterAction::SetEnforced { .. } => 4,
        AlterAction::SetDefault { default: Some(_), .. }
        | AlterAction::AddIdentity { .. }
        | AlterAction::SetIdentity { .. } => 5,
        _ => 6,
    }
}

/// Table that is being altered, with the changes of other objects that the actions need.
struct Alteration<'a> {
    binder: &'a Binder<'a>,
    old: Arc<Table>,
    table: Table,
    /// Changes of other objects to apply before the table's.
    changes_before: Vec<Change>,
    /// Changes of other objects to apply after the table's.
    changes_after: Vec<Change>,
    notices: Vec<SqlError>,
    /// New columns whose values in existing rows are written one by one.
    filled_columns: Vec<ColumnId>,
}

impl<'a> Alteration<'a> {
    fn new(binder: &'a Binder<'a>, table: &Arc<Table>) -> Self {
        let (old, table) = (Arc::clone(table), Table::clone(table));
        Self {
            binder,
            old,
            table,
            changes_before: Vec::new(),
            changes_after: Vec::new(),
            notices: Vec::new(),
            filled_columns: Vec::new(),
        }
    }

    fn context(&self) -> &'a Arc<StatementContext> {
        self.binder.context()
    }

    /// Whether the table has rows now.
    fn has_rows(&self) -> bool {
        !self.context().snapshot.rows(self.old.oid).is_empty()
    }

    fn apply(&mut self, action: &AlterAction) -> SqlResult<()> {
        match action {
            AlterAction::AddColumn { column, if_not_exists } => self.add_column(column, *if_not_exists),
            AlterAction::DropColumn { name, if_exists, cascade } => self.drop_column(&name.value, *if_exists, *cascade),
            AlterAction::SetDefault { column, default } => self.set_default(&column.value, default.as_deref()),
            AlterAction::SetNotNull { column, not_null } => self.set_not_null(&column.value, *not_null),
            AlterAction::SetType { column, data_type, collation, using } => {
                self.set_type(column, data_type, collation.as_ref(), using.as_deref())
            }
            AlterAction::AddIdentity { column, identity } => self.add_identity(&column.value, identity),
            AlterAction::SetIdentity { column, always, options } => self.set_identity(&column.value, *always, options),
            AlterAction::DropIdentity { column, if_exists } => self.drop_identity(&column.value, *if_exists),
            AlterAction::AddConstraint(constraint) => self.add_constraint(constraint),
            AlterAction::DropConstraint { name, if_exists, cascade } => {
                self.drop_constraint(&name.value, *if_exists, *cascade)
            }
            AlterAction::SetEnforced { name, enforced } => self.set_enforced(&name.value, *enforced),
            AlterAction::RenameColumn { from, to } => self.rename_column(&from.value, &to.value),
            AlterAction::RenameConstraint { from, to } => self.rename_constraint(&from.value, &to.value),
            AlterAction::RenameTo(to) => self.rename_to(&to.value),
            AlterAction::SetSchema(schema) => self.set_schema(&schema.value),
            AlterAction::OwnerTo(role) => {
                let owner = name_resolution::resolve_new_owner(self.context(), role)?.oid;
                self.table.owner = owner;
                self.for_each_sequence(|sequence| sequence.owner = owner);
                Ok(())
            }
            AlterAction::SetDistribution(distribution) => {
                self.table.distribution = distribution_clauses::resolve_distribution(&self.table, distribution)?;
                Ok(())
            }
            AlterAction::SetOrder(order) => {
                let order =
                    order.as_ref().map(|order| distribution_clauses::resolve_order(&self.table, order)).transpose()?;
                self.table.order = order.unwrap_or_default();
                Ok(())
            }
            AlterAction::SetParameters(written) => storage_parameter::set_parameters(&mut self.table, written),
            AlterAction::ResetParameters(written) => storage_parameter::reset_parameters(&mut self.table, written),
        }
    }

    fn finish(self) -> SqlResult<DefinePlan> {
        let checks: Vec<NoRowCheck> = row_check::required_checks(&self)?;
        let fill = if self.filled_columns.is_empty() { None } else { Some(row_check::plan_fill(&self)?) };
        let mut changes = self.changes_before;
        if self.table != *self.old {
            changes.push(Change::PutTable(Arc::new(self.table)));
        }
        changes.extend(self.changes_after);
        Ok(DefinePlan { changes, checks, backfill: fill, notices: self.notices, ..DefinePlan::default() })
    }
}
