//! ADD COLUMN, DROP COLUMN, and the DEFAULT and NOT NULL of a column.

use catalog::{Column, ConstraintKind, Dependant, Distribution};
use datafusion::sql::sqlparser::ast::Expr;
use syntax::statement::{ColumnConstraintKind, ColumnDefinition};
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

use super::Alteration;
use crate::comment_on::undefined_column;
use crate::create_table::column_constraints;
use crate::{column_definition, constraint, drop_dependents, name_resolution};

/// Values of a new column in existing rows.
enum ExistingRowValues {
    /// The same value in all rows, as text; `None` for NULL.
    Same(Option<String>),
    /// A separate value for each row, to be written; here an example of one, as text.
    PerRow(Option<String>),
}

impl Alteration<'_> {
    /// Adds a column; in existing rows it has the present value of the DEFAULT.
    pub(super) fn add_column(&mut self, definition: &ColumnDefinition, if_not_exists: bool) -> SqlResult<()> {
        let name = &definition.name.value;
        if self.table.column_by_name(name).is_some() {
            let message = format!("column \"{name}\" of relation \"{}\" already exists", self.table.name);
            if !if_not_exists {
                return Err(SqlError::new(Condition::DuplicateColumn, message));
            }
            self.notices.push(SqlError::new(Condition::DuplicateColumn, format!("{message}, skipping")));
            return Ok(());
        }
        column_definition::refuse_system_name(name)?;
        column_definition::refuse_too_many(self.table.columns.len() + 1)?;
        let column_definition::NewColumn { column: mut added, sequence } =
            column_definition::build_column(self.binder, &self.table.name, definition)?;
        added.id = ColumnId(self.table.next_column);
        self.table.next_column += 1;
        match sequence {
            Some(sequence) => {
                self.mark_filled(&mut added, Some("0".to_owned()));
                self.add_sequence(&added, sequence)?;
            }
            None if added.default.is_some() => match self.existing_row_values(definition, &added)? {
                ExistingRowValues::Same(value) => added.missing = value,
                ExistingRowValues::PerRow(sample) => self.mark_filled(&mut added, sample),
            },
            None => {}
        }
        self.table.columns.push(added);
        let constraints: Vec<_> = column_constraints(definition).collect();
        constraint::add_constraints(self.binder, &mut self.table, &constraints)
    }

    /// Marks a new column whose values are written into existing rows. Until then they read as `sample`, which nobody
    /// sees, but which must be a valid value.
    fn mark_filled(&mut self, added: &mut Column, sample: Option<String>) {
        if self.has_rows() {
            added.missing = sample;
            self.filled_columns.push(added.id);
        }
    }

    fn existing_row_values(&self, definition: &ColumnDefinition, added: &Column) -> SqlResult<ExistingRowValues> {
        let default = definition.constraints.iter().find_map(|constraint| match &constraint.kind {
            ColumnConstraintKind::Default(default) => Some(default),
            _ => None,
        });
        let Some(default) = default else { return Ok(ExistingRowValues::Same(None)) };
        if self.binder.bind_default_expression(default, &added.sql_type)?.is_volatile() {
            return Ok(ExistingRowValues::PerRow(if !added.not_null {
                None
            } else if added.sequences.is_empty() {
                self.binder.evaluate_default_text(default, &added.sql_type)?
            } else {
                // A sample does not advance the sequence.
                Some("0".to_owned())
            }));
        }
        self.binder.evaluate_default_text(default, &added.sql_type).map(ExistingRowValues::Same)
    }

    /// Drops a column with the table's own constraints and indexes on it; dependants in other tables are dropped with
    /// CASCADE only.
    pub(super) fn drop_column(&mut self, name: &str, if_exists: bool, cascade: bool) -> SqlResult<()> {
        let Some((index, column)) = self.table.column_by_name(name) else {
            let missing = undefined_column(name, &self.table.name);
            if !if_exists {
                return Err(missing);
            }
            let message = format!("{}, skipping", missing.message);
            self.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
            return Ok(());
        };
        let id = column.id;
        self.refuse_placement_column(id, name)?;
        if self.table.columns.len() == 1 {
            return Err(SqlError::unsupported("a table without columns"));
        }
        let mut dependants = self.context().snapshot.column_dependants(self.old.oid, id);
        dependants.extend(self.self_references_to(id));
        let what = format!("column {name} of table {}", name_resolution::display_name(self.context(), self.old.oid));
        self.drop_dependants(dependants, &what, &what, cascade)?;
        self.table.constraints.retain(|constraint| !constraint.kind.columns().contains(&id));
        self.table.indexes.retain(|index| !index.all_columns().contains(&id));
        self.table.columns.remove(index);
        Ok(())
    }

    /// Drops the dependants of a part of the table with CASCADE, and refuses them without it (`2BP01`).
    pub(super) fn drop_dependants(
        &mut self,
        dependants: Vec<Dependant>,
        what: &str,
        on: &str,
        cascade: bool,
    ) -> SqlResult<()> {
        let context = self.context();
        let dependencies = drop_dependents::dependants_of_part(context, dependants, on);
        if !cascade && !dependencies.is_empty() {
            return Err(drop_dependents::drop_refusal(what, &dependencies));
        }
        self.notices.extend(drop_dependents::cascade_notice(&dependencies));
        let mut views: Vec<Oid> = Vec::new();
        for dependency in dependencies {
            match dependency.dependant {
                Dependant::Constraint { table, oid, .. } if table == self.old.oid => {
                    self.table.constraints.retain(|constraint| constraint.oid != oid);
                }
                Dependant::Constraint { table, oid, .. } => self.drop_constraint_of(table, oid),
                Dependant::Default { table, column, .. } => self.drop_default_of(table, column),
                other => views.extend(other.oid()),
            }
        }
        let dropped = context.snapshot.drop_plan(&views, true);
        self.changes_before.extend(dropped.map_err(|error| SqlError::internal(error.to_string()))?.changes);
        Ok(())
    }

    /// Returns the table's foreign keys to this column of the same table that do not contain it themselves.
    fn self_references_to(&self, id: ColumnId) -> Vec<Dependant> {
        let references = self.table.constraints.iter().filter(|constraint| match &constraint.kind {
            ConstraintKind::ForeignKey { columns, references, referenced, .. } => {
                *references == self.old.oid && referenced.contains(&id) && !columns.contains(&id)
            }
            _ => false,
        });
        let dependant = |constraint: &catalog::Constraint| Dependant::Constraint {
            table: self.old.oid,
            table_name: self.table.name.clone(),
            oid: constraint.oid,
            name: constraint.name.clone(),
        };
        references.map(dependant).collect()
    }

    fn refuse_placement_column(&self, id: ColumnId, name: &str) -> SqlResult<()> {
        let clause = if self.table.order_columns().contains(&id) {
            "SORT or CLUSTER"
        } else if matches!(&self.table.distribution, Distribution::On(columns) if columns.contains(&id)) {
            "DISTRIBUTE"
        } else {
            return Ok(());
        };
        let message = format!("cannot drop column \"{name}\" named in {clause} of table \"{}\"", self.table.name);
        Err(SqlError::new(Condition::DependentObjectsStillExist, message)
            .with_hint("Use ALTER TABLE ... SET to change how the table's rows are placed first."))
    }

    pub(super) fn set_default(&mut self, name: &str, default: Option<&Expr>) -> SqlResult<()> {
        self.refuse_identity(name, default.is_none())?;
        let sql_type = self.column(name)?.sql_type.clone();
        let default = default.map(|default| column_definition::default_text(self.binder, name, default, &sql_type));
        let (default, sequences) = default.transpose()?.flatten().unzip();
        let column = self.column(name)?;
        column.default = default;
        column.sequences = sequences.unwrap_or_default();
        Ok(())
    }

    pub(super) fn set_not_null(&mut self, name: &str, not_null: bool) -> SqlResult<()> {
        let id = self.column(name)?.id;
        if !not_null && self.table.primary_key().is_some_and(|key| key.contains(&id)) {
            let message = format!("column \"{name}\" is in a primary key");
            return Err(SqlError::new(Condition::InvalidTableDefinition, message));
        }
        if !not_null {
            self.refuse_identity(name, false)?;
        }
        self.column(name)?.not_null = not_null;
        Ok(())
    }

    /// Refuses changes of the DEFAULT or NOT NULL of an identity column (`42601`).
    fn refuse_identity(&mut self, name: &str, with_hint: bool) -> SqlResult<()> {
        if self.column(name)?.identity.is_none() {
            return Ok(());
        }
        let message = format!("column \"{name}\" of relation \"{}\" is an identity column", self.table.name);
        let error = SqlError::new(Condition::SyntaxError, message);
        Err(if with_hint {
            error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
        } else {
            error
        })
    }

    /// Finds a column in the altered table (`42703`).
    pub(super) fn column(&mut self, name: &str) -> SqlResult<&mut Column> {
        let table = &self.table.name;
        let found = self.table.columns.iter_mut().find(|column| column.name == name);
        found.ok_or_else(|| undefined_column(name, table))
    }
}
