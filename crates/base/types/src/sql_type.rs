//! SQL types with PostgreSQL's names, OIDs and modifiers.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new type must not compile until each property says what it is for it"
)]

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A SQL type with its modifiers. `Display` prints it as PostgreSQL's `format_type` does: `numeric(12,2)`,
/// `character varying(20)`, `integer[]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SqlType {
    Bool,
    Int2,
    Int4,
    Int8,
    /// `numeric` with precision 1–38 and scale 0–precision; `numeric` without modifiers is (38,10).
    Numeric {
        precision: u8,
        scale: u8,
    },
    Float4,
    Float8,
    Text,
    /// `varchar` with the maximum number of characters; `None` is unlimited, like `text`.
    Varchar(Option<u32>),
    /// `char` with the exact number of characters, blank-padded; trailing blanks are insignificant. `None` is
    /// PostgreSQL's `bpchar` of any length.
    Char(Option<u32>),
    Date,
    /// `time`: microseconds since midnight.
    Time,
    /// `timestamp`: microseconds since 1970-01-01, without a zone.
    Timestamp,
    /// `timestamptz`: microseconds since 1970-01-01 UTC.
    TimestampTz,
    /// `interval`: separate months, days and microseconds.
    Interval,
    Bytea,
    Uuid,
    Json,
    Jsonb,
    /// One-dimensional array of an element type.
    Array(Box<SqlType>),
    /// `oid`. It and the following types occur only in system tables.
    Oid,
    Name,
    InternalChar,
    Regclass,
    Regtype,
    Regproc,
    Regnamespace,
    Regrole,
    Regprocedure,
    Regoperator,
    /// `int2vector`: array of `int2` that prints as `1 2`, with subscripts from 0.
    Int2Vector,
    /// `oidvector`: array of `oid` that prints as `23 25`, with subscripts from 0.
    OidVector,
    /// Untyped literal or parameter whose type is not resolved yet.
    Unknown,
}

/// Group of types whose values are alike, so that they are treated alike in most places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeGroup {
    Boolean,
    /// `int2`, `int4`, `int8`.
    Integer,
    Numeric,
    /// `float4`, `float8`.
    Float,
    /// Text of any characters: `text`, `varchar`, `char`, `name`.
    Text,
    /// `"char"`, a single byte.
    InternalChar,
    Date,
    Time,
    /// `timestamp`, `timestamptz`.
    Timestamp,
    Interval,
    Bytea,
    Uuid,
    /// `json`, `jsonb`.
    Json,
    Array,
    /// `int2vector`, `oidvector`.
    Vector,
    Oid,
    /// OIDs of catalog objects that are printed as names: `regclass` and similar types.
    RegType,
    /// Untyped literals and parameters, represented as text.
    Unknown,
}

/// Scale of `numeric` without precision and scale.
pub const BARE_NUMERIC_SCALE: u8 = 10;
/// Maximum precision of `numeric`.
pub const NUMERIC_PRECISION_MAX: u8 = 38;

/// Pattern of the types without modifiers and elements.
macro_rules! plain_scalar {
    () => {
        SqlType::Bool
            | SqlType::Int2
            | SqlType::Int4
            | SqlType::Int8
            | SqlType::Float4
            | SqlType::Float8
            | SqlType::Text
            | SqlType::Date
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Interval
            | SqlType::Bytea
            | SqlType::Uuid
            | SqlType::Json
            | SqlType::Jsonb
            | SqlType::Oid
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator
            | SqlType::Unknown
    };
}

impl SqlType {
    /// The type `numeric` without precision and scale.
    pub const BARE_NUMERIC: SqlType = SqlType::Numeric { precision: NUMERIC_PRECISION_MAX, scale: BARE_NUMERIC_SCALE };

    /// Returns the type's OID in PostgreSQL's `pg_type`.
    #[must_use]
    pub fn oid(&self) -> u32 {
        self.entry().oid
    }

    /// Returns the OID of the array type of this type; 0 for an array.
    #[must_use]
    pub fn array_oid(&self) -> u32 {
        self.entry().array_oid
    }

