//! `docs/reference/errors.md`: every condition with its SQLSTATE, its meaning and what to do.

use std::collections::BTreeMap;

use generated_docs::{check_page, inline_code, markdown_table};

use crate::Condition;

const INTRODUCTION: &str = "\
Every error has a SQLSTATE, a code of five characters. Programs decide by it; texts may change. The codes are PostgreSQL's, so drivers and libraries know them.

- psql shows the code with `\\set VERBOSITY verbose`, or after an error with `\\errverbose`.
- A transaction that failed must be rolled back. Repeat it only after class `40`, or where the table below says so.
- Failures of the server, its storage and its workers are explained in [troubleshooting.md](../operations/troubleshooting.md).";

/// Titles of the classes of SQLSTATEs in PostgreSQL's appendix A.
const CLASSES: &[(&str, &str)] = &[
    ("00", "successful completion"),
    ("08", "connection exception"),
    ("0A", "feature not supported"),
    ("21", "cardinality violation"),
    ("22", "data exception"),
    ("23", "integrity constraint violation"),
    ("25", "invalid transaction state"),
    ("26", "invalid SQL statement name"),
    ("28", "invalid authorization specification"),
    ("2B", "dependent objects still exist"),
    ("34", "invalid cursor name"),
    ("3B", "savepoint exception"),
    ("3D", "invalid catalog name"),
    ("3F", "invalid schema name"),
    ("40", "transaction rollback"),
    ("42", "syntax error or access rule violation"),
    ("53", "insufficient resources"),
    ("54", "program limit exceeded"),
    ("55", "object not in prerequisite state"),
    ("57", "operator intervention"),
    ("58", "system error"),
    ("72", "snapshot failure"),
    ("XX", "internal error"),
];

/// Declares the meaning and the advice of each condition, and the list of all: a condition without a line does not compile.
macro_rules! advice {
    ($($condition:ident: $meaning:literal, $advice:literal;)*) => {
        const ALL: &[Condition] = &[$(Condition::$condition),*];

        fn advice(condition: Condition) -> (&'static str, &'static str) {
            match condition {
                $(Condition::$condition => ($meaning, $advice),)*
            }
        }
    };
}

