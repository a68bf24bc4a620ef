//! `pg_depend`, `pg_rewrite`, `pg_description` and `pg_inherits`: dependencies between objects, and comments.

use types::Oid;

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RelationObject, RowSource};
use super::super::table_definition::TableDefinition;
use super::super::table_definition::no_rows;
use super::super::view_definition::view_definition;
use super::definition_constructors::catalog;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        2608,
        "pg_depend",
        "Dependencies between objects.",
        "classid oid, objid oid, objsubid int4 = 0, refclassid oid, refobjid oid, refobjsubid int4 = 0, deptype char = n",
        depend,
    ),
    catalog(
        1214,
        "pg_shdepend",
        "Dependencies on roles; always empty.",
        "dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, deptype char",
        no_rows,
    ),
    catalog(
        2618,
        "pg_rewrite",
        "Rewrite rules: one for each view.",
        "oid oid, rulename name, ev_class oid, ev_type char = 1, ev_enabled char = O, is_instead bool = t, \
         ev_qual pg_node_tree, ev_action pg_node_tree",
        rewrite,
    ),
    catalog(
        2609,
        "pg_description",
        "Comments on schemas, tables, views, columns, sequences and constraints.",
        "objoid oid, classoid oid, objsubid int4 = 0, description text",
        description,
    ),
    catalog(
        2396,
        "pg_shdescription",
        "Comments on roles and databases; always empty.",
        "objoid oid, classoid oid, description text",
        no_rows,
    ),
    catalog(
        2611,
        "pg_inherits",
        "Inheritance of tables; always empty.",
        "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool",
        no_rows,
    ),
];

/// OIDs of the catalogs that `classid` columns refer to.
pub(crate) const PG_CLASS_OID: Oid = Oid(1259);
pub(crate) const PG_NAMESPACE_OID: Oid = Oid(2615);
const PG_PROC_OID: Oid = Oid(1255);
const PG_ATTRDEF_OID: Oid = Oid(2604);
const PG_CONSTRAINT_OID: Oid = Oid(2606);
const PG_REWRITE_OID: Oid = Oid(2618);

fn depend(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let state = source.state();
    for table in state.tables() {
        row!(rows, classid: PG_CLASS_OID, objid: table.oid, refclassid: PG_NAMESPACE_OID, refobjid: table.schema);
        for constraint in &table.constraints {
            row!(rows, classid: PG_CONSTRAINT_OID, objid: constraint.oid, refclassid: PG_CLASS_OID, refobjid: table.oid, deptype: "a");
            if let ::catalog::ConstraintKind::ForeignKey { references, .. } = &constraint.kind {
                row!(rows, classid: PG_CONSTRAINT_OID, objid: constraint.oid, refclassid: PG_CLASS_OID, refobjid: *references);
            }
        }
    }
    for sequence in state.sequences() {
        row!(rows, classid: PG_CLASS_OID, objid: sequence.oid, refclassid: PG_NAMESPACE_OID, refobjid: sequence.schema);
        let Some(owner) = sequence.owned_by else { continue };
        let identity = state.table(owner.table).and_then(|table| table.column(owner.column)?.identity);
        let is_identity = identity.is_some_and(|identity| identity.sequence == sequence.oid);
        row!(rows, classid: PG_CLASS_OID, objid: sequence.oid, refclassid: PG_CLASS_OID, refobjid: owner.table,
            refobjsubid: owner.column.0, deptype: if is_identity { "i" } else { "a" });
    }
    // A default has its table's OID, as in `pg_attrdef`.
    for table in state.tables() {
        for column in table.columns.iter().filter(|column| column.default.is_some()) {
            row!(rows, classid: PG_ATTRDEF_OID, objid: table.oid, refclassid: PG_CLASS_OID, refobjid: table.oid,
                refobjsubid: column.id.0, deptype: "a");
            for sequence in &column.sequences {
                row!(rows, classid: PG_ATTRDEF_OID, objid: table.oid, refclassid: PG_CLASS_OID, refobjid: *sequence);
            }
        }
    }
    // As in PostgreSQL, a view depends on its tables through its rewrite rule, which has the view's OID here.
    for view in state.views() {
        row!(rows, classid: PG_CLASS_OID, objid: view.oid, refclassid: PG_NAMESPACE_OID, refobjid: view.schema);
        row!(rows, classid: PG_REWRITE_OID, objid: view.oid, refclassid: PG_CLASS_OID, refobjid: view.oid, deptype: "i");
        for on in &view.depends_on {
            row!(rows, classid: PG_REWRITE_OID, objid: view.oid, refclassid: PG_CLASS_OID, refobjid: *on);
        }
    }
}

fn rewrite(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all() {
        if let Some(definition) = view_definition(source.relations, &relation) {
            row!(rows, oid: relation.oid, rulename: "_RETURN", ev_class: relation.oid, ev_action: definition);
        }
    }
}

fn description(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for (oid, description) in super::routine::descriptions() {
        row!(rows, objoid: oid, classoid: PG_PROC_OID, description: description);
    }
    for schema in source.state().schemas() {
        if let Some(comment) = &schema.comment {
            row!(rows, objoid: schema.oid, classoid: PG_NAMESPACE_OID, description: comment);
        }
    }
    for relation in source.relations.all() {
        if let Some(comment) = relation.comment() {
            row!(rows, objoid: relation.oid, classoid: PG_CLASS_OID, description: comment);
        }
        for attribute in relation.attributes() {
            if let Some(comment) = attribute.comment {
                row!(rows, objoid: relation.oid, classoid: PG_CLASS_OID, objsubid: attribute.number, description: comment);
            }
        }
        let RelationObject::Table(table) = relation.object else { continue };
        for constraint in &table.constraints {
            if let Some(comment) = &constraint.comment {
                row!(rows, objoid: constraint.oid, classoid: PG_CONSTRAINT_OID, description: comment);
            }
        }
    }
}
