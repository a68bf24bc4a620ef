//! `pg_constraint` and `pg_index`: keys, foreign keys, checks and indexes.

use ::catalog::ConstraintKind;
use types::{ColumnId, Oid};

use super::super::row_builder::{Cell, RowBuilder, row};
use super::super::row_source::{KeyOrIndex, RowSource, find_column, keys};
use super::super::sql_text::action_code;
use super::super::table_definition::TableDefinition;
use super::definition_constructors::catalog;
use super::pg_type;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        2606,
        "pg_constraint",
        "Constraints of tables.",
        "oid oid, conname name, connamespace oid, contype char, condeferrable bool = f, condeferred bool = f, \
         convalidated bool, conrelid oid, contypid oid = 0, conindid oid = 0, conparentid oid = 0, confrelid oid = 0, \
         confupdtype char = ' ', confdeltype char = ' ', confmatchtype char = ' ', conislocal bool = t, \
         coninhcount int4 = 0, connoinherit bool = t, conkey int2[], confkey int2[], conpfeqop oid[], conppeqop oid[], \
         conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin pg_node_tree",
        constraint,
    ),
    catalog(
        2610,
        "pg_index",
        "Indexes, also those of primary and unique keys.",
        "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, \
         indnullsnotdistinct bool = f, indisprimary bool, indisexclusion bool = f, indimmediate bool = t, \
         indisclustered bool = f, indisvalid bool = t, indcheckxmin bool = f, indisready bool = t, indislive bool = t, \
         indisreplident bool = f, indkey int2vector, indcollation oidvector, indclass oidvector, indoption int2vector, \
         indexprs pg_node_tree, indpred pg_node_tree",
        index,
    ),
];

fn constraint(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for table in source.state().tables() {
        for constraint in &table.constraints {
            let row = match &constraint.kind {
                ConstraintKind::PrimaryKey { columns } => ConstraintRow::key("p", columns, constraint.oid),
                ConstraintKind::Unique { columns } => ConstraintRow::key("u", columns, constraint.oid),
                ConstraintKind::Check { columns, expression } => {
                    ConstraintRow { expression: Some(expression), ..ConstraintRow::new("c", columns) }
                }
                ConstraintKind::ForeignKey {
                    columns,
                    references,
                    referenced,
                    on_update,
                    on_delete,
                    delete_columns,
                } => ConstraintRow {
                    delete_columns,
                    index: referenced_key(source, *references, referenced),
                    references: *references,
                    referenced: Some(referenced),
                    actions: (action_code(*on_update), action_code(*on_delete), "s"),
                    ..ConstraintRow::new("f", columns)
                },
            };
            row!(rows, oid: constraint.oid, conname: &constraint.name, connamespace: table.schema,
                contype: row.kind, convalidated: constraint.enforced || row.expression.is_some(), conrelid: table.oid, conindid: row.index,
                confrelid: row.references, confupdtype: row.actions.0, confdeltype: row.actions.1,
                confmatchtype: row.actions.2, conkey: column_numbers(row.columns), confkey: row.referenced.map(column_numbers),
                confdelsetcols: (!row.delete_columns.is_empty()).then(|| column_numbers(row.delete_columns)),
                conbin: row.expression);
        }
    }
}

/// Values of a `pg_constraint` row that differ between the kinds of constraints.
struct ConstraintRow<'a> {
    kind: &'static str,
    columns: &'a [ColumnId],
    index: Oid,
    references: Oid,
    referenced: Option<&'a [ColumnId]>,
    actions: (&'static str, &'static str, &'static str),
    expression: Option<&'a str>,
    delete_columns: &'a [ColumnId],
}

impl<'a> ConstraintRow<'a> {
    fn new(kind: &'static str, columns: &'a [ColumnId]) -> Self {
        ConstraintRow {
            kind,
            columns,
            index: Oid(0),
            references: Oid(0),
            referenced: None,
            actions: (" ", " ", " "),
            expression: None,
            delete_columns: &[],
        }
    }

    fn key(kind: &'static str, columns: &'a [ColumnId], oid: Oid) -> Self {
        ConstraintRow { index: oid, ..ConstraintRow::new(kind, columns) }
    }
}

fn column_numbers(columns: &[ColumnId]) -> Cell {
    Cell::List(columns.iter().map(|id| Cell::from(*id)).collect())
}

/// Returns the OID of the key or unique index that a foreign key refers to; 0 if there is none.
fn referenced_key(source: &RowSource<'_>, table: Oid, referenced: &[ColumnId]) -> Oid {
    let table = source.state().table(table);
    let key = table.and_then(|table| keys(table).find(|key| key.unique && key.columns == referenced));
    key.map_or(Oid(0), |key| key.oid)
}

fn index(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for table in source.state().tables() {
        for key in keys(table) {
            let all: Vec<ColumnId> = key.all_columns().collect();
            // PostgreSQL's bits: 1 is DESC, 2 is NULLS FIRST.
            let options = key.key_orders().map(|it| i32::from(it.descending) + 2 * i32::from(it.nulls_first));
            row!(rows, indexrelid: key.oid, indrelid: table.oid, indnatts: all.len(),
                indnkeyatts: key.columns.len(), indisunique: key.unique, indisprimary: key.primary, indkey: column_numbers(&all),
                indcollation: collations(&key), indclass: vec![0_i32; key.columns.len()],
                indoption: options.collect::<Vec<_>>());
        }
    }
}

fn collations(key: &KeyOrIndex<'_>) -> Vec<u32> {
    let columns = key.columns.iter().zip(key.key_orders());
    columns
        .filter_map(|(id, order)| Some((find_column(key.table, *id)?, order)))
        .map(|(column, order)| match order.collation {
            Some(name) => pg_type::collation_oid(&name),
            None => pg_type::collation(&column.sql_type),
        })
        .collect()
}
