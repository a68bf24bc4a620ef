//! Named conditions become the five characters of a SQLSTATE, here and nowhere else.

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use types::{Condition, QueryId, SqlError};

#[cfg(test)]
mod tests;

/// How grave a message is, in rising order; clients decide by it whether the connection lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Something the user may like to know.
    Notice,
    /// Something the user most likely did not mean.
    Warning,
    /// The statement failed.
    Error,
    /// The connection ends with this message.
    Fatal,
}

impl Severity {
    fn text(self) -> &'static str {
        match self {
            Severity::Fatal => "FATAL",
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        }
    }
}

/// The code of a condition, from PostgreSQL's appendix A.
#[must_use]
pub(crate) fn sqlstate(condition: Condition) -> &'static str {
    match condition {
        Condition::SuccessfulCompletion => "00000",
        Condition::SyntaxError => "42601",
        Condition::UndefinedTable => "42P01",
        Condition::UndefinedColumn => "42703",
        Condition::UndefinedFunction => "42883",
        Condition::UndefinedObject => "42704",
        Condition::UndefinedParameter => "42P02",
        Condition::DuplicateTable => "42P07",
        Condition::DuplicateColumn => "42701",
        Condition::DuplicateObject => "42710",
        Condition::DuplicateSchema => "42P06",
        Condition::DuplicateDatabase => "42P04",
        Condition::DuplicateAlias => "42712",
        Condition::DuplicateFunction => "42723",
        Condition::AmbiguousColumn => "42702",
        Condition::AmbiguousFunction => "42725",
        Condition::AmbiguousParameter => "42P08",
        Condition::DatatypeMismatch => "42804",
        Condition::IndeterminateDatatype => "42P18",
        Condition::CannotCoerce => "42846",
        Condition::GroupingError => "42803",
        Condition::WindowingError => "42P20",
        Condition::InvalidRecursion => "42P19",
        Condition::InvalidColumnReference => "42P10",
        Condition::InvalidTableDefinition => "42P16",
        Condition::InvalidColumnDefinition => "42611",
        Condition::InvalidObjectDefinition => "42P17",
        Condition::InvalidName => "42602",
        Condition::InvalidForeignKey => "42830",
        Condition::NameTooLong => "42622",
        Condition::ReservedName => "42939",
        Condition::WrongObjectType => "42809",
        Condition::CollationMismatch => "42P21",
        Condition::InvalidTextRepresentation => "22P02",
        Condition::InvalidBinaryRepresentation => "22P03",
        Condition::NumericValueOutOfRange => "22003",
        Condition::DivisionByZero => "22012",
        Condition::InvalidDatetimeFormat => "22007",
        Condition::DatetimeFieldOverflow => "22008",
        Condition::IntervalFieldOverflow => "22015",
        Condition::InvalidTimeZone => "22023",
        Condition::StringDataRightTruncation => "22001",
        Condition::StringDataLengthMismatch => "22026",
        Condition::SubstringError => "22011",
        Condition::CharacterNotInRepertoire => "22021",
        Condition::InvalidParameterValue => "22023",
        Condition::InvalidEscapeSequence => "22025",
        Condition::SequenceLimitExceeded => "2200H",
        Condition::GeneratedAlways => "428C9",
        Condition::InvalidRegularExpression => "2201B",
        Condition::InvalidRowCountInLimit => "2201W",
        Condition::InvalidRowCountInOffset => "2201X",
        Condition::InvalidPrecedingOrFollowingSize => "22013",
        Condition::InvalidArgumentForLogarithm => "2201E",
        Condition::InvalidArgumentForPower => "2201F",
        Condition::ArraySubscriptError => "2202E",
        Condition::NullValueNotAllowed => "22004",
        Condition::BadCopyFileFormat => "22P04",
        Condition::CardinalityViolation => "21000",
        Condition::NotNullViolation => "23502",
        Condition::UniqueViolation => "23505",
        Condition::ForeignKeyViolation => "23503",
        Condition::CheckViolation => "23514",
        Condition::RestrictViolation => "23001",
        Condition::DependentObjectsStillExist => "2BP01",
        Condition::InFailedTransaction => "25P02",
        Condition::ActiveTransaction => "25001",
        Condition::NoActiveTransaction => "25P01",
        Condition::ReadOnlyTransaction => "25006",
        Condition::InvalidSavepoint => "3B001",
        Condition::SerializationFailure => "40001",
        Condition::DeadlockDetected => "40P01",
        Condition::LockNotAvailable => "55P03",
        Condition::InsufficientPrivilege => "42501",
        Condition::InvalidAuthorization => "28000",
        Condition::InvalidPassword => "28P01",
        Condition::UndefinedDatabase => "3D000",
        Condition::UndefinedSchema => "3F000",
        Condition::UndefinedFile => "58P01",
        Condition::DuplicateFile => "58P02",
        Condition::FeatureNotSupported => "0A000",
        Condition::InvalidStatementName | Condition::UndefinedPreparedStatement => "26000",
        Condition::InvalidCursorName => "34000",
        Condition::DuplicatePreparedStatement => "42P05",
        Condition::DuplicateCursor => "42P03",
        Condition::InvalidCursorState => "24000",
        Condition::OutOfMemory => "53200",
        Condition::DiskFull => "53100",
        Condition::TooManyConnections => "53300",
        Condition::ConfigurationLimitExceeded => "53400",
        Condition::ProgramLimitExceeded => "54000",
        Condition::StatementTooComplex => "54001",
        Condition::TooManyColumns => "54011",
        Condition::TooManyArguments => "54023",
        Condition::QueryCanceled => "57014",
        Condition::AdminShutdown => "57P01",
        Condition::IdleInTransactionSessionTimeout => "25P03",
        Condition::IdleSessionTimeout => "57P05",
        Condition::CannotConnectNow => "57P03",
        Condition::ProtocolViolation => "08P01",
        Condition::ConnectionFailure => "08006",
        Condition::ObjectNotInPrerequisiteState => "55000",
        Condition::ObjectInUse => "55006",
        Condition::CantChangeRuntimeParam => "55P02",
        Condition::IoError => "58030",
        Condition::SnapshotTooOld => "72000",
        Condition::DataCorrupted => "XX001",
        Condition::ConfigFileError => "F0000",
        Condition::InternalError => "XX000",
    }
}

