//! Inner joins of a few tables by index: the first table's rows are found by parameters, those of each other table by
//! rows found before (index nested-loop join).
//!
//! Only unflushed rows are read, so that a run never waits. Conditions choose the index ranges; the steps test them
//! again.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use catalog::{CatalogState, RowPosition, Table};
use datafusion::common::DFSchema;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use functions::error::from_datafusion;
use rowstore::{StoredColumn, Tuple, Value, decode_columns};
use scan::{Comparison, IndexAccess, LocatedRow, column_defs, comparison_of, stored_column, unflushed_in_key_order};
use storage_error::from_rowstore;
use types::{ColumnId, SqlError, SqlResult, SqlType};

use super::IndexUse;
use super::index_range::{KeyRangeRead, input_position, needed_columns};
use super::lookup_chain::{Step, StepKind};
use super::vectorized_expression::{
    Expression, compile, evaluate, is_constant, new_batch, repeat_parameters, show_expression,
};

/// Maximum number of rows that a run joins; a statement that joins more is run by its plan.
const ROWS_MAX: usize = 2048;

/// Rows of joined tables.
#[derive(Debug)]
pub(super) struct IndexJoinSource {
    /// Tables in join order.
    tables: Vec<JoinedTable>,
    constants: Vec<Expression>,
    /// Positions of the columns that are read, ascending, among the columns of all tables in the order of FROM.
    pub(super) needed: Vec<usize>,
    schema: SchemaRef,
}

/// Joined table with the index that finds its rows.
#[derive(Debug)]
struct JoinedTable {
    table: Arc<Table>,
    /// Position of the table in FROM.
    from_position: usize,
    access: IndexAccess,
    /// Conditions that `access` refers to, by number, each with the value that it compares with.
    conditions: BTreeMap<usize, ((ColumnId, Comparison), Operand)>,
    /// Columns that are read.
    columns: Vec<StoredColumn>,
}

/// Value that a key column is compared with.
#[derive(Debug)]
enum Operand {
    Constant(usize),
    /// Column of a table that is read before, by that table's position in join order.
    Column {
        read: usize,
        column: StoredColumn,
    },
}

/// Condition `column comparison other` on a column of one table.
#[derive(Debug, Clone, Copy)]
struct ColumnCondition {
    from_position: usize,
    column: ColumnId,
    comparison: Comparison,
    other: ConditionOperand,
}

/// Value that a condition compares with.
#[derive(Debug, Clone, Copy)]
enum ConditionOperand {
    Constant(usize),
    /// Column at position `at` of the table at position `named` in FROM.
    Column {
        named: usize,
        at: usize,
    },
}

/// Rows joined so far: for each, one row per table in join order.
struct PartialJoin<'a> {
    rows: Vec<Vec<&'a Tuple>>,
    key_ranges: Vec<KeyRangeRead>,
}

impl IndexJoinSource {
    /// Chooses an index for each table and a join order; `None` if some table cannot be reached by an index.
    pub(super) fn try_new(tables: &[Arc<Table>], steps: &[Step], parameters: &[Field]) -> SqlResult<Option<Self>> {
        let over = DFSchema::try_from(Arc::new(Schema::new(parameters.to_vec()))).map_err(from_datafusion)?;
        let mut constants = Vec::new();
        let conditions = collect_conditions(tables, steps, &over, &mut constants)?;
        let Some(order) = join_order(tables, &conditions) else { return Ok(None) };
        let width = tables.iter().map(|table| table.columns.len()).sum();
        let needed = needed_columns(steps, width);
        let column = |position: &usize| {
            let (named, at) = table_column_at(tables, *position).ok_or_else(|| {
                SqlError::internal("key lookup: a join condition names a column of none of the joined tables")
            })?;
            Ok((named, stored_column(&column_defs(&tables[named])[at])?))
        };
        let columns = needed.iter().map(column).collect::<SqlResult<Vec<_>>>()?;
        let fields = columns.iter().map(|(_, column)| Field::new("", column.sql_type.arrow_type(), true));
        let fields: Vec<Field> = fields.chain(parameters.iter().cloned()).collect();
        let mut read: Vec<JoinedTable> = Vec::with_capacity(order.len());
        for (named, access, of) in order {
            let mut conditions = BTreeMap::new();
            for at in access.conditions() {
                let operand = match of[at].other {
                    ConditionOperand::Constant(constant) => Operand::Constant(constant),
                    ConditionOperand::Column { named, at } => {
                        let before = read.iter().position(|table| table.from_position == named);
                        let before = before.ok_or_else(|| {
                            SqlError::internal(
                                "key lookup: an index condition uses a table that is read later in the join order",
                            )
                        })?;
                        Operand::Column { read: before, column: stored_column(&column_defs(&tables[named])[at])? }
                    }
                };
                conditions.insert(at, ((of[at].column, of[at].comparison), operand));
            }
            let columns = columns.iter().filter(|(of, _)| *of == named).map(|(_, column)| column.clone()).collect();
            read.push(JoinedTable {
                table: Arc::clone(&tables[named]),
                from_position: named,
                access,
                conditions,
                columns,
            });
        }
        Ok(Some(Self { tables: read, constants, needed, schema: Arc::new(Schema::new(fields)) }))
    }

