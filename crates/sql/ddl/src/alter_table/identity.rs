//! Identity of a column: ADD GENERATED, SET and RESTART of its sequence, DROP IDENTITY.

use std::sync::Arc;

use catalog::{Change, Column, Identity, Sequence};
use syntax::statement::{IdentityDefinition, SequenceOption};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::Alteration;
use crate::column_sequence;
use crate::sequence_options::{self, SequenceUse};

impl Alteration<'_> {
    pub(super) fn add_identity(&mut self, name: &str, definition: &IdentityDefinition) -> SqlResult<()> {
        let mut column = self.column(name)?.clone();
        let state = |what: &str| {
            let message = format!("column \"{name}\" of relation \"{}\" {what}", self.table.name);
            Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message))
        };
        if !column.not_null {
            return state("must be declared NOT NULL before identity can be added");
        }
        if column.identity.is_some() {
            return state("is already an identity column");
        }
        if column.default.is_some() {
            return state("already has a default value");
        }
        let new = column_sequence::make_identity(self.context(), &mut column, definition)?;
        self.add_sequence(&column, new)?;
        *self.column(name)? = column;
        Ok(())
    }

    pub(super) fn set_identity(
        &mut self,
        name: &str,
        always: Option<bool>,
        options: &[SequenceOption],
    ) -> SqlResult<()> {
        let Some(identity) = self.column(name)?.identity else { return Err(self.not_identity_column(name)) };
        if let Some(always) = always {
            self.column(name)?.identity = Some(Identity { always, ..identity });
        }
        if options.is_empty() {
            return Ok(());
        }
        let context = self.context();
        let sequence = context.snapshot.sequence(identity.sequence);
        let sequence = sequence.ok_or_else(|| SqlError::internal("an identity column's sequence is missing"))?;
        let refused = options.iter().find_map(|option| match option {
            SequenceOption::As(_) => Some("as"),
            SequenceOption::OwnedBy(_) => Some("owned_by"),
            _ => None,
        });
        if let Some(name) = refused {
            let message = format!("sequence option \"{name}\" not supported here");
            return Err(SqlError::new(Condition::SyntaxError, message));
        }
        let changed = sequence_options::apply_options(context, sequence, options, SequenceUse::Identity)?;
        self.changes_after.push(Change::PutSequence(Arc::new(changed)));
        Ok(())
    }

    pub(super) fn drop_identity(&mut self, name: &str, if_exists: bool) -> SqlResult<()> {
        let Some(identity) = self.column(name)?.identity.take() else {
            let missing = self.not_identity_column(name);
            if !if_exists {
                return Err(missing);
            }
            let message = format!("{}, skipping", missing.message);
            self.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
            return Ok(());
        };
        self.changes_after.push(Change::DropSequence(identity.sequence));
        Ok(())
    }

    /// Changes the type of an identity's sequence to the column's new type.
    pub(super) fn retype_sequence(&mut self, identity: Identity, sql_type: &SqlType) -> SqlResult<()> {
        let context = self.context();
        let sequence = context.snapshot.sequence(identity.sequence);
        let sequence = sequence.ok_or_else(|| SqlError::internal("an identity column's sequence is missing"))?;
        let option = SequenceOption::As(column_sequence::integer_type_syntax(sql_type));
        let changed = sequence_options::apply_options(context, sequence, &[option], SequenceUse::Identity)?;
        self.changes_after.push(Change::PutSequence(Arc::new(changed)));
        Ok(())
    }

    /// Adds the changes for a new column's sequence, before and after the table's change.
    pub(super) fn add_sequence(&mut self, column: &Column, new: column_sequence::NewSequence) -> SqlResult<()> {
        let (before, after) =
            column_sequence::attach_sequence(self.context(), &self.table, column, new, &self.changes_before)?;
        self.changes_before.push(before);
        self.changes_after.push(after);
        Ok(())
    }

    /// Applies `change` to all sequences that the table owns.
    pub(super) fn for_each_sequence(&mut self, change: impl Fn(&mut Sequence)) {
        for sequence in self.context().snapshot.owned_sequences(self.old.oid) {
            let mut sequence = Sequence::clone(sequence);
            change(&mut sequence);
            self.changes_after.push(Change::PutSequence(Arc::new(sequence)));
        }
    }

    fn not_identity_column(&self, name: &str) -> SqlError {
        let message = format!("column \"{name}\" of relation \"{}\" is not an identity column", self.table.name);
        SqlError::new(Condition::ObjectNotInPrerequisiteState, message)
    }
}
