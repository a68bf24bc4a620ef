//! Conversion of parsed type names to Kiln's SQL types.

use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo};
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::{Condition, SqlError, SqlResult};

type T = types::SqlType;

/// Maximum length of `char(n)` and `varchar(n)`, as in PostgreSQL.
const LENGTH_MAX: u64 = 10_485_760;

/// Converts a parsed type name to the SQL type that it means.
///
/// # Errors
/// `42704` for a type that does not exist, `0A000` for one that Kiln does not support, `22023` for a length or
/// precision out of range, `42601` for a modifier on a type that takes none.
pub fn sql_type(data_type: &DataType) -> SqlResult<T> {
    use DataType as D;
    Ok(match data_type {
        D::Bool | D::Boolean => T::Bool,
        D::SmallInt(None) | D::Int2(None) => T::Int2,
        D::Int(None) | D::Integer(None) | D::Int4(None) => T::Int4,
        D::BigInt(None) | D::Int8(None) => T::Int8,
        D::Real | D::Float4 => T::Float4,
        D::Float8 | D::DoublePrecision | D::Double(ExactNumberInfo::None) => T::Float8,
        D::Float(info) => float(info)?,
        D::Numeric(info) | D::Decimal(info) | D::Dec(info) => numeric(info)?,
        D::Text => T::Text,
        D::Varchar(length) | D::CharacterVarying(length) | D::CharVarying(length) => {
            T::Varchar(length.as_ref().map(|length| character_length("varchar", length)).transpose()?)
        }
        D::Char(length) | D::Character(length) => {
            T::Char(Some(length.as_ref().map_or(Ok(1), |length| character_length("char", length))?))
        }
        D::Date => T::Date,
        D::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => check_precision(*precision, T::Time)?,
        D::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            check_precision(*precision, T::Timestamp)?
        }
        D::Timestamp(precision, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            check_precision(*precision, T::TimestampTz)?
        }
        D::Time(..) => return Err(SqlError::unsupported("the type time with time zone")),
        D::Interval { fields: None, precision } => check_precision(*precision, T::Interval)?,
        D::Interval { .. } => return Err(SqlError::unsupported("an interval type restricted to some fields")),
        D::Bytea => T::Bytea,
        D::Uuid => T::Uuid,
        D::JSON => T::Json,
        D::JSONB => T::Jsonb,
        D::Regclass => T::Regclass,
        D::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => match sql_type(element)? {
            T::Array(_) => return Err(SqlError::unsupported("an array of more than one dimension")),
            element => T::Array(Box::new(element)),
        },
        D::Custom(name, modifiers) => type_by_name(name, modifiers)?,
        D::Bit(_) | D::BitVarying(_) | D::VarBit(_) => return Err(SqlError::unsupported("the type bit")),
        D::TsVector | D::TsQuery | D::GeometricType(_) => {
            return Err(SqlError::unsupported(format_args!("the type {}", data_type.to_string().to_lowercase())));
        }
        other => return Err(undefined_type(&other.to_string().to_lowercase())),
    })
}

fn undefined_type(name: &str) -> SqlError {
    SqlError::new(Condition::UndefinedObject, format!("type \"{name}\" does not exist"))
}

