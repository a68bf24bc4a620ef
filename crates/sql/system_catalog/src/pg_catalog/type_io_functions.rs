//! Input and output functions of types, with PostgreSQL's OIDs, by which drivers recognize types and arrays.

use std::collections::HashMap;
use std::sync::LazyLock;

use functions::{CatalogEntry, CatalogFunction, FunctionKind, catalog_entry};
use types::SqlType;

use super::pg_type::PSEUDO_TYPES;

/// Input and output functions of a type in `pg_type`: OIDs in `pg_proc`, 0 where PostgreSQL has none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TypeIoFunctions {
    pub(super) input: u32,
    pub(super) output: u32,
    pub(super) receive: u32,
    pub(super) send: u32,
}

/// Returns the input and output functions of the type `typname`; for arrays use [`ARRAY_TYPE_NAME`].
pub(super) fn type_io_functions(typname: &str) -> TypeIoFunctions {
    TYPE_IO_FUNCTIONS.get(typname).copied().unwrap_or_default()
}

/// Returns the catalog entries of all of them.
pub(super) fn catalog_functions() -> impl Iterator<Item = CatalogFunction> {
    let (description, kind) = ("I/O", FunctionKind::Scalar);
    IO_FUNCTIONS.iter().map(move |(name, entry)| CatalogFunction { name, description, kind, entry })
}

/// Name of the input and output functions that all array types share: `array_…`.
pub(super) const ARRAY_TYPE_NAME: &str = "array";

static TYPE_IO_FUNCTIONS: LazyLock<HashMap<String, TypeIoFunctions>> = LazyLock::new(|| {
    let numbers: HashMap<&str, u32> = IO_FUNCTIONS.iter().map(|(name, entry)| (*name, entry.oid)).collect();
    let named = |typname: String| {
        let number = |suffix: &str| {
            let names = [format!("{typname}{suffix}"), format!("{typname}_{suffix}")];
            names.iter().find_map(|name| numbers.get(name.as_str())).copied().unwrap_or(0)
        };
        let forms = TypeIoFunctions {
            input: number("in"),
            output: number("out"),
            receive: number("recv"),
            send: number("send"),
        };
        (typname, forms)
    };
    let pseudo = PSEUDO_TYPES.iter().map(|(_, name)| (*name).to_owned());
    let scalars = SqlType::scalars().map(|sql_type| sql_type.typname());
    scalars.chain(pseudo).chain([ARRAY_TYPE_NAME.to_owned()]).map(named).collect()
});

