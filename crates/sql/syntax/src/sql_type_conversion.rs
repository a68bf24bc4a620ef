//! Conversion of parsed type names to Kiln's SQL types.

use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo};
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::{Condition, SqlError, SqlResult, SqlType};

/// Maximum length of `char(n)` and `varchar(n)`, as in PostgreSQL.
const CHARACTER_LENGTH_MAX: u64 = 10_485_760;

/// Converts a parsed type name to the SQL type that it means.
///
/// # Errors
/// `42704` for a type that does not exist, `0A000` for one that Kiln does not support, `22023` for a length or
/// precision out of range, `42601` for a modifier on a type that takes none.
pub fn sql_type(data_type: &DataType) -> SqlResult<SqlType> {
    use DataType as D;
    Ok(match data_type {
        D::Bool | D::Boolean => SqlType::Bool,
        D::SmallInt(None) | D::Int2(None) => SqlType::Int2,
        D::Int(None) | D::Integer(None) | D::Int4(None) => SqlType::Int4,
        D::BigInt(None) | D::Int8(None) => SqlType::Int8,
        D::Real | D::Float4 => SqlType::Float4,
        D::Float8 | D::DoublePrecision | D::Double(ExactNumberInfo::None) => SqlType::Float8,
        D::Float(info) => float(info)?,
        D::Numeric(info) | D::Decimal(info) | D::Dec(info) => numeric(info)?,
        D::Text => SqlType::Text,
        D::Varchar(length) | D::CharacterVarying(length) | D::CharVarying(length) => {
            SqlType::Varchar(length.as_ref().map(|length| character_length("varchar", length)).transpose()?)
        }
        D::Char(length) | D::Character(length) => {
            SqlType::Char(Some(length.as_ref().map_or(Ok(1), |length| character_length("char", length))?))
        }
        D::Date => SqlType::Date,
        D::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            check_precision(*precision, SqlType::Time)?
        }
        D::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            check_precision(*precision, SqlType::Timestamp)?
        }
        D::Timestamp(precision, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            check_precision(*precision, SqlType::TimestampTz)?
        }
        D::Time(..) => return Err(SqlError::unsupported("the type time with time zone")),
        D::Interval { fields: None, precision } => check_precision(*precision, SqlType::Interval)?,
        D::Interval { .. } => return Err(SqlError::unsupported("an interval type restricted to some fields")),
        D::Bytea => SqlType::Bytea,
        D::Uuid => SqlType::Uuid,
        D::JSON => SqlType::Json,
        D::JSONB => SqlType::Jsonb,
        D::Regclass => SqlType::Regclass,
        D::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => match sql_type(element)? {
            SqlType::Array(_) => return Err(SqlError::unsupported("an array of more than one dimension")),
            element => SqlType::Array(Box::new(element)),
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
fn type_by_name(name: &ObjectName, modifiers: &[String]) -> SqlResult<SqlType> {
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
            return Ok(SqlType::Varchar(modifier(0)?.map(|length| check_length("varchar", length)).transpose()?));
        }
        "bpchar" | "char" if modifier(0)?.is_some() => {
            return check_length("char", modifier(0)?.unwrap_or(1)).map(|length| SqlType::Char(Some(length)));
        }
        // Without a length, bpchar is not padded.
        "bpchar" => return Ok(SqlType::Text),
        _ => {}
    }
    if !modifiers.is_empty() && !matches!(typname, "timestamp" | "timestamptz" | "time" | "interval") {
        let message = format!("type modifier is not allowed for type \"{typname}\"");
        return Err(SqlError::new(Condition::SyntaxError, message));
    }
    if let Some(precision) = modifier(0)? {
        check_precision(Some(precision), SqlType::Timestamp)?;
    }
    if let Some(element) = typname.strip_prefix('_') {
        let found = SqlType::scalars().find(|sql_type| sql_type.typname() == element);
        return found.map(|element| SqlType::Array(Box::new(element))).ok_or_else(|| undefined_type(typname));
    }
    let is_quoted_char = typname == "char";
    SqlType::scalars()
        .filter(|sql_type| *sql_type != SqlType::Unknown)
        .find(
            |sql_type| if is_quoted_char { *sql_type == SqlType::InternalChar } else { sql_type.typname() == typname },
        )
        .or(match typname {
            "integer" | "int" => Some(SqlType::Int4),
            "bigint" => Some(SqlType::Int8),
            "smallint" => Some(SqlType::Int2),
            "real" => Some(SqlType::Float4),
            "boolean" => Some(SqlType::Bool),
            _ => None,
        })
        .ok_or_else(|| undefined_type(typname))
}

fn float(info: &ExactNumberInfo) -> SqlResult<SqlType> {
    match info {
        ExactNumberInfo::None => Ok(SqlType::Float8),
        ExactNumberInfo::Precision(1..=24) => Ok(SqlType::Float4),
        ExactNumberInfo::Precision(25..=53) => Ok(SqlType::Float8),
        ExactNumberInfo::Precision(0) => {
            Err(SqlError::new(Condition::InvalidParameterValue, "precision for type float must be at least 1 bit"))
        }
        _ => Err(SqlError::new(Condition::InvalidParameterValue, "precision for type float must be less than 54 bits")),
    }
}

fn numeric(info: &ExactNumberInfo) -> SqlResult<SqlType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(SqlType::BARE_NUMERIC),
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
        Some(scale) => Ok(SqlType::Numeric { precision, scale }),
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
    if length > CHARACTER_LENGTH_MAX {
        let message = format!("length for type {name} cannot exceed {CHARACTER_LENGTH_MAX}");
        return Err(SqlError::new(Condition::InvalidParameterValue, message));
    }
    Ok(u32::try_from(length).expect("a length of at most CHARACTER_LENGTH_MAX fits u32"))
}

/// Accepts only the precision 6: Kiln's times have microseconds, and fewer digits would need rounding.
fn check_precision(precision: Option<u64>, sql_type: SqlType) -> SqlResult<SqlType> {
    match precision {
        None | Some(6) => Ok(sql_type),
        Some(precision) => Err(SqlError::unsupported(format_args!("{} of precision {precision}", sql_type.typname()))),
    }
}
