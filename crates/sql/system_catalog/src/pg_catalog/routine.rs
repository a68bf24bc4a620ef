//! `pg_proc` and `pg_aggregate`: PostgreSQL's functions that Kiln has, with PostgreSQL's signatures.

use std::sync::Arc;

use super::super::definition::TableDefinition;
use super::super::rows::{Rows, row};
use super::super::source::{SYSTEM_OWNER, Source, schema_oid};
use super::access::INTERNAL_LANGUAGE;
use super::constructors::catalog;
use super::routine_list::{ROUTINES, Routine};

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1255,
        "pg_proc",
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4 = 1, prorows float4, \
         provariadic oid = 0, prosupport regproc = 0, prokind char, prosecdef bool = f, proleakproof bool = f, \
         proisstrict bool = t, proretset bool, provolatile char, proparallel char = s, pronargs int2, \
         pronargdefaults int2 = 0, prorettype oid, proargtypes oidvector, proallargtypes oid[], proargmodes char[], \
         proargnames text[], proargdefaults pg_node_tree, protrftypes oid[], prosrc text, probin text, \
         prosqlbody pg_node_tree, proconfig text[], proacl aclitem[]",
        procedures,
    ),
    catalog(
        2600,
        "pg_aggregate",
        "aggfnoid regproc, aggkind char = n, aggnumdirectargs int2 = 0, aggtransfn regproc = 0, aggfinalfn regproc = 0, \
         aggcombinefn regproc = 0, aggserialfn regproc = 0, aggdeserialfn regproc = 0, aggmtransfn regproc = 0, \
         aggminvtransfn regproc = 0, aggmfinalfn regproc = 0, aggfinalextra bool = f, aggmfinalextra bool = f, \
         aggfinalmodify char = r, aggmfinalmodify char = r, aggsortop oid = 0, aggtranstype oid = 0, \
         aggtransspace int4 = 0, aggmtranstype oid = 0, aggmtransspace int4 = 0, agginitval text, aggminitval text",
        aggregates,
    ),
];

/// Whether Kiln implements the function; the signature list has more.
fn is_available(session: &Arc<session_context::EvaluationContext>, routine: &Routine) -> bool {
    functions::scalar(routine.name, session).is_some()
        || functions::aggregate(routine.name).is_some()
        || functions::window(routine.name).is_some()
        || crate::system_functions::exists(routine.name)
        || routine.is_io_function
}

/// Returns the functions that the statement could call.
fn available_routines(source: &Source<'_>) -> impl Iterator<Item = &'static Routine> {
    let session = Arc::new(crate::object_names::session(&Arc::new(source.context.clone()), source.relations.system));
    ROUTINES.iter().filter(move |routine| is_available(&session, routine))
}

fn procedures(source: &Source<'_>, rows: &mut Rows) {
    let schema = schema_oid(source.state(), super::constructors::SCHEMA);
    for routine in available_routines(source) {
        row!(rows, oid: routine.oid, proname: routine.name, pronamespace: schema, proowner: SYSTEM_OWNER,
            prolang: INTERNAL_LANGUAGE, prorows: if routine.returns_set { 1000.0 } else { 0.0 }, prokind: routine.kind,
            proretset: routine.returns_set, provolatile: routine.volatility, pronargs: routine.arguments.len(),
            prorettype: routine.result, proargtypes: routine.arguments.clone(), prosrc: routine.name);
    }
}

fn aggregates(source: &Source<'_>, rows: &mut Rows) {
    for routine in available_routines(source).filter(|routine| routine.kind == "a") {
        row!(rows, aggfnoid: routine.oid);
    }
}
