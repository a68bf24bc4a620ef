//! Errors for clients: a named condition, a message and PostgreSQL's error fields.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result of an operation whose failure is reported to a client.
pub type SqlResult<T> = Result<T, SqlError>;

/// Error condition of PostgreSQL's appendix A, by name. Its SQLSTATE is [`Condition::sqlstate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Condition {
    /// No error: the condition of a plain notice.
    SuccessfulCompletion,
    SyntaxError,
    UndefinedTable,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedParameter,
    DuplicateTable,
    DuplicateColumn,
    DuplicateObject,
    DuplicateSchema,
    DuplicateAlias,
    AmbiguousColumn,
    AmbiguousFunction,
    DatatypeMismatch,
    IndeterminateDatatype,
    CannotCoerce,
    GroupingError,
    WindowingError,
    InvalidColumnReference,
    InvalidTableDefinition,
    InvalidObjectDefinition,
    InvalidName,
    InvalidForeignKey,
    NameTooLong,
    ReservedName,
    WrongObjectType,
    InvalidTextRepresentation,
    InvalidBinaryRepresentation,
    NumericValueOutOfRange,
    DivisionByZero,
    InvalidDatetimeFormat,
    DatetimeFieldOverflow,
    IntervalFieldOverflow,
    InvalidTimeZone,
    StringDataRightTruncation,
    SubstringError,
    CharacterNotInRepertoire,
    InvalidParameterValue,
    InvalidEscapeSequence,
    SequenceLimitExceeded,
    GeneratedAlways,
    InvalidRegularExpression,
    InvalidRowCountInLimit,
    InvalidRowCountInOffset,
    InvalidPrecedingOrFollowingSize,
    InvalidArgumentForLogarithm,
    InvalidArgumentForPower,
    NullValueNotAllowed,
    BadCopyFileFormat,
    CardinalityViolation,
    NotNullViolation,
    UniqueViolation,
    ForeignKeyViolation,
    CheckViolation,
    DependentObjectsStillExist,
    InFailedTransaction,
    ActiveTransaction,
    NoActiveTransaction,
    ReadOnlyTransaction,
    InvalidSavepoint,
    SerializationFailure,
    DeadlockDetected,
    LockNotAvailable,
    InsufficientPrivilege,
    InvalidAuthorization,
    InvalidPassword,
    UndefinedDatabase,
    UndefinedSchema,
    UndefinedFile,
    FeatureNotSupported,
    InvalidCursorName,
    DuplicatePreparedStatement,
    DuplicateCursor,
    UndefinedPreparedStatement,
    OutOfMemory,
    DiskFull,
    TooManyConnections,
    ConfigurationLimitExceeded,
    ProgramLimitExceeded,
    StatementTooComplex,
    TooManyColumns,
    TooManyArguments,
    QueryCanceled,
    AdminShutdown,
    IdleInTransactionSessionTimeout,
    IdleSessionTimeout,
    CannotConnectNow,
    ProtocolViolation,
    ConnectionFailure,
    ObjectNotInPrerequisiteState,
    ObjectInUse,
    /// The requested historical state is older than the retention.
    SnapshotTooOld,
    CantChangeRuntimeParam,
    IoError,
    DataCorrupted,
    InternalError,
}

/// An error with the fields that a PostgreSQL client can show. Create it with [`SqlError::new`] and add fields with the
/// `with_` methods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlError {
    pub condition: Condition,
    /// Primary message: one lowercase fragment, in PostgreSQL's words if PostgreSQL has the error.
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Character position in the statement's text, from 1.
    pub position: Option<u32>,
    /// Context of the error, such as file, line and column in COPY.
    pub context: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    pub constraint: Option<String>,
}

impl SqlError {
    /// Creates an error with a condition and a message.
    #[must_use]
    pub fn new(condition: Condition, message: impl Into<String>) -> Self {
        Self {
            condition,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            constraint: None,
        }
    }

    /// Creates the error `0A000` for a feature that Kiln does not support.
    #[must_use]
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(Condition::FeatureNotSupported, format!("{what} is not supported"))
    }

    /// Creates the error `XX000` for a bug in Kiln.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Condition::InternalError, message)
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the character position in the statement, from 1, unless a more exact one is already set.
    #[must_use]
    pub fn with_position(mut self, position: u32) -> Self {
        self.position.get_or_insert(position);
        self
    }

    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    #[must_use]
    pub fn with_table(mut self, schema: impl Into<String>, table: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self.table = Some(table.into());
        self
    }

    #[must_use]
    pub fn with_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    #[must_use]
    pub fn with_constraint(mut self, constraint: impl Into<String>) -> Self {
        self.constraint = Some(constraint.into());
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}
