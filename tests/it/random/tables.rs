//! Random tables: any types, with NULLs, many rows or none, flushed, changed, deleted and unflushed.

use super::choices::RandomChoices;

/// Type of a column or expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Int,
    Long,
    Numeric,
    Float,
    Text,
    Date,
    Bool,
    /// Timestamp without time zone.
    Timestamp,
    /// Interval of days and a fraction of a day, both of one sign: equal ones have equal text.
    Interval,
    /// Numeric with more digits than 64 bits hold.
    WideNumeric,
    Real,
    Uuid,
    Bytes,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    storage: &'static str,
    cache: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: u64,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ValueType,
    /// Number of distinct values.
    pub(super) domain: u64,
    /// One row in this many is NULL; 0 for no NULLs.
    null_in: u64,
}

const WORDS: [&str; 12] = ["", "a", "ab", "green", "special", "ÜNÏ", "requests", "x_y", "50%", "the", "Forest", "zz"];

impl ValueType {
    pub(super) const ALL: [Self; 13] = [
        Self::Int,
        Self::Long,
        Self::Numeric,
        Self::Float,
        Self::Text,
        Self::Date,
        Self::Bool,
        Self::Timestamp,
        Self::Interval,
        Self::WideNumeric,
        Self::Real,
        Self::Uuid,
        Self::Bytes,
    ];

    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Int => "integer",
            Self::Long => "bigint",
            Self::Numeric => "numeric(12,2)",
            Self::Float => "float8",
            Self::Text => "text",
            Self::Date => "date",
            Self::Bool => "boolean",
            Self::Timestamp => "timestamp",
            Self::Interval => "interval",
            Self::WideNumeric => "numeric(30,4)",
            Self::Real => "real",
            Self::Uuid => "uuid",
            Self::Bytes => "bytea",
        }
    }

    /// Returns the value for a number, always the same. Sums of the floats are exact in any order.
    pub(super) fn value(self, number: u64) -> String {
        let signed = i64::try_from(number).expect("few values") - 3;
        match self {
            Self::Int => format!("({signed})"),
            Self::Long => format!("({})::bigint", if number % 5 == 4 { signed * 1_000_000_007 } else { signed }),
            Self::Numeric => format!("({}.{:02})::numeric(12,2)", signed * 13, number * 37 % 100),
            Self::Float => format!("({}.{})::float8", signed, ["0", "25", "5", "75"][number as usize % 4]),
            Self::Text => {
                let word = WORDS[number as usize % WORDS.len()];
                let behind = if number < 12 { String::new() } else { format!(" {}", number / 12) };
                format!("'{word}{behind}'::text")
            }
            Self::Date => format!("(date '1996-02-20' + {number})"),
            Self::Bool => number.is_multiple_of(2).to_string(),
            Self::Timestamp => {
                let (day, minute) = (1 + number % 28, number * 37 % 60);
                format!("timestamp '1996-{:02}-{day:02} {:02}:{minute:02}:00'", 1 + number % 12, number % 24)
            }
            Self::Interval => format!("interval '{} days {:02}:00:00'", number / 3, number % 3 * 7),
            Self::WideNumeric => {
                format!("({}.{:04})::numeric(30,4)", signed * 12_345_678_901_234, number * 371 % 10_000)
            }
            Self::Real => format!("({}.{})::real", signed, ["0", "25", "5", "75"][number as usize % 4]),
            // Half of the values have the first bit set, as they would be negative numbers.
            Self::Uuid => {
                format!("'{}0000000-0000-0000-0000-{number:012x}'::uuid", ["0", "8", "f", "7"][number as usize % 4])
            }
            Self::Bytes => format!("'\\x{}'::bytea", "0a".repeat(number as usize % 3) + &format!("{number:04x}")),
        }
    }
}

impl Column {
    fn any(chance: &RandomChoices, number: usize, kind: ValueType) -> Self {
        let domain = match kind {
            ValueType::Bool => 2,
            _ => *chance.pick(&[2, 9, 40, 700]),
        };
        let name =
            format!("{}{number}", ["i", "l", "n", "f", "x", "d", "b", "m", "s", "w", "r", "u", "y"][kind as usize]);
        Self { name, kind, domain, null_in: *chance.pick(&[0, 0, 10, 3]) }
    }

    fn value(&self, chance: &RandomChoices) -> String {
        match self.null_in {
            1.. if chance.one_in(self.null_in) => "NULL".to_owned(),
            _ => self.kind.value(chance.below(self.domain)),
        }
    }
}

impl Table {
    pub(super) fn any(chance: &RandomChoices, number: usize) -> Self {
        let mut columns = vec![Column { name: "id".to_owned(), kind: ValueType::Long, domain: 0, null_in: 0 }];
        let extra = 2 + chance.below(4) as usize;
        let kinds =
            [ValueType::Int, ValueType::Text].into_iter().chain((0..extra).map(|_| *chance.pick(&ValueType::ALL)));
        columns.extend(kinds.enumerate().map(|(number, kind)| Column::any(chance, number, kind)));
        let rows = if number == 0 { 5_000 } else { *chance.pick(&[0, 1, 30, 700, 2_500]) };
        columns[0].domain = rows.max(1);
        let storage = chance.pick(&["hybrid", "column", "row"]);
        let cache = ["normal", "pin", "never"][number % 3];
        Self { name: format!("t{number}"), storage, cache, columns, rows }
    }

    /// Returns the statements that create and fill the table on Kiln or PostgreSQL.
    pub(super) fn statements(&self, chance: &RandomChoices, is_kiln: bool) -> Vec<String> {
        let columns = self.columns.iter().map(|column| format!("{} {}", column.name, column.kind.sql()));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let kilns = format!(" WITH (storage = {}, cache = {})", self.storage, self.cache);
        let storage = if is_kiln { kilns } else { String::new() };
        let name = &self.name;
        let mut statements = vec![format!("CREATE TABLE {name} ({columns}){storage}")];
        let late = self.rows / 10;
        statements.extend(self.inserts(chance, 0, self.rows - late));
        statements.push(format!("VACUUM {name}"));
        let changed = &self.columns[1];
        statements.push(format!("UPDATE {name} SET {} = {} WHERE id % 6 = 1", changed.name, changed.value(chance)));
        statements.push(format!("DELETE FROM {name} WHERE id % 7 = {}", chance.below(9)));
        statements.extend(self.inserts(chance, self.rows - late, self.rows));
        if !is_kiln {
            statements.push(format!("ANALYZE {name}"));
        }
        statements
    }

    fn inserts(&self, chance: &RandomChoices, first: u64, end: u64) -> Vec<String> {
        let row = |id: u64| {
            let rest = self.columns[1..].iter().map(|column| column.value(chance));
            let values = std::iter::once(id.to_string()).chain(rest).collect::<Vec<_>>();
            format!("({})", values.join(", "))
        };
        let batches = (first..end).step_by(500).map(|start| start..end.min(start + 500));
        batches
            .map(|ids| format!("INSERT INTO {} VALUES {}", self.name, ids.map(row).collect::<Vec<_>>().join(", ")))
            .collect()
    }
}
