//! Random queries.

use std::cell::Cell;

use super::choices::RandomChoices;
use super::tables::{Table, ValueType};

/// Maximum number of rows of a join.
const ROWS_MAX: u64 = 40_000;

pub(super) struct Generator<'a> {
    pub(super) chance: &'a RandomChoices,
    tables: &'a [Table],
    names: Cell<u32>,
}

#[derive(Debug)]
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) columns: Vec<ValueType>,
    pub(super) is_ordered: bool,
    /// Rough upper bound of its rows.
    pub(super) rows: u64,
}

/// Relations in FROM.
pub(super) struct Scope {
    pub(super) from: String,
    pub(super) is_join: bool,
    pub(super) fields: Vec<Field>,
    /// Columns of a unique key; empty if none is known.
    pub(super) key: Vec<String>,
    /// Rough number of rows.
    pub(super) rows: u64,
}

#[derive(Clone)]
pub(super) struct Field {
    pub(super) sql: String,
    pub(super) kind: ValueType,
    domain: u64,
}

impl Scope {
    pub(super) fn fields_of(&self, kind: ValueType) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.kind == kind)
    }
}

impl<'a> Generator<'a> {
    pub(super) fn new(chance: &'a RandomChoices, tables: &'a [Table]) -> Self {
        Self { chance, tables, names: Cell::new(0) }
    }

    /// Returns a query with columns of these kinds, or of any.
    pub(super) fn query(&self, depth: u32, kinds: Option<&[ValueType]>) -> Query {
        let query = match self.chance.below(10) {
            0..4 => self.rows(depth, kinds),
            4..8 => self.groups(depth, kinds),
            8 if depth != 0 => self.combined(depth, kinds),
            _ => self.windows(depth, kinds),
        };
        if self.chance.one_in(4) { self.ordered(query) } else { query }
    }

    pub(super) fn kinds(&self, kinds: Option<&[ValueType]>) -> Vec<ValueType> {
        let any = || (0..1 + self.chance.below(4)).map(|_| *self.chance.pick(&ValueType::ALL)).collect();
        kinds.map_or_else(any, <[ValueType]>::to_vec)
    }

    fn rows(&self, depth: u32, kinds: Option<&[ValueType]>) -> Query {
        let (scope, columns) = (self.relation(depth), self.kinds(kinds));
        let values = columns.iter().map(|kind| self.value(&scope, *kind, 2)).collect::<Vec<_>>();
        if !scope.key.is_empty() && self.chance.one_in(8) {
            return self.first_rows(&scope, &values, columns);
        }
        let distinct = if self.chance.one_in(4) { "DISTINCT " } else { "" };
        let sql = format!("SELECT {distinct}{} FROM {}{}", named(&values), scope.from, self.filter(&scope));
        Query { sql, columns, is_ordered: false, rows: scope.rows }
    }

    /// Returns a DISTINCT ON query: the first row for each value of a column, in a total order.
    fn first_rows(&self, scope: &Scope, values: &[String], columns: Vec<ValueType>) -> Query {
        let of = &self.chance.pick(&scope.fields).sql;
        let selected = format!("SELECT DISTINCT ON ({of}) {} FROM {}{}", named(values), scope.from, self.filter(scope));
        let order = std::iter::once(of).chain(&scope.key).map(String::as_str).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT * FROM ({selected} ORDER BY {order}) AS {}", self.name());
        Query { sql, columns, is_ordered: false, rows: scope.rows }
    }

    fn groups(&self, depth: u32, kinds: Option<&[ValueType]>) -> Query {
        let (scope, columns) = (self.relation(depth), self.kinds(kinds));
        let (mut values, mut keys, mut are_columns) = (Vec::new(), Vec::new(), true);
        for (place, kind) in columns.iter().enumerate() {
            values.push(if self.chance.one_in(2) {
                keys.push((place + 1).to_string());
                let key = self.value(&scope, *kind, 1);
                are_columns &= scope.fields_of(*kind).any(|field| field.sql == key) && !values.contains(&key);
                key
            } else {
                self.aggregate(&scope, *kind, "")
            });
        }
        let mut sql = format!("SELECT {} FROM {}{}", named(&values), scope.from, self.filter(&scope));
        if !keys.is_empty() {
            let listed = keys.join(", ");
            // PostgreSQL 15 sorts wrongly by grouping-set keys that it knows to be constant, and Kiln refuses
            // duplicate keys.
            let sets = if are_columns { self.chance.below(6) } else { 6 };
            sql += &match sets {
                0 => format!(" GROUP BY ROLLUP ({listed})"),
                1 => format!(" GROUP BY CUBE ({listed})"),
                2 => format!(" GROUP BY GROUPING SETS (({listed}), ({}), ())", keys[0]),
                _ => format!(" GROUP BY {listed}"),
            };
        }
        if self.chance.one_in(4) {
            sql += &format!(" HAVING count(*) {} {}", self.chance.pick(&["<", ">", "="]), self.chance.below(20));
        }
        Query { sql, columns, is_ordered: false, rows: scope.rows }
    }