/// Converts a type name that is no keyword to the parser: a name in `pg_type`.
fn type_by_name(name: &ObjectName, modifiers: &[String]) -> SqlResult<T> {
    let parts: Vec<String> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.to_lowercase()).collect();
    let typname = match parts.as_slice() {
        [name] => name.as_str(),
        [schema, name] if schema == "pg_catalog" => name.as_str(),
        _ => return Err(undefined_type(&parts.join("."))),
    };
    let modifier = |at: usize| -> SqlResult<Option<u64>> {
        let Some(text) = modifiers.get(at) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| {
            SqlError::new(Condition::InvalidParameterValue, format!("invalid modifier \"{text}\" of type {typname}"))
        })
    };
    match typname {
        "timetz" | "bit" | "varbit" | "money" | "inet" | "cidr" | "macaddr" | "macaddr8" | "xml" | "point" | "line"
        | "lseg" | "box" | "path" | "polygon" | "circle" | "tsvector" | "tsquery" | "jsonpath" | "int4range"
        | "int8range" | "numrange" | "tsrange" | "tstzrange" | "daterange" => {
            return Err(SqlError::unsupported(format_args!("the type {typname}")));
        }
        "numeric" | "decimal" | "dec" => {
            let info = match (modifier(0)?, modifier(1)?) {
                (Some(precision), Some(scale)) => {
                    ExactNumberInfo::PrecisionAndScale(precision, i64::try_from(scale).unwrap_or(i64::MAX))
                }
                (Some(precision), None) => ExactNumberInfo::Precision(precision),
                _ => ExactNumberInfo::None,
            };
            return numeric(&info);
        }
        "varchar" => {
            return Ok(T::Varchar(modifier(0)?.map(|length| check_length("varchar", length)).transpose()?));
        }
        "bpchar" | "char" if modifier(0)?.is_some() => {
            return check_length("char", modifier(0)?.unwrap_or(1)).map(|length| T::Char(Some(length)));
        }
        // Without a length, bpchar is not padded.
        "bpchar" => return Ok(T::Text),
        _ => {}
    }
    if !modifiers.is_empty() && !matches!(typname, "timestamp" | "timestamptz" | "time" | "interval") {
        let message = format!("type modifier is not allowed for type \"{typname}\"");
        return Err(SqlError::new(Condition::SyntaxError, message));
    }
    if let Some(precision) = modifier(0)? {
        check_precision(Some(precision), T::Timestamp)?;
    }
    if let Some(element) = typname.strip_prefix('_') {
        let found = T::scalars().find(|sql_type| sql_type.typname() == element);
        return found.map(|element| T::Array(Box::new(element))).ok_or_else(|| undefined_type(typname));
    }
    let is_quoted_char = typname == "char";
    T::scalars()
        .filter(|sql_type| *sql_type != T::Unknown)
        .find(|sql_type| if is_quoted_char { *sql_type == T::InternalChar } else { sql_type.typname() == typname })
        .or(match typname {
            "integer" | "int" => Some(T::Int4),
            "bigint" => Some(T::Int8),
            "smallint" => Some(T::Int2),
            "real" => Some(T::Float4),
            "boolean" => Some(T::Bool),
            _ => None,
        })
        .ok_or_else(|| undefined_type(typname))
}

fn float(info: &ExactNumberInfo) -> SqlResult<T> {
    match info {
        ExactNumberInfo::None => Ok(T::Float8),
        ExactNumberInfo::Precision(1..=24) => Ok(T::Float4),
        ExactNumberInfo::Precision(25..=53) => Ok(T::Float8),
        ExactNumberInfo::Precision(0) => {
            Err(SqlError::new(Condition::InvalidParameterValue, "precision for type float must be at least 1 bit"))
        }
        _ => Err(SqlError::new(Condition::InvalidParameterValue, "precision for type float must be less than 54 bits")),
    }
}

fn numeric(info: &ExactNumberInfo) -> SqlResult<T> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(T::BARE_NUMERIC),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=1000).contains(&precision) {
        let message = format!("NUMERIC precision {precision} must be between 1 and 1000");
        return Err(SqlError::new(Condition::InvalidParameterValue, message));
    }
    if !(-1000..=1000).contains(&scale) {
        let message = format!("NUMERIC scale {scale} must be between -1000 and 1000");
        return Err(SqlError::new(Condition::InvalidParameterValue, message));
    }
    let precision = u8::try_from(precision).ok().filter(|precision| *precision <= NUMERIC_PRECISION_MAX);
    let Some(precision) = precision else {
        return Err(SqlError::unsupported(format_args!("numeric of more than {NUMERIC_PRECISION_MAX} digits")));
    };
    match u8::try_from(scale).ok().filter(|scale| *scale <= precision) {
        Some(scale) => Ok(T::Numeric { precision, scale }),
        None => Err(SqlError::unsupported("a numeric scale below zero or above the precision")),
    }
}

fn character_length(name: &str, length: &CharacterLength) -> SqlResult<u32> {
    match length {
        CharacterLength::IntegerLength { length, .. } => check_length(name, *length),
        CharacterLength::Max => Err(SqlError::new(Condition::SyntaxError, "syntax error at or near \"MAX\"")),
    }
}

fn check_length(name: &str, length: u64) -> SqlResult<u32> {
    if length == 0 {
        let message = format!("length for type {name} must be at least 1");
        return Err(SqlError::new(Condition::InvalidParameterValue, message));
    }
    if length > LENGTH_MAX {
        let message = format!("length for type {name} cannot exceed {LENGTH_MAX}");
        return Err(SqlError::new(Condition::InvalidParameterValue, message));
    }
    Ok(u32::try_from(length).expect("a length of at most LENGTH_MAX fits u32"))
}

/// Accepts only the precision 6: Kiln's times have microseconds, and fewer digits would need rounding.
fn check_precision(precision: Option<u64>, sql_type: T) -> SqlResult<T> {
    match precision {
        None | Some(6) => Ok(sql_type),
        Some(precision) => Err(SqlError::unsupported(format_args!("{} of precision {precision}", sql_type.typname()))),
    }
}
