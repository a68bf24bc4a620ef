//! `LIKE table` in CREATE TABLE: copies of columns and their properties.

use std::collections::HashMap;

use binder::Binder;
use catalog::{Column, Constraint, ConstraintKind, Index, Table};
use syntax::statement::{LikeTable, TableConstraint, TableConstraintKind};
use types::{ColumnId, Condition, SqlError, SqlResult};

use super::column_sequence::{self, NewSequence};
use super::name_resolution::{self, ResolvedRelation};

/// Copies that LIKE adds to the new table.
#[derive(Default)]
pub(super) struct LikeCopies {
    pub(super) columns: Vec<Column>,
    /// Checks, under the same names.
    pub(super) checks: Vec<Constraint>,
    /// Keys, which get new names.
    pub(super) keys: Vec<TableConstraint>,
    /// Indexes, which get new names.
    pub(super) indexes: Vec<Index>,
    /// Sequences of identity columns, with the positions of the columns.
    pub(super) sequences: Vec<(usize, NewSequence)>,
}

/// Copies the columns of the table or view, and the properties that INCLUDING lists. The new table has `before` columns
/// already.
///
/// # Errors
/// `42P01` or `42809` if the relation has no columns to copy, `42501` for one of another owner.
pub(super) fn copy_like(binder: &Binder<'_>, like: &LikeTable, before: usize) -> SqlResult<LikeCopies> {
    let context = binder.context();
    let name = &like.table;
    match name_resolution::resolve_relation(context, name)?.ok_or_else(|| name_resolution::undefined_relation(name))? {
        ResolvedRelation::Table(table) | ResolvedRelation::External(table) => {
            may_read(binder, table.owner, "table", &table.name)?;
            Ok(copy_table(binder, like, &table, before))
        }
        ResolvedRelation::View(view) => {
            may_read(binder, view.owner, "view", &view.name)?;
            let columns = view.columns.iter().map(|(name, sql_type)| Column {
                id: ColumnId(0),
                name: name.clone(),
                sql_type: sql_type.clone(),
                not_null: false,
                default: None,
                missing: None,
                comment: None,
                identity: None,
                sequences: Vec::new(),
            });
            Ok(LikeCopies { columns: columns.collect(), ..LikeCopies::default() })
        }
        ResolvedRelation::Sequence(sequence) => {
            let message = format!("relation \"{}\" is invalid in LIKE clause", sequence.name);
            Err(SqlError::new(Condition::WrongObjectType, message)
                .with_detail("This operation is not supported for sequences."))
        }
        ResolvedRelation::SystemTable => Err(SqlError::unsupported("LIKE of a system table")),
        ResolvedRelation::Key | ResolvedRelation::Index(..) => {
            let bare = name_resolution::split_name(context, name)?.1;
            let message = format!("relation \"{bare}\" is invalid in LIKE clause");
            Err(SqlError::new(Condition::WrongObjectType, message)
                .with_detail("This operation is not supported for indexes."))
        }
    }
}

fn may_read(binder: &Binder<'_>, owner: types::Oid, kind: &str, name: &str) -> SqlResult<()> {
    if binder.context().owns(owner) {
        return Ok(());
    }
    Err(SqlError::new(Condition::InsufficientPrivilege, format!("permission denied for {kind} {name}")))
}

fn copy_table(binder: &Binder<'_>, like: &LikeTable, table: &Table, before: usize) -> LikeCopies {
    let columns: Vec<Column> = table
        .columns
        .iter()
        .map(|column| Column {
            default: column.default.clone().filter(|_| like.defaults),
            comment: column.comment.clone().filter(|_| like.comments),
            missing: None,
            identity: None,
            sequences: if like.defaults { column.sequences.clone() } else { Vec::new() },
            ..column.clone()
        })
        .collect();
    // Column ids of the new table are assigned in order, as in `new_table`.
    let ids: HashMap<ColumnId, ColumnId> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let id = i32::try_from(before + index + 1).unwrap_or(i32::MAX);
            (column.id, ColumnId(id))
        })
        .collect();
    let mut copied = LikeCopies { columns, ..LikeCopies::default() };
    for index in table.indexes.iter().filter(|_| like.indexes) {
        let renumbered = |columns: &[ColumnId]| columns.iter().filter_map(|id| ids.get(id).copied()).collect();
        let (columns, included) = (renumbered(&index.columns), renumbered(&index.included));
        copied.indexes.push(Index { columns, included, ..index.clone() });
    }
    if like.identity {
        for (position, column) in copied.columns.iter_mut().enumerate() {
            let Some(identity) = table.columns[position].identity else { continue };
            copied.sequences.extend(
                column_sequence::copy_identity(binder.context(), column, identity).map(|sequence| (position, sequence)),
            );
        }
    }
    for constraint in &table.constraints {
        let idents = |columns: &[ColumnId]| {
            let found = columns.iter().filter_map(|id| table.column(*id));
            found.map(|column| name_resolution::ident(&column.name)).collect::<Vec<_>>()
        };
        let key = match &constraint.kind {
            ConstraintKind::Check { expression, columns } if like.constraints => {
                let columns = columns.iter().filter_map(|id| ids.get(id).copied()).collect();
                let kind = ConstraintKind::Check { expression: expression.clone(), columns };
                let comment = constraint.comment.clone().filter(|_| like.comments);
                let oid = (binder.context().new_oid)();
                copied.checks.push(Constraint { oid, name: constraint.name.clone(), kind, enforced: true, comment });
                continue;
            }
            ConstraintKind::PrimaryKey { columns } if like.indexes => TableConstraintKind::PrimaryKey(idents(columns)),
            ConstraintKind::Unique { columns } if like.indexes => TableConstraintKind::Unique(idents(columns)),
            _ => continue,
        };
        copied.keys.push(TableConstraint { name: None, kind: key, enforced: Some(constraint.enforced) });
    }
    copied
}
