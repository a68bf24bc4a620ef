//! Encodings by number and name. Kiln supports only UTF-8; the other names are for clients that ask for them.

use super::function_declaration::{FunctionDeclaration, function};
use crate::row_builder::Cell;
use functions::catalog_entry;

/// PostgreSQL's encodings, in the order of their numbers.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("pg_encoding_to_char", "convert encoding id to encoding name", 1..=1, "name", |call| {
        let at = usize::try_from(call.number(0)?).ok();
        Ok(at.and_then(|at| ENCODINGS.get(at)).copied().unwrap_or("").into())
    })
    .in_catalog(&[catalog_entry(1597, "int4", "name").stable()]),
    function("pg_char_to_encoding", "convert encoding name to encoding id", 1..=1, "int4", |call| {
        let wanted: String = call.text(0).chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let wanted = if wanted.eq_ignore_ascii_case("unicode") { "utf8".to_owned() } else { wanted };
        let same = |name: &&str| name.replace('_', "").eq_ignore_ascii_case(&wanted);
        Ok(ENCODINGS.iter().position(same).map_or(Cell::Int(-1), Cell::from))
    })
    .in_catalog(&[catalog_entry(1264, "name", "int4").stable()]),
    function("getdatabaseencoding", "encoding name of current database", 0..=0, "name", |_| Ok("UTF8".into()))
        .in_catalog(&[catalog_entry(1039, "", "name").stable()]),
    function("pg_client_encoding", "encoding name of current client", 0..=0, "name", |_| Ok("UTF8".into()))
        .in_catalog(&[catalog_entry(810, "", "name").stable()]),
];