    /// Returns `pg_type.typname`, such as `int4`, `bpchar` or `_text`.
    #[must_use]
    pub fn typname(&self) -> String {
        match self {
            SqlType::Array(element) => format!("_{}", element.typname()),
            plain_scalar!()
            | SqlType::Numeric { .. }
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Int2Vector
            | SqlType::OidVector => self.entry().typname.to_owned(),
        }
    }

    /// Returns `pg_type.typlen`: the length in bytes, or -1 for variable length.
    #[must_use]
    pub fn typlen(&self) -> i16 {
        self.entry().typlen
    }

    /// Returns PostgreSQL's `atttypmod`, or -1 if the type has no modifier.
    #[must_use]
    pub fn typmod(&self) -> i32 {
        match self {
            // Bare numeric is stored as (38,10) but reported as PostgreSQL reports `numeric`.
            SqlType::Numeric { .. } if *self == Self::BARE_NUMERIC => -1,
            SqlType::Numeric { precision, scale } => ((i32::from(*precision) << 16) | i32::from(*scale)) + 4,
            SqlType::Varchar(Some(length)) | SqlType::Char(Some(length)) => {
                i32::try_from(*length).unwrap_or(i32::MAX - 4) + 4
            }
            SqlType::Array(element) => element.typmod(),
            plain_scalar!()
            | SqlType::Varchar(None)
            | SqlType::Char(None)
            | SqlType::Int2Vector
            | SqlType::OidVector => -1,
        }
    }

    /// Returns the type with OID `oid` and modifier `typmod` (-1 for none); `None` if Kiln does not have it.
    #[must_use]
    pub fn from_oid(oid: u32, typmod: i32) -> Option<SqlType> {
        let unmodified = SCALARS.iter().find_map(|sql_type| {
            let entry = sql_type.entry();
            if entry.oid == oid {
                Some(sql_type.clone())
            } else if entry.array_oid == oid && oid != 0 {
                Some(SqlType::Array(Box::new(sql_type.clone())))
            } else {
                None
            }
        })?;
        Some(unmodified.with_typmod(typmod))
    }

    /// Applies PostgreSQL's type modifier; returns the type unchanged if it takes none or `typmod` is -1.
    #[must_use]
    pub fn with_typmod(self, typmod: i32) -> SqlType {
        if typmod < 4 {
            return self;
        }
        let modifier = u32::try_from(typmod - 4).expect("typmod is at least 4 here");
        match self {
            SqlType::Numeric { .. } => SqlType::Numeric {
                precision: u8::try_from(modifier >> 16).unwrap_or(NUMERIC_PRECISION_MAX).min(NUMERIC_PRECISION_MAX),
                scale: u8::try_from(modifier & 0xffff).unwrap_or(NUMERIC_PRECISION_MAX).min(NUMERIC_PRECISION_MAX),
            },
            SqlType::Varchar(_) => SqlType::Varchar(Some(modifier)),
            SqlType::Char(_) => SqlType::Char(Some(modifier)),
            SqlType::Array(element) => SqlType::Array(Box::new(element.with_typmod(typmod))),
            other @ (plain_scalar!() | SqlType::Int2Vector | SqlType::OidVector) => other,
        }
    }

    /// Returns the type without length, precision and scale, which an untyped literal or parameter takes from a value
    /// of this type.
    #[must_use]
    pub fn without_modifier(&self) -> SqlType {
        match self {
            SqlType::Numeric { .. } => SqlType::BARE_NUMERIC,
            SqlType::Varchar(_) => SqlType::Varchar(None),
            SqlType::Char(_) => SqlType::Char(None),
            SqlType::Array(element) => SqlType::Array(Box::new(element.without_modifier())),
            other @ (plain_scalar!() | SqlType::Int2Vector | SqlType::OidVector) => other.clone(),
        }
    }