advice! {
    SuccessfulCompletion: "no error; the code of notices", "nothing";
    SyntaxError: "the text is no statement of Kiln's grammar", "look at the position in the error, and at the statement's [page](README.md)";
    UndefinedTable: "no such table, view, index or sequence", "correct the name, name the schema, or set `search_path`";
    UndefinedColumn: "no such column", "correct the name or the alias; names in double quotes keep their case";
    UndefinedFunction: "no function or operator takes these types", "add a cast, or correct the name";
    UndefinedObject: "no such role, type, cluster, constraint or setting", "correct the name";
    UndefinedParameter: "a parameter such as `$1` has no value", "pass as many values as the statement has parameters";
    DuplicateTable: "the schema has a table, view, index or sequence of this name", "choose another name, or write IF NOT EXISTS";
    DuplicateColumn: "a table or statement names a column twice", "remove one, or give it another name";
    DuplicateObject: "a role, cluster or constraint of this name exists", "choose another name";
    DuplicateSchema: "a schema of this name exists", "choose another name, or write IF NOT EXISTS";
    DuplicateAlias: "FROM names two tables alike", "give one of them an alias";
    AmbiguousColumn: "several tables of the query have this column", "write the table before it: `t.a`";
    AmbiguousFunction: "several functions have this name", "name the argument types as well";
    DatatypeMismatch: "a value has a type that its place does not accept", "add a cast";
    IndeterminateDatatype: "the type of a parameter or value cannot be derived", "add a cast, such as `$1::bigint`";
    CannotCoerce: "no cast leads from one type to the other", "cast through `text`, or choose another type";
    GroupingError: "a column is neither grouped nor aggregated, or an aggregate is at a wrong place", "add the column to GROUP BY; move conditions on aggregates to HAVING";
    WindowingError: "a window function is at a wrong place, or its window is invalid", "compute it in a subquery and refer to its result";
    InvalidColumnReference: "ORDER BY, GROUP BY, DISTINCT ON or ON CONFLICT refers to what is not there", "name a column of the select list, or a unique key";
    InvalidTableDefinition: "a table or view cannot be defined so", "read the message; a table has one primary key";
    InvalidObjectDefinition: "a default, constraint or definition is contradictory", "read the message";
    InvalidName: "a name or file path has the wrong form", "write an absolute path, or a name as in SQL";
    InvalidForeignKey: "the referenced columns are no unique key", "declare a primary or unique key on them";
    NameTooLong: "the name of a cluster is too long", "choose a shorter one";
    ReservedName: "the name is reserved", "choose a name that does not begin with `pg_`";
    WrongObjectType: "the object is of another kind, such as a view in place of a table", "use the statement for that kind";
    InvalidTextRepresentation: "a text is no value of the type", "correct the value";
    InvalidBinaryRepresentation: "bytes are no value of the type", "correct the program that sends them; see binary COPY and parameters";
    NumericValueOutOfRange: "a number does not fit its type", "choose a larger type ([types.md](types.md)), or round";
    DivisionByZero: "division by zero", "divide by `nullif(x, 0)`";
    InvalidDatetimeFormat: "a text is no date or time", "write it as `2026-01-31` or `2026-01-31 12:00:00`";
    DatetimeFieldOverflow: "a date or time, or a field of it, is out of range", "correct the value; check `DateStyle` for the order of day and month";
    IntervalFieldOverflow: "a field of an interval is out of range", "correct the value";
    InvalidTimeZone: "the offset of a time zone is out of range", "correct it; names are in `pg_timezone_names`";
    StringDataRightTruncation: "a text is longer than its column", "shorten it, or use `text`";
    SubstringError: "the length of a substring is negative", "correct the length";
    CharacterNotInRepertoire: "bytes are not valid UTF-8, or are zero", "convert the text to UTF-8";
    InvalidParameterValue: "an argument, option or setting has an invalid value", "read the message; HINT lists the values where they are few";
    InvalidEscapeSequence: "an escape in a pattern or text is incomplete", "correct it; LIKE takes `ESCAPE ''` for none";
    SequenceLimitExceeded: "a sequence has reached its last value", "ALTER SEQUENCE with CYCLE, RESTART or another MAXVALUE";
    GeneratedAlways: "a value is given for a column GENERATED ALWAYS", "leave the column out, or write OVERRIDING SYSTEM VALUE";
    InvalidRegularExpression: "a regular expression is invalid", "correct it";
    InvalidRowCountInLimit: "LIMIT is negative", "give a number from 0";
    InvalidRowCountInOffset: "OFFSET is negative", "give a number from 0";
    InvalidPrecedingOrFollowingSize: "the offset of a window frame is NULL or negative", "give a number from 0";
    InvalidArgumentForLogarithm: "logarithm of zero or of a negative number", "filter such values";
    InvalidArgumentForPower: "a power without a real value", "filter such values";
    NullValueNotAllowed: "NULL where a value is required", "give a value";
    BadCopyFileFormat: "a file of COPY does not have the format that is named", "CONTEXT has file and line; correct it or the options of [COPY](sql/copy.md)";
    CardinalityViolation: "a subquery used as a value has several rows, or a row would be changed twice", "restrict the subquery or the source";
    NotNullViolation: "NULL for a column that is NOT NULL", "give a value, or a default";
    UniqueViolation: "the key exists", "write ON CONFLICT, or correct the row; DETAIL has the key";
    ForeignKeyViolation: "the referenced row is missing, or a referenced row would go", "insert the referenced row first; DETAIL has the key";
    CheckViolation: "a row violates a CHECK constraint", "correct the row";
    DependentObjectsStillExist: "other objects depend on what is dropped", "drop them first, or write CASCADE; DETAIL lists them";
    InFailedTransaction: "an earlier statement of the transaction failed", "ROLLBACK, then repeat the transaction";
    ActiveTransaction: "the statement does not run inside a transaction block, or one is open", "COMMIT first, then run it alone";
    NoActiveTransaction: "the statement needs a transaction block", "BEGIN first";
    ReadOnlyTransaction: "a read-only transaction cannot write", "begin it READ WRITE";
    InvalidSavepoint: "no such savepoint", "correct the name";
    SerializationFailure: "a concurrent transaction changed the same rows", "repeat the transaction";
    DeadlockDetected: "transactions wait for each other", "repeat the transaction; change rows in the same order";
    LockNotAvailable: "another transaction holds the lock (`lock_timeout`, NOWAIT)", "repeat it later; `pg_stat_activity` shows who is active";
    InsufficientPrivilege: "the role may not do this", "use the owner or a superuser; see [secure.md](../operations/secure.md)";
    InvalidAuthorization: "the role does not exist or may not log in", "see [troubleshooting.md](../operations/troubleshooting.md#sqlstates)";
    InvalidPassword: "the password is wrong or has expired", "correct it; check `rolvaliduntil` in `pg_roles`";
    UndefinedDatabase: "no such database", "connect to the database `kiln`";
    UndefinedSchema: "no such schema", "correct the name, or CREATE SCHEMA";
    UndefinedFile: "a file is not there", "correct the path. If it is a file of a table, see [troubleshooting.md](../operations/troubleshooting.md#rows-cannot-be-read)";
    FeatureNotSupported: "Kiln does not have this feature", "see [postgresql-differences.md](postgresql-differences.md) for another way";
    InvalidCursorName: "no such cursor", "DECLARE it in the same transaction, or WITH HOLD";
    DuplicatePreparedStatement: "a prepared statement of this name exists", "DEALLOCATE it first";
    DuplicateCursor: "a cursor of this name is open", "CLOSE it first";
    UndefinedPreparedStatement: "no such prepared statement", "PREPARE it in this session; poolers may have given you another one";
    OutOfMemory: "the statement needs more memory than it may use", "see [troubleshooting.md](../operations/troubleshooting.md#a-statement-runs-out-of-memory)";
    DiskFull: "the disk is full, or its reserve is reached", "see [troubleshooting.md](../operations/troubleshooting.md#a-disk-is-full)";
    TooManyConnections: "the server or the role has no connection left", "end idle sessions, or use a pool; raise `--max-connections` or CONNECTION LIMIT";
    ConfigurationLimitExceeded: "a configured limit is reached: statement tokens, workers", "raise `--tokens-max`; drop clusters";
    ProgramLimitExceeded: "a fixed limit is reached, such as the size of a row or message", "split the statement or the value";
    StatementTooComplex: "the statement nests too deeply", "split it, for example with temporary tables";
    TooManyColumns: "a table has over 1,600 columns", "use fewer columns";
    TooManyArguments: "a function has too many arguments", "pass fewer arguments, or an array";
    QueryCanceled: "a cancel, or `statement_timeout`", "raise the timeout, or make the query cheaper";
    AdminShutdown: "the server, a worker or an administrator ended the session or statement", "connect again and repeat it";
    IdleInTransactionSessionTimeout: "the session idled in a transaction (`idle_in_transaction_session_timeout`)", "connect again; end transactions sooner";
    IdleSessionTimeout: "the session idled (`idle_session_timeout`)", "connect again, or raise the setting";
    CannotConnectNow: "the server starts or stops", "try again; see [troubleshooting.md](../operations/troubleshooting.md#the-server-ends-by-itself)";
    ProtocolViolation: "the client sent a message that the protocol does not allow here", "update or correct the driver";
    ConnectionFailure: "the connection is lost", "connect again; a statement token tells whether a commit happened";
    ObjectNotInPrerequisiteState: "the object is not in the state that this needs", "read the message; for a suspended cluster: ALTER CLUSTER … RESUME";
    ObjectInUse: "the object is in use, such as the current role", "use another role, or wait";
    SnapshotTooOld: "the snapshot is older than `--retention` or `max_snapshot_age`", "choose a later time; make the transaction shorter";
    CantChangeRuntimeParam: "the setting cannot be changed here", "leave it; see [settings.md](settings.md)";
    IoError: "a disk, the network, the storage or a worker failed", "repeat the statement; see the log and [troubleshooting.md](../operations/troubleshooting.md)";
    DataCorrupted: "a file does not have the checksum that it was written with", "see [troubleshooting.md](../operations/troubleshooting.md#rows-cannot-be-read)";
    InternalError: "a bug in Kiln", "report it with the statement and the line of the log";
}

