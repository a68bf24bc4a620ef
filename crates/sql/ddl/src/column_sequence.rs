//! Sequences that columns create: those of `serial` and identity columns.

use std::sync::Arc;

use catalog::{Change, Column, Identity, Sequence, SequenceOwner, Table};
use datafusion::sql::sqlparser::ast::{DataType, ObjectName};
use session_context::StatementContext;
use syntax::statement::{IdentityDefinition, SequenceOption};
use system_catalog::nextval_default;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::constraint_name::choose_sequence_name;
use super::name_resolution;
use super::sequence_options::{self, SequenceUse, refuse_non_integer_type};

/// New sequence that has no name or owning column yet.
pub(super) struct NewSequence {
    sequence: Sequence,
    name: Option<ObjectName>,
}

/// Returns the integer type of `serial` and its variants; `None` for other types.
pub(super) fn serial_type(written: &DataType) -> Option<SqlType> {
    match written.to_string().to_lowercase().as_str() {
        "smallserial" | "serial2" => Some(SqlType::Int2),
        "serial" | "serial4" => Some(SqlType::Int4),
        "bigserial" | "serial8" => Some(SqlType::Int8),
        _ => None,
    }
}

/// Makes a column `serial`; returns its new sequence.
pub(super) fn make_serial(context: &StatementContext, column: &mut Column) -> SqlResult<NewSequence> {
    let oid = (context.new_oid)();
    let mut sequence = sequence_options::new_sequence(oid, &[], SequenceUse::Plain)?;
    if column.sql_type != SqlType::Int8 {
        sequence = Sequence { max: serial_max(&column.sql_type), sql_type: column.sql_type.clone(), ..sequence };
    }
    column.default = Some(nextval_default(oid));
    column.sequences = vec![oid];
    Ok(NewSequence { sequence, name: None })
}

fn serial_max(sql_type: &SqlType) -> i64 {
    if *sql_type == SqlType::Int2 { i64::from(i16::MAX) } else { i64::from(i32::MAX) }
}

/// Makes a column an identity column; returns its new sequence.
///
/// # Errors
/// `22023` for a type that is no integer, and errors of the options.
pub(super) fn make_identity(
    context: &StatementContext,
    column: &mut Column,
    definition: &IdentityDefinition,
) -> SqlResult<NewSequence> {
    refuse_non_integer_type(&column.sql_type, SequenceUse::Identity)?;
    let oid = (context.new_oid)();
    let sequence = sequence_options::new_sequence(
        oid,
        &add_type_option(&definition.options, &column.sql_type)?,
        SequenceUse::Identity,
    )?;
    let name = definition.options.iter().find_map(|option| match option {
        SequenceOption::SequenceName(name) => Some(name.clone()),
        _ => None,
    });
    column.identity = Some(Identity { always: definition.always, sequence: oid });
    Ok(NewSequence { sequence, name })
}

/// Makes a column an identity column like the one that LIKE copies; returns its new sequence.
pub(super) fn copy_identity(context: &StatementContext, column: &mut Column, from: Identity) -> Option<NewSequence> {
    let oid = (context.new_oid)();
    let old = context.snapshot.sequence(from.sequence)?;
    let sequence =
        Sequence { oid, counter: oid, begins: old.start, comment: None, owned_by: None, ..Sequence::clone(old) };
    column.identity = Some(Identity { sequence: oid, ..from });
    Some(NewSequence { sequence, name: None })
}

/// Adds the column's type to the options of an identity's sequence.
fn add_type_option(options: &[SequenceOption], sql_type: &SqlType) -> SqlResult<Vec<SequenceOption>> {
    if options.iter().any(|option| matches!(option, SequenceOption::As(_) | SequenceOption::OwnedBy(_))) {
        return Err(SqlError::new(Condition::SyntaxError, "conflicting or redundant options"));
    }
    Ok(std::iter::once(SequenceOption::As(integer_type_syntax(sql_type))).chain(options.iter().cloned()).collect())
}

/// Returns the syntax of an integer type.
pub(super) fn integer_type_syntax(sql_type: &SqlType) -> DataType {
    match sql_type {
        SqlType::Int2 => DataType::SmallInt(None),
        SqlType::Int4 => DataType::Integer(None),
        _ => DataType::BigInt(None),
    }
}

/// Completes a new sequence for a column of `table`. Returns two changes: one to apply before the table, which refers
/// to the sequence, and one to apply after it, which makes the column its owner.
pub(super) fn attach_sequence(
    context: &StatementContext,
    table: &Table,
    column: &Column,
    new: NewSequence,
    others: &[Change],
) -> SqlResult<(Change, Change)> {
    let NewSequence { mut sequence, name } = new;
    let taken: Vec<&str> = others
        .iter()
        .filter_map(|change| match change {
            Change::PutSequence(other) => Some(other.name.as_str()),
            _ => None,
        })
        .collect();
    sequence.name = match &name {
        Some(name) => {
            let (schema, bare) = name_resolution::split_name(context, name)?;
            let own = context.snapshot.schema(table.schema);
            if schema.is_some_and(|schema| own.is_none_or(|own| own.name != schema)) {
                let message = "sequence must be in same schema as table it is linked to";
                return Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message));
            }
            if context.snapshot.relation(table.schema, bare).is_some() || taken.contains(&bare) {
                return Err(name_resolution::duplicate_relation(bare));
            }
            bare.to_owned()
        }
        None => choose_sequence_name(&context.snapshot, table, &column.name, &taken),
    };
    (sequence.schema, sequence.owner) = (table.schema, table.owner);
    let owned_by = Some(SequenceOwner { table: table.oid, column: column.id });
    let owned = Sequence { owned_by, ..sequence.clone() };
    Ok((Change::PutSequence(Arc::new(sequence)), Change::PutSequence(Arc::new(owned))))
}