    /// Returns the group of the type. Every other question about the kind of its values is answered by the group.
    #[must_use]
    pub fn group(&self) -> TypeGroup {
        match self {
            SqlType::Bool => TypeGroup::Boolean,
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => TypeGroup::Integer,
            SqlType::Numeric { .. } => TypeGroup::Numeric,
            SqlType::Float4 | SqlType::Float8 => TypeGroup::Float,
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => TypeGroup::Text,
            SqlType::InternalChar => TypeGroup::InternalChar,
            SqlType::Date => TypeGroup::Date,
            SqlType::Time => TypeGroup::Time,
            SqlType::Timestamp | SqlType::TimestampTz => TypeGroup::Timestamp,
            SqlType::Interval => TypeGroup::Interval,
            SqlType::Bytea => TypeGroup::Bytea,
            SqlType::Uuid => TypeGroup::Uuid,
            SqlType::Json | SqlType::Jsonb => TypeGroup::Json,
            SqlType::Array(_) => TypeGroup::Array,
            SqlType::Int2Vector | SqlType::OidVector => TypeGroup::Vector,
            SqlType::Oid => TypeGroup::Oid,
            SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator => TypeGroup::RegType,
            SqlType::Unknown => TypeGroup::Unknown,
        }
    }

    /// Returns the element type of an array or vector.
    #[must_use]
    pub fn element(&self) -> Option<SqlType> {
        match self {
            SqlType::Array(element) => Some(element.as_ref().clone()),
            SqlType::Int2Vector => Some(SqlType::Int2),
            SqlType::OidVector => Some(SqlType::Oid),
            plain_scalar!() | SqlType::Numeric { .. } | SqlType::Varchar(_) | SqlType::Char(_) => None,
        }
    }

    /// Whether values are represented as text: `text`, `varchar`, `char`, `name`.
    #[must_use]
    pub fn is_textual(&self) -> bool {
        matches!(self.group(), TypeGroup::Text | TypeGroup::Unknown)
    }

    /// Whether values are numbers.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        matches!(self.group(), TypeGroup::Integer | TypeGroup::Numeric | TypeGroup::Float | TypeGroup::Oid)
    }

    /// Whether values are OIDs of catalog objects that are printed as names: `regclass` and similar types.
    #[must_use]
    pub fn is_reg_type(&self) -> bool {
        self.group() == TypeGroup::RegType
    }

    /// Whether printing values requires the catalog: types printed as names of objects, and arrays of them.
    #[must_use]
    pub fn needs_catalog(&self) -> bool {
        self.element().map_or_else(|| self.is_reg_type(), |element| element.needs_catalog())
    }

    /// Whether values are OIDs, printed as numbers or names.
    #[must_use]
    pub fn is_oid(&self) -> bool {
        matches!(self.group(), TypeGroup::Oid | TypeGroup::RegType)
    }

    /// Iterates over all scalar types, without length modifiers.
    pub fn scalars() -> impl Iterator<Item = SqlType> {
        SCALARS.iter().cloned()
    }
}

#[derive(Clone, Copy)]
struct TypeEntry {
    oid: u32,
    array_oid: u32,
    typlen: i16,
    typname: &'static str,
    name: &'static str,
}

const fn type_entry(oid: u32, array_oid: u32, typlen: i16, typname: &'static str, name: &'static str) -> TypeEntry {
    TypeEntry { oid, array_oid, typlen, typname, name }
}

/// Declares the scalar types, in the order of [`SqlType::scalars`]. A variant without a line does not compile, because
/// `entry` has an arm for each line.
macro_rules! scalar_types {
    ($($variant:ident, $sql_type:expr, $entry:expr;)*) => {
        const SCALARS: &[SqlType] = &[$($sql_type),*];

        impl SqlType {
            fn entry(&self) -> TypeEntry {
                match self {
                    SqlType::Array(element) => {
                        TypeEntry { oid: element.array_oid(), array_oid: 0, typlen: -1, typname: "", name: "" }
                    }
                    $(SqlType::$variant { .. } => $entry,)*
                }
            }
        }
    };
}

