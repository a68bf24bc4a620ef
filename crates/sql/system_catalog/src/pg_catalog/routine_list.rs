//! List of PostgreSQL's functions, by OID and name, whether Kiln implements them or not.

use std::sync::LazyLock;

use types::{Oid, SqlType};

use super::signatures::SIGNATURES;
use super::type_::PSEUDO_TYPES;
use super::type_io_functions;

/// Row of `pg_proc`.
pub(crate) struct Routine {
    pub(crate) oid: Oid,
    pub(crate) name: &'static str,
    /// OIDs of the argument types.
    pub(crate) arguments: Vec<u32>,
    pub(crate) result: u32,
    pub(crate) returns_set: bool,
    /// `f` for a function, `a` for an aggregate, `w` for a window function.
    pub(crate) kind: &'static str,
    /// `i` for immutable, `s` for stable, `v` for volatile.
    pub(crate) volatility: &'static str,
    /// Whether it is an input or output function of a type, which Kiln has for all its types.
    pub(super) is_io_function: bool,
}

pub(super) static ROUTINES: LazyLock<Vec<Routine>> = LazyLock::new(|| {
    let forms = type_io_functions::SIGNATURES.lines().filter_map(Routine::parse);
    let forms = forms.map(|routine| Routine { is_io_function: true, ..routine });
    SIGNATURES.lines().filter_map(Routine::parse).chain(forms).collect()
});

/// Finds a function by OID.
pub(crate) fn routine_by_oid(oid: Oid) -> Option<&'static Routine> {
    ROUTINES.iter().find(|routine| routine.oid == oid)
}

/// Returns the functions with this name.
pub(crate) fn routines_named(name: &str) -> impl Iterator<Item = &'static Routine> {
    ROUTINES.iter().filter(move |routine| routine.name == name)
}

impl Routine {
    /// Parses `oid name(argument,…) result flags`; the flags are a volatility letter, a kind letter and `*` for a
    /// set-returning function.
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
            is_io_function: false,
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
