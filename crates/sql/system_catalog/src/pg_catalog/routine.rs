//! `pg_proc` and `pg_aggregate`: the functions of Kiln that PostgreSQL has too, with its signatures.

use types::Oid;

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RowSource, SYSTEM_OWNER, schema_oid};
use super::super::table_definition::TableDefinition;
use super::access_methods_and_operators::INTERNAL_LANGUAGE_OID;
use super::builtin_routines::ROUTINES;
use super::definition_constructors::catalog;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1255,
        "pg_proc",
        "Functions, aggregates and window functions.",
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4 = 1, prorows float4, \
         provariadic oid = 0, prosupport regproc = 0, prokind char, prosecdef bool = f, proleakproof bool = f, \
         proisstrict bool, proretset bool, provolatile char, proparallel char = s, pronargs int2, \
         pronargdefaults int2 = 0, prorettype oid, proargtypes oidvector, proallargtypes oid[], proargmodes char[], \
         proargnames text[], proargdefaults pg_node_tree, protrftypes oid[], prosrc text, probin text, \
         prosqlbody pg_node_tree, proconfig text[], proacl aclitem[]",
        procedures,
    ),
    catalog(
        2600,
        "pg_aggregate",
        "Aggregate functions.",
        "aggfnoid regproc, aggkind char = n, aggnumdirectargs int2 = 0, aggtransfn regproc = 0, aggfinalfn regproc = 0, \
         aggcombinefn regproc = 0, aggserialfn regproc = 0, aggdeserialfn regproc = 0, aggmtransfn regproc = 0, \
         aggminvtransfn regproc = 0, aggmfinalfn regproc = 0, aggfinalextra bool = f, aggmfinalextra bool = f, \
         aggfinalmodify char = r, aggmfinalmodify char = r, aggsortop oid = 0, aggtranstype oid = 0, \
         aggtransspace int4 = 0, aggmtranstype oid = 0, aggmtransspace int4 = 0, agginitval text, aggminitval text",
        aggregates,
    ),
];

/// Returns the OIDs and descriptions of all functions.
pub(super) fn descriptions() -> impl Iterator<Item = (Oid, &'static str)> {
    ROUTINES.iter().map(|routine| (routine.oid, routine.description))
}

fn procedures(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let schema = schema_oid(source.state(), super::definition_constructors::SCHEMA);
    for routine in ROUTINES.iter() {
        row!(rows, oid: routine.oid, proname: routine.name, pronamespace: schema, proowner: SYSTEM_OWNER,
            prolang: INTERNAL_LANGUAGE_OID, prorows: if routine.returns_set { 1000.0 } else { 0.0 }, prokind: routine.kind,
            proisstrict: routine.is_strict, proretset: routine.returns_set, provolatile: routine.volatility, pronargs: routine.arguments.len(),
            prorettype: routine.result, proargtypes: routine.arguments.clone(), prosrc: routine.name);
    }
}

fn aggregates(_: &RowSource<'_>, rows: &mut RowBuilder) {
    for routine in ROUTINES.iter().filter(|routine| routine.kind == "a") {
        row!(rows, aggfnoid: routine.oid);
    }
}