    fn combined(&self, depth: u32, kinds: Option<&[ValueType]>) -> Query {
        let left = self.query(depth - 1, kinds);
        let right = self.query(depth - 1, Some(&left.columns));
        let operation = self.chance.pick(&["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"]);
        let sql = format!("({}) {operation} ({})", left.sql, right.sql);
        Query { sql, columns: left.columns, is_ordered: false, rows: left.rows + right.rows }
    }

    /// Returns a query that reads a WITH query twice: in a self-join or in UNION ALL.
    pub(super) fn twice(&self, depth: u32) -> Query {
        let (read, name, columns) = (self.query(depth - 1, None), self.name(), self.kinds(None));
        let (left, right) = (self.reading(&name, &read), self.reading(&name, &read));
        let selected = |scope: &Scope| {
            let values = columns.iter().map(|kind| self.value(scope, *kind, 1)).collect::<Vec<_>>();
            format!("SELECT {} FROM {}{}", named(&values), scope.from, self.filter(scope))
        };
        let (main, rows) = match self.join(&left, &right).filter(|_| self.chance.one_in(2)) {
            Some(both) => (selected(&both), both.rows),
            None => {
                let operation = self.chance.pick(&["UNION ALL", "UNION ALL", "UNION", "EXCEPT"]);
                (format!("{} {operation} {}", selected(&left), selected(&right)), left.rows + right.rows)
            }
        };
        Query { sql: format!("WITH {name} AS ({}) {main}", read.sql), columns, is_ordered: false, rows }
    }

    /// Returns a scope that reads the named query.
    fn reading(&self, query: &str, read: &Query) -> Scope {
        let name = self.name();
        Scope {
            from: format!("{query} AS {name}"),
            is_join: false,
            fields: outputs(&name, &read.columns),
            key: Vec::new(),
            rows: read.rows,
        }
    }

    /// Orders by all columns, so that rows that compare equal are equal.
    fn ordered(&self, query: Query) -> Query {
        let places = (1..=query.columns.len()).map(|place| match self.chance.below(4) {
            0 => format!("{place} DESC"),
            1 => format!("{place} NULLS FIRST"),
            _ => place.to_string(),
        });
        let places = places.collect::<Vec<_>>().join(", ");
        let limit = match self.chance.below(3) {
            0 => String::new(),
            1 => format!(" LIMIT {}", self.chance.below(50)),
            _ => format!(" LIMIT {} OFFSET {}", self.chance.below(50), self.chance.below(10)),
        };
        Query { sql: format!("{} ORDER BY {places}{limit}", query.sql), is_ordered: true, ..query }
    }

    pub(super) fn filter(&self, scope: &Scope) -> String {
        if self.chance.one_in(2) { String::new() } else { format!(" WHERE {}", self.condition(scope, 2)) }
    }

    pub(super) fn relation(&self, depth: u32) -> Scope {
        if depth != 0 && self.chance.one_in(9) { self.lateral(depth) } else { self.operand(depth) }
    }

    /// Returns an operand of a join.
    pub(super) fn operand(&self, depth: u32) -> Scope {
        match self.chance.below(8) {
            4..7 if depth != 0 => self.joined(depth),
            7 if depth != 0 => self.nested(depth),
            _ => self.table(),
        }
    }