/// Splits the name of a condition into words: `UndefinedTable` is "undefined table".
fn words(condition: Condition) -> String {
    let mut words = String::new();
    for letter in format!("{condition:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[test]
fn the_page_of_errors_is_that_of_the_code() {
    let mut of_class: BTreeMap<&str, Vec<Condition>> = BTreeMap::new();
    for condition in ALL {
        of_class.entry(&condition.sqlstate()[..2]).or_default().push(*condition);
    }
    let mut page = INTRODUCTION.to_owned();
    for (class, mut conditions) in of_class {
        conditions.sort_by_key(|condition| condition.sqlstate());
        let title = CLASSES.iter().find(|(other, _)| *other == class).map(|(_, title)| title);
        let title = title.unwrap_or_else(|| panic!("class {class} has no title"));
        let rows = conditions.into_iter().map(|condition| {
            let (meaning, to_do) = advice(condition);
            vec![inline_code(condition.sqlstate()), words(condition), meaning.to_owned(), to_do.to_owned()]
        });
        page.push_str(&format!("\n\n## Class {class}: {title}\n\n"));
        page.push_str(markdown_table(&["SQLSTATE", "condition", "meaning", "what to do"], rows).trim_end());
    }
    check_page("reference/errors.md", "Errors", &page);
}
