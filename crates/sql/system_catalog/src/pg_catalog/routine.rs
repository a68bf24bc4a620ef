//! `pg_proc` and `pg_aggregate`: the functions Kiln has under PostgreSQL's names, with PostgreSQL's signatures.

use std::sync::{Arc, LazyLock};

use types::{Oid, SqlType};

use super::super::definition::Definition;
use super::super::rows::{Rows, row};
use super::super::source::{SYSTEM_OWNER, Source, schema_oid};
use super::access::INTERNAL_LANGUAGE;
use super::catalog;
use super::signatures::SIGNATURES;
use super::type_::PSEUDO_TYPES;
use super::type_forms;

pub(super) const TABLES: &[Definition] = &[
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

/// A function's entry in `pg_proc`.
pub(crate) struct Routine {
    pub(crate) oid: Oid,
    pub(crate) name: &'static str,
    /// Numbers of the argument types.
    pub(crate) arguments: Vec<u32>,
    pub(crate) result: u32,
    pub(crate) returns_set: bool,
    /// `f`unction, `a`ggregate or `w`indow function.
    pub(crate) kind: &'static str,
    /// `i`mmutable, `s`table or `v`olatile.
    pub(crate) volatility: &'static str,
    /// Reads or prints the values of a type, as every type of Kiln's can be.
    is_form: bool,
}

static ROUTINES: LazyLock<Vec<Routine>> = LazyLock::new(|| {
    let forms = type_forms::SIGNATURES.lines().filter_map(Routine::parse);
    let forms = forms.map(|routine| Routine { is_form: true, ..routine });
    SIGNATURES.lines().filter_map(Routine::parse).chain(forms).collect()
});

/// The function with this number.
pub(crate) fn routine_by_oid(oid: Oid) -> Option<&'static Routine> {
    ROUTINES.iter().find(|routine| routine.oid == oid)
}

/// The functions with this name.
pub(crate) fn routine_named(name: &str) -> impl Iterator<Item = &'static Routine> {
    ROUTINES.iter().filter(move |routine| routine.name == name)
}

impl Routine {
    /// Reads `oid name(argument,…) result flags`; flags are a volatility letter, a kind letter and `*` for a set.
    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let oid = words.next()?.parse().ok()?;
        let (name, arguments) = words.next()?.strip_suffix(')')?.split_once('(')?;
        let result = type_number(words.next()?)?;
        let flags = words.next()?;
        let arguments = arguments.split(',').filter(|name| !name.is_empty()).map(type_number).collect::<Option<_>>()?;
        Some(Self {
            oid: Oid(oid),
            name,
            arguments,
            result,
            returns_set: flags.contains('*'),
            kind: flags.get(1..2)?,
            volatility: flags.get(0..1)?,
            is_form: false,
        })
    }
}

fn type_number(name: &str) -> Option<u32> {
    if let Some((oid, _)) = PSEUDO_TYPES.iter().find(|(_, pseudo)| *pseudo == name) {
        return Some(*oid);
    }
    if let Some(element) = name.strip_prefix('_') {
        return SqlType::scalars().find(|sql_type| sql_type.typname() == element).map(|sql_type| sql_type.array_oid());
    }
    SqlType::scalars().find(|sql_type| sql_type.typname() == name).map(|sql_type| sql_type.oid())
}

/// Whether Kiln really has the function: a signature alone proves nothing.
fn is_present(session: &Arc<session_context::Session>, routine: &Routine) -> bool {
    functions::scalar(routine.name, session).is_some()
        || functions::aggregate(routine.name).is_some()
        || functions::window(routine.name).is_some()
        || crate::system_functions::exists(routine.name)
        || routine.is_form
}

/// The functions the statement could call.
fn present(source: &Source<'_>) -> impl Iterator<Item = &'static Routine> {
    let session = Arc::new(crate::session(&Arc::new(source.context.clone())));
    ROUTINES.iter().filter(move |routine| is_present(&session, routine))
}

fn procedures(source: &Source<'_>, rows: &mut Rows) {
    let schema = schema_oid(source.state(), super::SCHEMA);
    for routine in present(source) {
        row!(rows, oid: routine.oid, proname: routine.name, pronamespace: schema, proowner: SYSTEM_OWNER,
            prolang: INTERNAL_LANGUAGE, prorows: if routine.returns_set { 1000.0 } else { 0.0 }, prokind: routine.kind,
            proretset: routine.returns_set, provolatile: routine.volatility, pronargs: routine.arguments.len(),
            prorettype: routine.result, proargtypes: routine.arguments.clone(), prosrc: routine.name);
    }
}

fn aggregates(source: &Source<'_>, rows: &mut Rows) {
    for routine in present(source).filter(|routine| routine.kind == "a") {
        row!(rows, aggfnoid: routine.oid);
    }
}