    pub(super) fn table(&self) -> Scope {
        let table = self.chance.pick(self.tables);
        let name = self.name();
        let field = |column: &super::tables::Column| Field {
            sql: format!("{name}.{}", column.name),
            kind: column.kind,
            domain: column.domain,
        };
        let fields = table.columns.iter().map(field).collect();
        let (from, key) = (format!("{} AS {name}", table.name), vec![format!("{name}.id")]);
        Scope { from, is_join: false, fields, key, rows: table.rows }
    }

    fn nested(&self, depth: u32) -> Scope {
        let (query, name) = (self.query(depth - 1, None), self.name());
        let from = format!("({}) AS {name}", query.sql);
        Scope { from, is_join: false, fields: outputs(&name, &query.columns), key: Vec::new(), rows: query.rows }
    }

    fn joined(&self, depth: u32) -> Scope {
        let (left, right) = (self.operand(depth - 1), self.operand(depth - 1));
        self.join(&left, &right).unwrap_or(left)
    }

    /// Joins both sides on their keys; `None` if that yields too many rows.
    fn join(&self, left: &Scope, right: &Scope) -> Option<Scope> {
        let condition = self.join_condition(left, right)?;
        let kind = self.chance.pick(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let fields: Vec<Field> = left.fields.iter().chain(&right.fields).cloned().collect();
        let key = match (left.key.as_slice(), right.key.as_slice()) {
            ([], _) | (_, []) => Vec::new(),
            (left, right) => [left, right].concat(),
        };
        let scope = Scope {
            from: String::new(),
            is_join: true,
            fields,
            key,
            rows: condition.rows.max(left.rows).max(right.rows),
        };
        // PostgreSQL supports full joins on equality only.
        let more = match *kind != "FULL JOIN" && self.chance.one_in(4) {
            true => format!(" AND {}", self.condition(&scope, 0)),
            false => String::new(),
        };
        let from = format!("{} {kind} {} ON {}{more}", left.from, right_side(right), condition.sql);
        Some(Scope { from, ..scope })
    }

    /// Returns a condition on keys of both sides that does not yield too many rows.
    fn join_condition(&self, left: &Scope, right: &Scope) -> Option<JoinCondition> {
        let mut conditions = Vec::new();
        for (x, y) in left.fields.iter().flat_map(|x| right.fields.iter().map(move |y| (x, y))) {
            let rows = left.rows * right.rows / x.domain.max(y.domain).max(1);
            if x.kind == y.kind && rows <= ROWS_MAX {
                conditions.push(JoinCondition { sql: format!("{} = {}", x.sql, y.sql), rows });
            }
        }
        if conditions.is_empty() {
            return None;
        }
        let mut found = self.chance.pick(&conditions).clone();
        if self.chance.one_in(4) {
            found.sql = format!("{} AND {}", found.sql, self.chance.pick(&conditions).sql);
        }
        Some(found)
    }

    /// Returns columns of the same kind from two scopes.
    pub(super) fn keys(&self, scope: &Scope, other: &Scope) -> Option<(String, String)> {
        let pairs = scope.fields.iter().flat_map(|x| other.fields.iter().map(move |y| (x, y)));
        let pairs: Vec<_> = pairs.filter(|(x, y)| x.kind == y.kind).collect();
        (!pairs.is_empty()).then(|| {
            let (x, y) = self.chance.pick(&pairs);
            (x.sql.clone(), y.sql.clone())
        })
    }

    pub(super) fn name(&self) -> String {
        self.names.set(self.names.get() + 1);
        format!("a{}", self.names.get())
    }
}

#[derive(Clone)]
struct JoinCondition {
    sql: String,
    rows: u64,
}

/// Returns the right side of a join, in parentheses if it is a join.
fn right_side(scope: &Scope) -> String {
    if scope.is_join { format!("({})", scope.from) } else { scope.from.clone() }
}

/// Returns the columns `o1`, `o2` … of a relation.
pub(super) fn outputs(name: &str, columns: &[ValueType]) -> Vec<Field> {
    let field =
        |(place, kind): (usize, &ValueType)| Field { sql: format!("{name}.o{}", place + 1), kind: *kind, domain: 2 };
    columns.iter().enumerate().map(field).collect()
}

/// Returns the values as columns `o1`, `o2` ….
pub(super) fn named(values: &[String]) -> String {
    let named = values.iter().enumerate().map(|(place, value)| format!("{value} AS o{}", place + 1));
    named.collect::<Vec<_>>().join(", ")
}