// OIDs and names from PostgreSQL's `pg_type.dat`.
scalar_types! {
    Bool, SqlType::Bool, type_entry(16, 1000, 1, "bool", "boolean");
    Int2, SqlType::Int2, type_entry(21, 1005, 2, "int2", "smallint");
    Int4, SqlType::Int4, type_entry(23, 1007, 4, "int4", "integer");
    Int8, SqlType::Int8, type_entry(20, 1016, 8, "int8", "bigint");
    Numeric, SqlType::BARE_NUMERIC, type_entry(1700, 1231, -1, "numeric", "numeric");
    Float4, SqlType::Float4, type_entry(700, 1021, 4, "float4", "real");
    Float8, SqlType::Float8, type_entry(701, 1022, 8, "float8", "double precision");
    Text, SqlType::Text, type_entry(25, 1009, -1, "text", "text");
    Varchar, SqlType::Varchar(None), type_entry(1043, 1015, -1, "varchar", "character varying");
    Char, SqlType::Char(None), type_entry(1042, 1014, -1, "bpchar", "character");
    Date, SqlType::Date, type_entry(1082, 1182, 4, "date", "date");
    Time, SqlType::Time, type_entry(1083, 1183, 8, "time", "time without time zone");
    Timestamp, SqlType::Timestamp, type_entry(1114, 1115, 8, "timestamp", "timestamp without time zone");
    TimestampTz, SqlType::TimestampTz, type_entry(1184, 1185, 8, "timestamptz", "timestamp with time zone");
    Interval, SqlType::Interval, type_entry(1186, 1187, 16, "interval", "interval");
    Bytea, SqlType::Bytea, type_entry(17, 1001, -1, "bytea", "bytea");
    Uuid, SqlType::Uuid, type_entry(2950, 2951, 16, "uuid", "uuid");
    Json, SqlType::Json, type_entry(114, 199, -1, "json", "json");
    Jsonb, SqlType::Jsonb, type_entry(3802, 3807, -1, "jsonb", "jsonb");
    Oid, SqlType::Oid, type_entry(26, 1028, 4, "oid", "oid");
    Name, SqlType::Name, type_entry(19, 1003, 64, "name", "name");
    InternalChar, SqlType::InternalChar, type_entry(18, 1002, 1, "char", "\"char\"");
    Regclass, SqlType::Regclass, type_entry(2205, 2210, 4, "regclass", "regclass");
    Regtype, SqlType::Regtype, type_entry(2206, 2211, 4, "regtype", "regtype");
    Regproc, SqlType::Regproc, type_entry(24, 1008, 4, "regproc", "regproc");
    Regnamespace, SqlType::Regnamespace, type_entry(4089, 4090, 4, "regnamespace", "regnamespace");
    Regrole, SqlType::Regrole, type_entry(4096, 4097, 4, "regrole", "regrole");
    Regprocedure, SqlType::Regprocedure, type_entry(2202, 2207, 4, "regprocedure", "regprocedure");
    Regoperator, SqlType::Regoperator, type_entry(2204, 2209, 4, "regoperator", "regoperator");
    Int2Vector, SqlType::Int2Vector, type_entry(22, 1006, -1, "int2vector", "int2vector");
    OidVector, SqlType::OidVector, type_entry(30, 1013, -1, "oidvector", "oidvector");
    Unknown, SqlType::Unknown, type_entry(705, 0, -2, "unknown", "unknown");
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqlType::Array(element) => write!(f, "{element}[]"),
            SqlType::Numeric { precision, scale } if *self != Self::BARE_NUMERIC => {
                write!(f, "numeric({precision},{scale})")
            }
            SqlType::Varchar(Some(length)) => write!(f, "character varying({length})"),
            SqlType::Char(Some(length)) => write!(f, "character({length})"),
            plain_scalar!()
            | SqlType::Numeric { .. }
            | SqlType::Varchar(None)
            | SqlType::Char(None)
            | SqlType::Int2Vector
            | SqlType::OidVector => f.write_str(self.entry().name),
        }
    }
}