    /// Returns the types of the columns that are read.
    pub(super) fn column_types(&self) -> Vec<DataType> {
        self.schema.fields()[..self.needed.len()].iter().map(|field| field.data_type().clone()).collect()
    }

    /// Describes the indexes and the conditions on their keys, for EXPLAIN.
    pub(super) fn index_uses(&self) -> Vec<IndexUse> {
        let condition = |table: &JoinedTable, at: usize| {
            let name = |table: &Table, column| table.column(column).map_or(String::new(), |column| column.name.clone());
            let (column, comparison) = table.conditions[&at].0;
            let other = match &table.conditions[&at].1 {
                Operand::Constant(constant) => show_expression(&self.constants[*constant]),
                Operand::Column { read, column } => {
                    let other = &self.tables[*read].table;
                    format!("{}.{}", other.name, name(other, column.id))
                }
            };
            format!("{} {comparison} {other}", name(&table.table, column))
        };
        let described = |table: &JoinedTable| {
            let conditions: Vec<String> = table.access.conditions().map(|at| condition(table, at)).collect();
            IndexUse {
                table: table.table.name.clone(),
                index: table.table.index_name(table.access.index).to_owned(),
                condition: conditions.join(" AND "),
                is_ordered: false,
            }
        };
        self.tables.iter().map(described).collect()
    }

    /// Returns the joined rows with the parameters, and the key ranges that were read; `None` if there are too many
    /// rows, or if a shard may hold some.
    pub(super) fn read(
        &self,
        view: &CatalogState,
        one: &RecordBatch,
    ) -> SqlResult<Option<(RecordBatch, Vec<KeyRangeRead>)>> {
        let constants: Vec<ArrayRef> =
            self.constants.iter().map(|constant| evaluate(constant, one)).collect::<SqlResult<_>>()?;
        let constants: Vec<Value<'_>> = constants
            .iter()
            .map(|array| Value::from_array(&**array, 0).map_err(from_rowstore))
            .collect::<SqlResult<_>>()?;
        let mut joined = PartialJoin { rows: vec![Vec::new()], key_ranges: Vec::new() };
        for table in &self.tables {
            match table.join(joined, view, &constants)? {
                Some(longer) => joined = longer,
                None => return Ok(None),
            }
        }
        let count = joined.rows.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        let mut by_name: Vec<(usize, &JoinedTable)> = self.tables.iter().enumerate().collect();
        by_name.sort_unstable_by_key(|(_, table)| table.from_position);
        for (read, table) in by_name {
            let rows = joined.rows.iter().map(|row| row[read]);
            columns.extend(decode_columns(rows, &table.columns, count).map_err(from_rowstore)?);
        }
        columns.extend(repeat_parameters(one, count)?);
        Ok(Some((new_batch(&self.schema, columns, count)?, joined.key_ranges)))
    }
}

impl JoinedTable {
    /// Extends each row joined so far by the matching rows of this table.
    fn join<'a>(
        &self,
        before: PartialJoin<'a>,
        view: &'a CatalogState,
        constants: &[Value<'_>],
    ) -> SqlResult<Option<PartialJoin<'a>>> {
        let rows = view.rows(self.table.oid);
        let PartialJoin { rows: left, key_ranges: mut asked } = before;
        let mut joined = Vec::with_capacity(left.len());
        for row in left {
            let range = self.access.range(|at| match &self.conditions[&at].1 {
                Operand::Constant(constant) => Ok(constants[*constant]),
                Operand::Column { read, column } => column.value_in(row[*read].reader()).map_err(from_rowstore),
            })?;
            // NULL equals nothing.
            let Some(range) = range else { continue };
            if range.overlapping_shards(&rows.shards.shards, self.access.columns[0]).next().is_some() {
                return Ok(None);
            }
            let room = ROWS_MAX - joined.len();
            let found: Vec<LocatedRow> =
                unflushed_in_key_order(rows, self.access.index, &range, false).take(room + 1).collect();
            if room < found.len() {
                return Ok(None);
            }
            for found in &found {
                debug_assert_eq!(found.place, RowPosition::Fresh, "no shard was asked");
                let fresh = rows.fresh_row(found.row);
                let fresh = fresh.ok_or_else(|| {
                    SqlError::internal("key lookup: an index names a row that the snapshot does not have")
                })?;
                let mut longer = Vec::with_capacity(row.len() + 1);
                longer.extend_from_slice(&row);
                longer.push(&fresh.tuple);
                joined.push(longer);
            }
            asked.push(KeyRangeRead::new(self.table.oid, self.access.index, range, found));
        }
        Ok(Some(PartialJoin { rows: joined, key_ranges: asked }))
    }
}

