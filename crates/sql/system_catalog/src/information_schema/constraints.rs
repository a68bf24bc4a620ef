//! Views of constraints and of the columns that they use.

use catalog::{Constraint, ConstraintKind, Table};

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RowSource, column_names, keys};
use super::super::sql_text::{action_code, action_keywords};
use super::super::table_definition::TableDefinition;
use super::{view, yes_or_no};

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        13_411,
        "table_constraints",
        "Constraints of tables.",
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema name, \
         table_name name, constraint_type varchar, is_deferrable char3 = NO, initially_deferred char3 = NO, enforced char3, \
         nulls_distinct char3",
        table_constraints,
    ),
    view(
        13_329,
        "key_column_usage",
        "Columns of primary, unique and foreign keys.",
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema name, \
         table_name name, column_name name, ordinal_position int4, position_in_unique_constraint int4",
        key_column_usage,
    ),
    view(
        13_300,
        "constraint_column_usage",
        "Columns that a constraint uses.",
        "table_catalog name, table_schema name, table_name name, column_name name, constraint_catalog name, \
         constraint_schema name, constraint_name name",
        constraint_column_usage,
    ),
    view(
        13_305,
        "constraint_table_usage",
        "Tables that a constraint uses.",
        "table_catalog name, table_schema name, table_name name, constraint_catalog name, constraint_schema name, \
         constraint_name name",
        constraint_table_usage,
    ),
    view(
        13_339,
        "referential_constraints",
        "Foreign keys with the keys that they reference.",
        "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_catalog name, \
         unique_constraint_schema name, unique_constraint_name name, match_option varchar = NONE, update_rule varchar, \
         delete_rule varchar",
        referential_constraints,
    ),
    view(
        13_260,
        "check_constraints",
        "CHECK constraints with their conditions.",
        "constraint_catalog name, constraint_schema name, constraint_name name, check_clause varchar",
        check_constraints,
    ),
];

/// Visits each constraint, with its table and the name of the table's schema.
fn for_each_constraint(source: &RowSource<'_>, mut visit: impl FnMut(&Table, &str, &Constraint)) {
    for table in source.state().tables() {
        let schema = source.schema_name(table.schema);
        for constraint in &table.constraints {
            visit(table, schema, constraint);
        }
    }
}

/// Returns PostgreSQL's name for a NOT NULL constraint, which has no name of its own in Kiln either.
fn not_null_name(table: &Table, column: i32) -> String {
    format!("{}_{}_{column}_not_null", table.schema, table.oid)
}

fn table_constraints(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_constraint(source, |table, schema, constraint| {
        let (kind, nulls_distinct) = match constraint.kind {
            ConstraintKind::PrimaryKey { .. } => ("PRIMARY KEY", None),
            ConstraintKind::Unique { .. } => ("UNIQUE", Some("YES")),
            ConstraintKind::ForeignKey { .. } => ("FOREIGN KEY", None),
            ConstraintKind::Check { .. } => ("CHECK", None),
        };
        row!(rows, constraint_catalog: database, constraint_schema: schema, constraint_name: &constraint.name,
            table_catalog: database, table_schema: schema, table_name: &table.name, constraint_type: kind,
            enforced: yes_or_no(constraint.enforced || kind == "CHECK"), nulls_distinct: nulls_distinct);
    });
    for table in source.state().tables() {
        let schema = source.schema_name(table.schema);
        for column in table.columns.iter().filter(|column| column.not_null) {
            row!(rows, constraint_catalog: database, constraint_schema: schema,
                constraint_name: not_null_name(table, column.id.0), table_catalog: database, table_schema: schema,
                table_name: &table.name, constraint_type: "CHECK", enforced: "YES");
        }
    }
}

fn key_column_usage(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_constraint(source, |table, schema, constraint| {
        let referenced = match &constraint.kind {
            ConstraintKind::Check { .. } => return,
            ConstraintKind::ForeignKey { references, referenced, .. } => Some((references, referenced)),
            ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. } => None,
        };
        for (at, name) in column_names(table, constraint.kind.columns()).into_iter().enumerate() {
            let position = referenced.and_then(|(references, referenced)| {
                let target = source.state().table(*references)?;
                let key =
                    keys(target).find(|key| key.unique && key.columns.iter().all(|id| referenced.contains(id)))?;
                key.columns.iter().position(|id| Some(id) == referenced.get(at)).map(|at| at + 1)
            });
            row!(rows, constraint_catalog: database, constraint_schema: schema, constraint_name: &constraint.name,
                table_catalog: database, table_schema: schema, table_name: &table.name, column_name: name,
                ordinal_position: at + 1, position_in_unique_constraint: position);
        }
    });
}

fn constraint_column_usage(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_constraint(source, |table, schema, constraint| {
        // For a foreign key the standard requires the referenced columns.
        let (used, ids) = match &constraint.kind {
            ConstraintKind::ForeignKey { references, referenced, .. } => {
                let Some(target) = source.state().table(*references) else { return };
                (target.as_ref(), referenced.as_slice())
            }
            other => (table, other.columns()),
        };
        for name in column_names(used, ids) {
            row!(rows, table_catalog: database, table_schema: source.schema_name(used.schema), table_name: &used.name,
                column_name: name, constraint_catalog: database, constraint_schema: schema,
                constraint_name: &constraint.name);
        }
    });
}

fn constraint_table_usage(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_constraint(source, |table, schema, constraint| {
        let used = match &constraint.kind {
            ConstraintKind::ForeignKey { references, .. } => source.state().table(*references).map(AsRef::as_ref),
            ConstraintKind::Check { .. } => None,
            _ => Some(table),
        };
        if let Some(used) = used {
            row!(rows, table_catalog: database, table_schema: source.schema_name(used.schema), table_name: &used.name,
                constraint_catalog: database, constraint_schema: schema, constraint_name: &constraint.name);
        }
    });
}

fn referential_constraints(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_constraint(source, |_, schema, constraint| {
        let ConstraintKind::ForeignKey { references, referenced, on_update, on_delete, .. } = &constraint.kind else {
            return;
        };
        let target = source.state().table(*references);
        let key = target.and_then(|target| keys(target).find(|key| key.unique && key.columns == referenced.as_slice()));
        let rule = |action| action_keywords(action_code(action)).unwrap_or("NO ACTION");
        row!(rows, constraint_catalog: database, constraint_schema: schema, constraint_name: &constraint.name,
            unique_constraint_catalog: key.map(|_| database), unique_constraint_schema: key.map(|key| source.schema_name(key.table.schema)),
            unique_constraint_name: key.map(|key| key.name), update_rule: rule(*on_update),
            delete_rule: rule(*on_delete));
    });
}

fn check_constraints(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_constraint(source, |_, schema, constraint| {
        if let ConstraintKind::Check { expression, .. } = &constraint.kind {
            row!(rows, constraint_catalog: database, constraint_schema: schema, constraint_name: &constraint.name,
                check_clause: format!("({expression})"));
        }
    });
    for table in source.state().tables() {
        for column in table.columns.iter().filter(|column| column.not_null) {
            row!(rows, constraint_catalog: database, constraint_schema: source.schema_name(table.schema),
                constraint_name: not_null_name(table, column.id.0), check_clause: format!("{} IS NOT NULL", column.name));
        }
    }
}