/// The functions, each with its name. All types of Kiln are read and written.
const IO_FUNCTIONS: &[(&str, CatalogEntry)] = &[
    ("any_in", catalog_entry(2294, "cstring", "any")),
    ("any_out", catalog_entry(2295, "any", "cstring")),
    ("anyarray_in", catalog_entry(2296, "cstring", "anyarray")),
    ("anyarray_out", catalog_entry(2297, "anyarray", "cstring").stable()),
    ("anyarray_recv", catalog_entry(2502, "internal", "anyarray").stable()),
    ("anyarray_send", catalog_entry(2503, "anyarray", "bytea").stable()),
    ("anycompatible_in", catalog_entry(5086, "cstring", "anycompatible")),
    ("anycompatible_out", catalog_entry(5087, "anycompatible", "cstring")),
    ("anycompatiblearray_in", catalog_entry(5088, "cstring", "anycompatiblearray")),
    ("anycompatiblearray_out", catalog_entry(5089, "anycompatiblearray", "cstring").stable()),
    ("anycompatiblearray_recv", catalog_entry(5090, "internal", "anycompatiblearray").stable()),
    ("anycompatiblearray_send", catalog_entry(5091, "anycompatiblearray", "bytea").stable()),
    ("anyelement_in", catalog_entry(2312, "cstring", "anyelement")),
    ("anyelement_out", catalog_entry(2313, "anyelement", "cstring")),
    ("anynonarray_in", catalog_entry(2777, "cstring", "anynonarray")),
    ("anynonarray_out", catalog_entry(2778, "anynonarray", "cstring")),
    ("array_in", catalog_entry(750, "cstring,oid,int4", "anyarray").stable()),
    ("array_out", catalog_entry(751, "anyarray", "cstring").stable()),
    ("array_recv", catalog_entry(2400, "internal,oid,int4", "anyarray").stable()),
    ("array_send", catalog_entry(2401, "anyarray", "bytea").stable()),
    ("boolin", catalog_entry(1242, "cstring", "bool")),
    ("boolout", catalog_entry(1243, "bool", "cstring")),
    ("boolrecv", catalog_entry(2436, "internal", "bool")),
    ("boolsend", catalog_entry(2437, "bool", "bytea")),
    ("bpcharin", catalog_entry(1044, "cstring,oid,int4", "bpchar")),
    ("bpcharout", catalog_entry(1045, "bpchar", "cstring")),
    ("bpcharrecv", catalog_entry(2430, "internal,oid,int4", "bpchar").stable()),
    ("bpcharsend", catalog_entry(2431, "bpchar", "bytea").stable()),
    ("byteain", catalog_entry(1244, "cstring", "bytea")),
    ("byteaout", catalog_entry(31, "bytea", "cstring")),
    ("bytearecv", catalog_entry(2412, "internal", "bytea")),
    ("byteasend", catalog_entry(2413, "bytea", "bytea")),
    ("charin", catalog_entry(1245, "cstring", "char")),
    ("charout", catalog_entry(33, "char", "cstring")),
    ("charrecv", catalog_entry(2434, "internal", "char")),
    ("charsend", catalog_entry(2435, "char", "bytea")),
    ("cstring_in", catalog_entry(2292, "cstring", "cstring")),
    ("cstring_out", catalog_entry(2293, "cstring", "cstring")),
    ("cstring_recv", catalog_entry(2500, "internal", "cstring").stable()),
    ("cstring_send", catalog_entry(2501, "cstring", "bytea").stable()),
    ("date_in", catalog_entry(1084, "cstring", "date").stable()),
    ("date_out", catalog_entry(1085, "date", "cstring").stable()),
    ("date_recv", catalog_entry(2468, "internal", "date")),
    ("date_send", catalog_entry(2469, "date", "bytea")),
    ("float4in", catalog_entry(200, "cstring", "float4")),
    ("float4out", catalog_entry(201, "float4", "cstring")),
    ("float4recv", catalog_entry(2424, "internal", "float4")),
    ("float4send", catalog_entry(2425, "float4", "bytea")),
    ("float8in", catalog_entry(214, "cstring", "float8")),
    ("float8out", catalog_entry(215, "float8", "cstring")),
    ("float8recv", catalog_entry(2426, "internal", "float8")),
    ("float8send", catalog_entry(2427, "float8", "bytea")),
    ("int2in", catalog_entry(38, "cstring", "int2")),
    ("int2out", catalog_entry(39, "int2", "cstring")),
    ("int2recv", catalog_entry(2404, "internal", "int2")),
    ("int2send", catalog_entry(2405, "int2", "bytea")),
    ("int2vectorin", catalog_entry(40, "cstring", "int2vector")),
    ("int2vectorout", catalog_entry(41, "int2vector", "cstring")),
    ("int2vectorrecv", catalog_entry(2410, "internal", "int2vector")),
    ("int2vectorsend", catalog_entry(2411, "int2vector", "bytea")),
    ("int4in", catalog_entry(42, "cstring", "int4")),
    ("int4out", catalog_entry(43, "int4", "cstring")),
    ("int4recv", catalog_entry(2406, "internal", "int4")),
    ("int4send", catalog_entry(2407, "int4", "bytea")),
    ("int8in", catalog_entry(460, "cstring", "int8")),
    ("int8out", catalog_entry(461, "int8", "cstring")),
    ("int8recv", catalog_entry(2408, "internal", "int8")),
    ("int8send", catalog_entry(2409, "int8", "bytea")),
    ("internal_in", catalog_entry(2304, "cstring", "internal").called_on_null()),
    ("internal_out", catalog_entry(2305, "internal", "cstring")),
    ("interval_in", catalog_entry(1160, "cstring,oid,int4", "interval").stable()),
    ("interval_out", catalog_entry(1161, "interval", "cstring").stable()),
    ("interval_recv", catalog_entry(2478, "internal,oid,int4", "interval")),
    ("interval_send", catalog_entry(2479, "interval", "bytea")),
    ("json_in", catalog_entry(321, "cstring", "json")),
    ("json_out", catalog_entry(322, "json", "cstring")),
    ("json_recv", catalog_entry(323, "internal", "json")),
    ("json_send", catalog_entry(324, "json", "bytea")),
    ("jsonb_in", catalog_entry(3806, "cstring", "jsonb")),
    ("jsonb_out", catalog_entry(3804, "jsonb", "cstring")),
    ("jsonb_recv", catalog_entry(3805, "internal", "jsonb")),
    ("jsonb_send", catalog_entry(3803, "jsonb", "bytea")),
    ("namein", catalog_entry(34, "cstring", "name")),
    ("nameout", catalog_entry(35, "name", "cstring")),
    ("namerecv", catalog_entry(2422, "internal", "name").stable()),
    ("namesend", catalog_entry(2423, "name", "bytea").stable()),
    ("numeric_in", catalog_entry(1701, "cstring,oid,int4", "numeric")),
    ("numeric_out", catalog_entry(1702, "numeric", "cstring")),
    ("numeric_recv", catalog_entry(2460, "internal,oid,int4", "numeric")),
    ("numeric_send", catalog_entry(2461, "numeric", "bytea")),
    ("oidin", catalog_entry(1798, "cstring", "oid")),
    ("oidout", catalog_entry(1799, "oid", "cstring")),
    ("oidrecv", catalog_entry(2418, "internal", "oid")),
    ("oidsend", catalog_entry(2419, "oid", "bytea")),
    ("oidvectorin", catalog_entry(54, "cstring", "oidvector")),
    ("oidvectorout", catalog_entry(55, "oidvector", "cstring")),
    ("oidvectorrecv", catalog_entry(2420, "internal", "oidvector")),
    ("oidvectorsend", catalog_entry(2421, "oidvector", "bytea")),
    ("record_in", catalog_entry(2290, "cstring,oid,int4", "record").stable()),
    ("record_out", catalog_entry(2291, "record", "cstring").stable()),
    ("record_recv", catalog_entry(2402, "internal,oid,int4", "record").stable()),
    ("record_send", catalog_entry(2403, "record", "bytea").stable()),
    ("regclassin", catalog_entry(2218, "cstring", "regclass").stable()),
    ("regclassout", catalog_entry(2219, "regclass", "cstring").stable()),
    ("regclassrecv", catalog_entry(2452, "internal", "regclass")),
    ("regclasssend", catalog_entry(2453, "regclass", "bytea")),
    ("regnamespacein", catalog_entry(4084, "cstring", "regnamespace").stable()),
    ("regnamespaceout", catalog_entry(4085, "regnamespace", "cstring").stable()),
    ("regnamespacerecv", catalog_entry(4087, "internal", "regnamespace")),
    ("regnamespacesend", catalog_entry(4088, "regnamespace", "bytea")),
    ("regoperatorin", catalog_entry(2216, "cstring", "regoperator").stable()),
    ("regoperatorout", catalog_entry(2217, "regoperator", "cstring").stable()),
    ("regoperatorrecv", catalog_entry(2450, "internal", "regoperator")),
    ("regoperatorsend", catalog_entry(2451, "regoperator", "bytea")),
    ("regprocedurein", catalog_entry(2212, "cstring", "regprocedure").stable()),
    ("regprocedureout", catalog_entry(2213, "regprocedure", "cstring").stable()),
    ("regprocedurerecv", catalog_entry(2446, "internal", "regprocedure")),
    ("regproceduresend", catalog_entry(2447, "regprocedure", "bytea")),
    ("regprocin", catalog_entry(44, "cstring", "regproc").stable()),
    ("regprocout", catalog_entry(45, "regproc", "cstring").stable()),
    ("regprocrecv", catalog_entry(2444, "internal", "regproc")),
    ("regprocsend", catalog_entry(2445, "regproc", "bytea")),
    ("regrolein", catalog_entry(4098, "cstring", "regrole").stable()),
    ("regroleout", catalog_entry(4092, "regrole", "cstring").stable()),
    ("regrolerecv", catalog_entry(4094, "internal", "regrole")),
    ("regrolesend", catalog_entry(4095, "regrole", "bytea")),
    ("regtypein", catalog_entry(2220, "cstring", "regtype").stable()),
    ("regtypeout", catalog_entry(2221, "regtype", "cstring").stable()),
    ("regtyperecv", catalog_entry(2454, "internal", "regtype")),
    ("regtypesend", catalog_entry(2455, "regtype", "bytea")),
    ("textin", catalog_entry(46, "cstring", "text")),
    ("textout", catalog_entry(47, "text", "cstring")),
    ("textrecv", catalog_entry(2414, "internal", "text").stable()),
    ("textsend", catalog_entry(2415, "text", "bytea").stable()),
    ("time_in", catalog_entry(1143, "cstring,oid,int4", "time").stable()),
    ("time_out", catalog_entry(1144, "time", "cstring")),
    ("time_recv", catalog_entry(2470, "internal,oid,int4", "time")),
    ("time_send", catalog_entry(2471, "time", "bytea")),
    ("timestamp_in", catalog_entry(1312, "cstring,oid,int4", "timestamp").stable()),
    ("timestamp_out", catalog_entry(1313, "timestamp", "cstring").stable()),
    ("timestamp_recv", catalog_entry(2474, "internal,oid,int4", "timestamp")),
    ("timestamp_send", catalog_entry(2475, "timestamp", "bytea")),
    ("timestamptz_in", catalog_entry(1150, "cstring,oid,int4", "timestamptz").stable()),
    ("timestamptz_out", catalog_entry(1151, "timestamptz", "cstring").stable()),
    ("timestamptz_recv", catalog_entry(2476, "internal,oid,int4", "timestamptz")),
    ("timestamptz_send", catalog_entry(2477, "timestamptz", "bytea")),
    ("trigger_in", catalog_entry(2300, "cstring", "trigger").called_on_null()),
    ("trigger_out", catalog_entry(2301, "trigger", "cstring")),
    ("unknownin", catalog_entry(109, "cstring", "unknown")),
    ("unknownout", catalog_entry(110, "unknown", "cstring")),
    ("unknownrecv", catalog_entry(2416, "internal", "unknown")),
    ("unknownsend", catalog_entry(2417, "unknown", "bytea")),
    ("uuid_in", catalog_entry(2952, "cstring", "uuid")),
    ("uuid_out", catalog_entry(2953, "uuid", "cstring")),
    ("uuid_recv", catalog_entry(2961, "internal", "uuid")),
    ("uuid_send", catalog_entry(2962, "uuid", "bytea")),
    ("varcharin", catalog_entry(1046, "cstring,oid,int4", "varchar")),
    ("varcharout", catalog_entry(1047, "varchar", "cstring")),
    ("varcharrecv", catalog_entry(2432, "internal,oid,int4", "varchar").stable()),
    ("varcharsend", catalog_entry(2433, "varchar", "bytea").stable()),
    ("void_in", catalog_entry(2298, "cstring", "void")),
    ("void_out", catalog_entry(2299, "void", "cstring")),
    ("void_recv", catalog_entry(3120, "internal", "void")),
    ("void_send", catalog_entry(3121, "void", "bytea")),
];
