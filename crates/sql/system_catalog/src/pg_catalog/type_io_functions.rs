//! Input and output functions of types, with PostgreSQL's OIDs, by which drivers recognize types and arrays.

use std::collections::HashMap;
use std::sync::LazyLock;

use types::SqlType;

use super::type_::PSEUDO_TYPES;

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

/// Name of the input and output functions that all array types share: `array_…`.
pub(super) const ARRAY_TYPE_NAME: &str = "array";

static TYPE_IO_FUNCTIONS: LazyLock<HashMap<String, TypeIoFunctions>> = LazyLock::new(|| {
    let numbers: HashMap<&str, u32> = SIGNATURES
        .lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once(' ')?;
            Some((rest.split_once('(')?.0, number.parse().ok()?))
        })
        .collect();
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

/// Signatures in the format of `signatures.rs`.
pub(super) const SIGNATURES: &str = "\
2294 any_in(cstring) any if
2295 any_out(any) cstring if
2296 anyarray_in(cstring) anyarray if
2297 anyarray_out(anyarray) cstring sf
2502 anyarray_recv(internal) anyarray sf
2503 anyarray_send(anyarray) bytea sf
5086 anycompatible_in(cstring) anycompatible if
5087 anycompatible_out(anycompatible) cstring if
2312 anyelement_in(cstring) anyelement if
2313 anyelement_out(anyelement) cstring if
2777 anynonarray_in(cstring) anynonarray if
2778 anynonarray_out(anynonarray) cstring if
750 array_in(cstring,oid,int4) anyarray sf
751 array_out(anyarray) cstring sf
2400 array_recv(internal,oid,int4) anyarray sf
2401 array_send(anyarray) bytea sf
1242 boolin(cstring) bool if
1243 boolout(bool) cstring if
2436 boolrecv(internal) bool if
2437 boolsend(bool) bytea if
1044 bpcharin(cstring,oid,int4) bpchar if
1045 bpcharout(bpchar) cstring if
2430 bpcharrecv(internal,oid,int4) bpchar sf
2431 bpcharsend(bpchar) bytea sf
1244 byteain(cstring) bytea if
31 byteaout(bytea) cstring if
2412 bytearecv(internal) bytea if
2413 byteasend(bytea) bytea if
1245 charin(cstring) char if
33 charout(char) cstring if
2434 charrecv(internal) char if
2435 charsend(char) bytea if
2292 cstring_in(cstring) cstring if
2293 cstring_out(cstring) cstring if
2500 cstring_recv(internal) cstring sf
2501 cstring_send(cstring) bytea sf
1084 date_in(cstring) date sf
1085 date_out(date) cstring sf
2468 date_recv(internal) date if
2469 date_send(date) bytea if
200 float4in(cstring) float4 if
201 float4out(float4) cstring if
2424 float4recv(internal) float4 if
2425 float4send(float4) bytea if
214 float8in(cstring) float8 if
215 float8out(float8) cstring if
2426 float8recv(internal) float8 if
2427 float8send(float8) bytea if
38 int2in(cstring) int2 if
39 int2out(int2) cstring if
2404 int2recv(internal) int2 if
2405 int2send(int2) bytea if
40 int2vectorin(cstring) int2vector if
41 int2vectorout(int2vector) cstring if
2410 int2vectorrecv(internal) int2vector if
2411 int2vectorsend(int2vector) bytea if
42 int4in(cstring) int4 if
43 int4out(int4) cstring if
2406 int4recv(internal) int4 if
2407 int4send(int4) bytea if
460 int8in(cstring) int8 if
461 int8out(int8) cstring if
2408 int8recv(internal) int8 if
2409 int8send(int8) bytea if
2304 internal_in(cstring) internal if
2305 internal_out(internal) cstring if
1160 interval_in(cstring,oid,int4) interval sf
1161 interval_out(interval) cstring sf
2478 interval_recv(internal,oid,int4) interval if
2479 interval_send(interval) bytea if
321 json_in(cstring) json if
322 json_out(json) cstring if
323 json_recv(internal) json if
324 json_send(json) bytea if
3806 jsonb_in(cstring) jsonb if
3804 jsonb_out(jsonb) cstring if
3805 jsonb_recv(internal) jsonb if
3803 jsonb_send(jsonb) bytea if
34 namein(cstring) name if
35 nameout(name) cstring if
2422 namerecv(internal) name sf
2423 namesend(name) bytea sf
1701 numeric_in(cstring,oid,int4) numeric if
1702 numeric_out(numeric) cstring if
2460 numeric_recv(internal,oid,int4) numeric if
2461 numeric_send(numeric) bytea if
1798 oidin(cstring) oid if
1799 oidout(oid) cstring if
2418 oidrecv(internal) oid if
2419 oidsend(oid) bytea if
54 oidvectorin(cstring) oidvector if
55 oidvectorout(oidvector) cstring if
2420 oidvectorrecv(internal) oidvector if
2421 oidvectorsend(oidvector) bytea if
2290 record_in(cstring,oid,int4) record sf
2291 record_out(record) cstring sf
2402 record_recv(internal,oid,int4) record sf
2403 record_send(record) bytea sf
2218 regclassin(cstring) regclass sf
2219 regclassout(regclass) cstring sf
2452 regclassrecv(internal) regclass if
2453 regclasssend(regclass) bytea if
4084 regnamespacein(cstring) regnamespace sf
4085 regnamespaceout(regnamespace) cstring sf
4087 regnamespacerecv(internal) regnamespace if
4088 regnamespacesend(regnamespace) bytea if
2216 regoperatorin(cstring) regoperator sf
2217 regoperatorout(regoperator) cstring sf
2450 regoperatorrecv(internal) regoperator if
2451 regoperatorsend(regoperator) bytea if
2212 regprocedurein(cstring) regprocedure sf
2213 regprocedureout(regprocedure) cstring sf
2446 regprocedurerecv(internal) regprocedure if
2447 regproceduresend(regprocedure) bytea if
44 regprocin(cstring) regproc sf
45 regprocout(regproc) cstring sf
2444 regprocrecv(internal) regproc if
2445 regprocsend(regproc) bytea if
4098 regrolein(cstring) regrole sf
4092 regroleout(regrole) cstring sf
4094 regrolerecv(internal) regrole if
4095 regrolesend(regrole) bytea if
2220 regtypein(cstring) regtype sf
2221 regtypeout(regtype) cstring sf
2454 regtyperecv(internal) regtype if
2455 regtypesend(regtype) bytea if
46 textin(cstring) text if
47 textout(text) cstring if
2414 textrecv(internal) text sf
2415 textsend(text) bytea sf
1143 time_in(cstring,oid,int4) time sf
1144 time_out(time) cstring if
2470 time_recv(internal,oid,int4) time if
2471 time_send(time) bytea if
1312 timestamp_in(cstring,oid,int4) timestamp sf
1313 timestamp_out(timestamp) cstring sf
2474 timestamp_recv(internal,oid,int4) timestamp if
2475 timestamp_send(timestamp) bytea if
1150 timestamptz_in(cstring,oid,int4) timestamptz sf
1151 timestamptz_out(timestamptz) cstring sf
2476 timestamptz_recv(internal,oid,int4) timestamptz if
2477 timestamptz_send(timestamptz) bytea if
2300 trigger_in(cstring) trigger if
2301 trigger_out(trigger) cstring if
109 unknownin(cstring) unknown if
110 unknownout(unknown) cstring if
2416 unknownrecv(internal) unknown if
2417 unknownsend(unknown) bytea if
2952 uuid_in(cstring) uuid if
2953 uuid_out(uuid) cstring if
2961 uuid_recv(internal) uuid if
2962 uuid_send(uuid) bytea if
1046 varcharin(cstring,oid,int4) varchar if
1047 varcharout(varchar) cstring if
2432 varcharrecv(internal,oid,int4) varchar sf
2433 varcharsend(varchar) bytea sf
2298 void_in(cstring) void if
2299 void_out(void) cstring if
3120 void_recv(internal) void if
3121 void_send(void) bytea if
";