/// Collects the conditions on single columns from the filters before all other steps.
fn collect_conditions(
    tables: &[Arc<Table>],
    steps: &[Step],
    over: &DFSchema,
    constants: &mut Vec<Expression>,
) -> SqlResult<Vec<ColumnCondition>> {
    let mut conditions = Vec::new();
    for step in steps {
        let StepKind::Filter(filter) = &step.kind else { break };
        for conjunct in split_conjunction(filter) {
            let Expr::BinaryExpr(BinaryExpr { left, op, right }) = conjunct else { continue };
            let Some(comparison) = comparison_of(*op) else { continue };
            let column =
                |expr: &Expr| input_position(expr, step).and_then(|position| table_column_at(tables, position));
            let (constant, column, comparison) = match (column(left), column(right)) {
                (Some(column), None) if is_constant(right, over) => (right, column, comparison),
                (None, Some(column)) if is_constant(left, over) => (left, column, comparison.reversed()),
                (Some(left), Some(right)) => {
                    conditions.extend(equality_conditions(tables, *op, left, right));
                    continue;
                }
                _ => continue,
            };
            let constant = compile(constant, over)?;
            let of = constant.data_type(over.as_arrow()).map_err(from_datafusion)?;
            let (named, at) = column;
            let column = &tables[named].columns[at];
            if of == column.sql_type.arrow_type() {
                conditions.push(ColumnCondition {
                    from_position: named,
                    column: column.id,
                    comparison,
                    other: ConditionOperand::Constant(constants.len()),
                });
                constants.push(constant);
            }
        }
    }
    Ok(conditions)
}

/// Returns the condition that `left = right` puts on each side; empty for types whose equal values can have different
/// keys.
fn equality_conditions(
    tables: &[Arc<Table>],
    op: Operator,
    left: (usize, usize),
    right: (usize, usize),
) -> Vec<ColumnCondition> {
    let column = |(named, at): (usize, usize)| &tables[named].columns[at];
    let is_same = column(left).sql_type.arrow_type() == column(right).sql_type.arrow_type();
    let is_key = is_same && has_one_key(&column(left).sql_type) && has_one_key(&column(right).sql_type);
    if op != Operator::Eq || left.0 == right.0 || !is_key {
        return Vec::new();
    }
    let one = |of: (usize, usize), (named, at): (usize, usize)| ColumnCondition {
        from_position: of.0,
        column: column(of).id,
        comparison: Comparison::Equal,
        other: ConditionOperand::Column { named, at },
    };
    vec![one(left, right), one(right, left)]
}

/// Returns whether equal values of a type always have the same key: not floats with two zeros, `char` with its blanks,
/// or intervals of equal length.
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its keys are known")]
fn has_one_key(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Uuid => true,
        SqlType::Float4
        | SqlType::Float8
        | SqlType::Char(_)
        | SqlType::Interval
        | SqlType::Bytea
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_)
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
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => false,
    }
}

/// Returns the table and the column at a position among the columns of all tables.
fn table_column_at(tables: &[Arc<Table>], position: usize) -> Option<(usize, usize)> {
    let mut at = position;
    for (named, table) in tables.iter().enumerate() {
        match at.checked_sub(table.columns.len()) {
            Some(after) => at = after,
            None => return Some((named, at)),
        }
    }
    None
}

/// Table, the index that finds its rows, and the conditions that the index was chosen for.
type TableAccess = (usize, IndexAccess, Vec<ColumnCondition>);

/// Returns the tables in join order: each can be reached by index from those before it, starting with the table that
/// parameters restrict most.
fn join_order(tables: &[Arc<Table>], conditions: &[ColumnCondition]) -> Option<Vec<TableAccess>> {
    let mut first: Vec<TableAccess> =
        (0..tables.len()).filter_map(|named| choose_access(tables, conditions, named, &[])).collect();
    first.sort_by_key(|(_, access, _)| Reverse(access.rank()));
    first.into_iter().find_map(|first| {
        let mut order = vec![first];
        while order.len() < tables.len() {
            let before: Vec<usize> = order.iter().map(|(named, ..)| *named).collect();
            let left = (0..tables.len()).filter(|named| !before.contains(named));
            let reached = left.filter_map(|named| choose_access(tables, conditions, named, &before));
            let is_joined = |(_, access, of): &TableAccess| {
                access.is_unique
                    || access.conditions().any(|at| matches!(of[at].other, ConditionOperand::Column { .. }))
            };
            order.push(reached.filter(is_joined).max_by_key(|(_, access, _)| access.rank())?);
        }
        Some(order)
    })
}

/// Chooses the index that finds a table's rows by parameters and by rows of the tables `before`.
fn choose_access(
    tables: &[Arc<Table>],
    conditions: &[ColumnCondition],
    named: usize,
    before: &[usize],
) -> Option<TableAccess> {
    let is_known = |condition: &&ColumnCondition| match condition.other {
        ConditionOperand::Constant(_) => true,
        ConditionOperand::Column { named, .. } => before.contains(&named),
    };
    let of: Vec<ColumnCondition> =
        conditions.iter().filter(|condition| condition.from_position == named).filter(is_known).copied().collect();
    let known: Vec<(ColumnId, Comparison)> =
        of.iter().map(|condition| (condition.column, condition.comparison)).collect();
    IndexAccess::choose(&tables[named], &known).map(|access| (named, access, of))
}