/// The message that tells a client of an error.
#[must_use]
pub(crate) fn error_response(severity: Severity, error: &SqlError, query_id: Option<QueryId>) -> ErrorResponse {
    let mut fields = fields(severity, error);
    // PostgreSQL names the routine of its source here; what finds the failure in Kiln's log is the statement's id.
    fields.extend(query_id.map(|id| (b'R', format!("query {id}"))));
    ErrorResponse::new(fields)
}

/// The message that tells a client something without failing.
#[must_use]
pub(crate) fn notice_response(severity: Severity, notice: &SqlError) -> NoticeResponse {
    NoticeResponse::new(fields(severity, notice))
}

fn fields(severity: Severity, error: &SqlError) -> Vec<(u8, String)> {
    let mut fields = vec![
        (b'S', severity.text().to_owned()),
        (b'V', severity.text().to_owned()),
        (b'C', sqlstate(error.condition).to_owned()),
        (b'M', without_nul(&error.message)),
    ];
    let optional = [
        (b'D', &error.detail),
        (b'H', &error.hint),
        (b'W', &error.context),
        (b's', &error.schema),
        (b't', &error.table),
        (b'c', &error.column),
        (b'n', &error.constraint),
    ];
    fields.extend(optional.into_iter().filter_map(|(code, text)| Some((code, without_nul(text.as_ref()?)))));
    fields.extend(error.position.map(|position| (b'P', position.to_string())));
    fields
}

/// A message may quote a client's own bytes, and a zero byte would end the field early.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
