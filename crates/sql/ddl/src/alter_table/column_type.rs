//! ALTER COLUMN TYPE: any type if the table has no rows, else only one that the shards can be read as.

use binder::write::is_assignable;
use datafusion::sql::sqlparser::ast::{DataType, Expr, Ident, ObjectName};
use syntax::parse_stored_expr;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::{Alteration, row_check};
use crate::column_definition;
use crate::sequence_options::{SequenceUse, refuse_non_integer_type};

impl Alteration<'_> {
    pub(super) fn set_type(
        &mut self,
        name: &Ident,
        data_type: &DataType,
        collation: Option<&ObjectName>,
        using: Option<&Expr>,
    ) -> SqlResult<()> {
        let new = self.binder.sql_type(data_type)?;
        let old = self.column(&name.value)?.clone();
        column_definition::refuse_system_type(&name.value, &new)?;
        column_definition::check_collation(collation, &new)?;
        if let Some(view) = self.find_reading_view(old.id) {
            let message = "cannot alter type of a column used by a view or rule";
            let detail = format!("rule _RETURN on view {view} depends on column \"{}\"", old.name);
            return Err(SqlError::new(Condition::FeatureNotSupported, message).with_detail(detail));
        }
        if old.sql_type == new && using.is_none() {
            return Ok(());
        }
        self.check_conversion(name, &old.sql_type, &new, using)?;
        if self.has_rows() && (using.is_some() || !is_readable_as(&old.sql_type, &new)) {
            let message = format!(
                "changing the type of column \"{}\" from {} to {new} is not supported for a table that has rows",
                old.name, old.sql_type
            );
            return Err(SqlError::new(Condition::FeatureNotSupported, message)
                .with_hint("Use CREATE TABLE AS with a cast of the column, then rename the tables."));
        }
        if let Some(default) = &old.default {
            let expression = parse_stored_expr(default)?;
            self.binder.bind_default_expression(&expression, &new).map_err(|_| {
                let message = format!("default for column \"{}\" cannot be cast automatically to type {new}", old.name);
                SqlError::new(Condition::DatatypeMismatch, message)
            })?;
        }
        if let Some(identity) = old.identity {
            refuse_non_integer_type(&new, SequenceUse::Identity)?;
            self.retype_sequence(identity, &new)?;
        }
        self.column(&name.value)?.sql_type = new;
        self.recheck_constraints(old.id)
    }

    /// Returns the name of a view that reads the column.
    fn find_reading_view(&self, id: types::ColumnId) -> Option<String> {
        let mut views = self.context().snapshot.views();
        views.find(|view| view.columns_used.contains(&(self.old.oid, id))).map(|view| view.name.clone())
    }

    /// Checks that the old type can be assigned to the new one, or that the type of USING can (`42804`).
    fn check_conversion(&self, name: &Ident, old: &SqlType, new: &SqlType, using: Option<&Expr>) -> SqlResult<()> {
        let (given, message, hint) = match using {
            None => (
                old.clone(),
                format!("column \"{}\" cannot be cast automatically to type {new}", name.value),
                format!("You might need to specify \"USING {name}::{new}\"."),
            ),
            Some(using) => (
                row_check::expression_type(self, using)?,
                format!(
                    "result of USING clause for column \"{}\" cannot be cast automatically to type {new}",
                    name.value
                ),
                "You might need to add an explicit cast.".to_owned(),
            ),
        };
        if is_assignable(&given, new) {
            return Ok(());
        }
        Err(SqlError::new(Condition::DatatypeMismatch, message).with_hint(hint))
    }

    /// Checks that the table's CHECKs can be bound to the new type.
    fn recheck_constraints(&self, id: types::ColumnId) -> SqlResult<()> {
        for constraint in &self.table.constraints {
            if let catalog::ConstraintKind::Check { expression, columns } = &constraint.kind
                && columns.contains(&id)
            {
                let expression = parse_stored_expr(expression)?;
                self.binder.bind_column_expression(&expression, &self.table.columns, &SqlType::Bool)?;
            }
        }
        Ok(())
    }
}

/// Whether shards with values of type `old` can be read as type `new` without being rewritten.
fn is_readable_as(old: &SqlType, new: &SqlType) -> bool {
    match (old, new) {
        (SqlType::Varchar(_) | SqlType::Text, SqlType::Text | SqlType::Varchar(None)) => true,
        (SqlType::Varchar(Some(old)), SqlType::Varchar(Some(new))) => old <= new,
        _ => false,
    }
}
