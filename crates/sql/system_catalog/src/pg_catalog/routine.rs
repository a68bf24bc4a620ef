//! `pg_proc` and `pg_aggregate`: PostgreSQL's functions that Kiln has, with PostgreSQL's signatures.

use functions::CatalogParameter;
use types::{Oid, SqlType};

use super::super::definition::TableDefinition;
use super::super::rows::{Rows, row};
use super::super::source::{SYSTEM_OWNER, Source, schema_oid};
use super::access::INTERNAL_LANGUAGE;
use super::constructors::catalog;
use super::routine_list::{ROUTINES, Routine, routine_by_oid};
use super::type_::PSEUDO_TYPES;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1255,
        "pg_proc",
        "Functions, aggregates and window functions.",
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
        "Aggregate functions.",
        "aggfnoid regproc, aggkind char = n, aggnumdirectargs int2 = 0, aggtransfn regproc = 0, aggfinalfn regproc = 0, \
         aggcombinefn regproc = 0, aggserialfn regproc = 0, aggdeserialfn regproc = 0, aggmtransfn regproc = 0, \
         aggminvtransfn regproc = 0, aggmfinalfn regproc = 0, aggfinalextra bool = f, aggmfinalextra bool = f, \
         aggfinalmodify char = r, aggmfinalmodify char = r, aggsortop oid = 0, aggtranstype oid = 0, \
         aggtransspace int4 = 0, aggmtranstype oid = 0, aggmtransspace int4 = 0, agginitval text, aggminitval text",
        aggregates,
    ),
];

/// Whether Kiln implements the function; the list of PostgreSQL's signatures has more.
///
/// A scalar function is listed if its definition has an overload of exactly these parameters. A function of the system
/// catalog, an aggregate and a window function are listed by name: they declare no argument types.
fn is_available(routine: &Routine) -> bool {
    let parameters = routine.arguments.iter().map(|oid| catalog_parameter(*oid)).collect::<Option<Vec<_>>>();
    let is_overload = parameters.and_then(|parameters| functions::has_overload(routine.name, &parameters));
    is_overload == Some(true)
        || functions::aggregate(routine.name).is_some()
        || functions::window(routine.name).is_some()
        || crate::system_functions::exists(routine.name)
        || routine.is_io_function
}

/// Returns one line of documentation of a function.
fn description(routine: &Routine) -> Option<&'static str> {
    if routine.is_io_function {
        return Some("I/O");
    }
    functions::description(routine.name).or_else(|| crate::system_functions::description(routine.name))
}

/// Returns the OIDs and descriptions of the functions that the statement could call.
pub(super) fn descriptions() -> impl Iterator<Item = (Oid, &'static str)> {
    available_routines().filter_map(|routine| Some((routine.oid, description(routine)?)))
}

/// Returns the description of a function by OID.
pub(crate) fn description_by_oid(oid: Oid) -> Option<&'static str> {
    routine_by_oid(oid).and_then(description)
}

/// Returns the functions that the statement could call.
pub(crate) fn available_routines() -> impl Iterator<Item = &'static Routine> {
    ROUTINES.iter().filter(|routine| is_available(routine))
}

/// Returns the parameter of a type's OID; `None` for types that Kiln has no values of.
fn catalog_parameter(oid: u32) -> Option<CatalogParameter> {
    match PSEUDO_TYPES.iter().find(|(pseudo, _)| *pseudo == oid) {
        Some((_, "anyarray")) => Some(CatalogParameter::AnyArray),
        Some((_, "any" | "anyelement" | "anynonarray" | "anycompatible")) => Some(CatalogParameter::Any),
        Some(_) => None,
        None => SqlType::from_oid(oid, -1).map(CatalogParameter::Type),
    }
}

fn procedures(source: &Source<'_>, rows: &mut Rows) {
    let schema = schema_oid(source.state(), super::constructors::SCHEMA);
    for routine in available_routines() {
        row!(rows, oid: routine.oid, proname: routine.name, pronamespace: schema, proowner: SYSTEM_OWNER,
            prolang: INTERNAL_LANGUAGE, prorows: if routine.returns_set { 1000.0 } else { 0.0 }, prokind: routine.kind,
            proretset: routine.returns_set, provolatile: routine.volatility, pronargs: routine.arguments.len(),
            prorettype: routine.result, proargtypes: routine.arguments.clone(), prosrc: routine.name);
    }
}

fn aggregates(_: &Source<'_>, rows: &mut Rows) {
    for routine in available_routines().filter(|routine| routine.kind == "a") {
        row!(rows, aggfnoid: routine.oid);
    }
}
