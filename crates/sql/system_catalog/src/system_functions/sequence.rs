//! Functions of sequences. Only `nextval` has a DataFusion function of its own, which takes numbers for many rows at a
//! time.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, FieldRef};
use catalog::Sequence;
use datafusion::common::Result as DfResult;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use functions::catalog_entry;
use functions::external;
use session_context::StatementContext;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::{FunctionCall, to_cells};
use crate::row_builder::Cell;
use crate::row_source::{Relation, RelationObject};
use crate::table_definition::SystemTables;

/// Name of the function that returns a sequence's next number.
pub(super) const NEXTVAL: &str = "nextval";

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("currval", "sequence current value", 1..=1, "int8", |call| {
        let sequence = find_sequence(call, 0)?;
        let current = call.context.sequences.current(sequence.oid);
        current.map(Cell::Int).ok_or_else(|| {
            let message = format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name);
            SqlError::new(Condition::ObjectNotInPrerequisiteState, message)
        })
    })
    .in_catalog(&[catalog_entry(1575, "regclass", "int8").volatile()])
    .volatile(),
    function("lastval", "current value from last used sequence", 0..=0, "int8", |call| {
        let last = call.context.sequences.last().filter(|(oid, _)| call.state().sequence(*oid).is_some());
        last.map(|(_, number)| Cell::Int(number)).ok_or_else(|| {
            let message = "lastval is not yet defined in this session";
            SqlError::new(Condition::ObjectNotInPrerequisiteState, message)
        })
    })
    .in_catalog(&[catalog_entry(2559, "", "int8").volatile()])
    .volatile(),
    function("setval", "set sequence value", 2..=3, "int8", setval)
        .in_catalog(&[
            catalog_entry(1576, "regclass,int8", "int8").volatile(),
            catalog_entry(1765, "regclass,int8,bool", "int8").volatile(),
        ])
        .volatile(),
    function("pg_sequence_last_value", "sequence last value, as it is stored", 1..=1, "int8", |call| {
        let sequence = find_sequence(call, 0)?;
        let position = call.context.sequences.position(sequence);
        Ok(position.is_called.then_some(position.last_value).into())
    })
    .in_catalog(&[catalog_entry(4032, "regclass", "int8").volatile()])
    .volatile(),
    function("pg_get_serial_sequence", "name of sequence for a serial column", 2..=2, "text", serial_sequence)
        .in_catalog(&[catalog_entry(1665, "text,text", "text").stable()]),
];

fn setval(call: &FunctionCall<'_>) -> SqlResult<Cell> {
    let sequence = find_sequence(call, 0)?;
    refuse_read_only(call.context, "setval")?;
    let value = call.number(1)?;
    if !(sequence.min..=sequence.max).contains(&value) {
        let message = format!(
            "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
            sequence.name, sequence.min, sequence.max
        );
        return Err(SqlError::new(Condition::NumericValueOutOfRange, message));
    }
    call.context.sequences.set(sequence, value, call.len() < 3 || call.bool(2));
    Ok(Cell::Int(value))
}

/// Returns the qualified name of the sequence that a column owns; NULL if it owns none.
fn serial_sequence(call: &FunctionCall<'_>) -> SqlResult<Cell> {
    let Some(relation) = call.relation(0)? else { return Ok(Cell::Null) };
    let name = call.text(1);
    let missing = || {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
        SqlError::new(Condition::UndefinedColumn, message)
    };
    let RelationObject::Table(table) = relation.object else {
        let known = relation.attributes().iter().any(|attribute| attribute.name == name);
        return if known { Ok(Cell::Null) } else { Err(missing()) };
    };
    let column = table.column_by_name(name).ok_or_else(missing)?.1.id;
    let mut owned = call.state().owned_sequences(table.oid);
    let found = owned.find(|sequence| sequence.owned_by.is_some_and(|owner| owner.column == column));
    let Some(sequence) = found else { return Ok(Cell::Null) };
    let schema = crate::row_source::schema_name(call.state(), sequence.schema);
    Ok(crate::sql_text::qualified_name(schema, &sequence.name).into())
}

/// Finds the sequence of an argument and checks that the statement's role may use it.
fn find_sequence<'a>(call: &FunctionCall<'a>, at: usize) -> SqlResult<&'a Arc<Sequence>> {
    let relation = call.relation(at)?;
    let Some(relation) = relation else {
        let message = format!("could not open relation with OID {}", call.number(at)?);
        return Err(SqlError::new(Condition::UndefinedTable, message));
    };
    usable_sequence(call.context, &relation)
}

fn usable_sequence<'a>(context: &'a StatementContext, relation: &Relation<'a>) -> SqlResult<&'a Arc<Sequence>> {
    let sequence = context
        .snapshot
        .sequence(relation.oid)
        .ok_or_else(|| SqlError::new(Condition::WrongObjectType, format!("\"{}\" is not a sequence", relation.name)))?;
    if context.owns(sequence.owner) {
        return Ok(sequence);
    }
    let message = format!("permission denied for sequence {}", sequence.name);
    Err(SqlError::new(Condition::InsufficientPrivilege, message))
}

fn refuse_read_only(context: &StatementContext, function: &str) -> SqlResult<()> {
    if context.settings.get("transaction_read_only").is_ok_and(|value| value == "on") {
        let message = format!("cannot execute {function}() in a read-only transaction");
        return Err(SqlError::new(Condition::ReadOnlyTransaction, message));
    }
    Ok(())
}

/// `nextval`, bound to one statement.
pub(super) struct Nextval {
    context: Arc<StatementContext>,
    system_tables: &'static SystemTables,
    signature: Signature,
}

impl Nextval {
    pub(super) fn udf(context: &Arc<StatementContext>, system_tables: &'static SystemTables) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Volatile);
        Arc::new(ScalarUDF::from(Self { context: Arc::clone(context), system_tables, signature }))
    }

    /// Takes `count` numbers from the sequence that the cell names; `None` for NULL.
    fn next_sequence_numbers(&self, name: &Cell, count: usize) -> SqlResult<Option<Vec<i64>>> {
        if *name == Cell::Null || count == 0 {
            return Ok(None);
        }
        let arguments = std::slice::from_ref(name);
        let sequence = find_sequence(&FunctionCall::new(&self.context, self.system_tables, arguments), 0)?;
        refuse_read_only(&self.context, NEXTVAL)?;
        let numbers = self.context.sequences.next(sequence, count);
        numbers.map(Some).ok_or_else(|| {
            let (kind, limit) =
                if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
            let message = format!("nextval: reached {kind} value of sequence \"{}\" ({limit})", sequence.name);
            SqlError::new(Condition::SequenceLimitExceeded, message)
        })
    }
}

impl ScalarUDFImpl for Nextval {
    fn name(&self) -> &str {
        NEXTVAL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Int64)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::new(SqlType::Int8.arrow_field(NEXTVAL, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let count = args.number_rows;
        let mut values: Vec<Option<i64>> = Vec::with_capacity(count);
        let is_one = matches!(args.args[0], ColumnarValue::Scalar(_));
        let names = to_cells(&args.args[0].to_array(if is_one { 1 } else { count })?)?;
        // Consecutive rows with the same name take their numbers in one call.
        for run in names.chunk_by(|left, right| left == right) {
            let length = if is_one { count } else { run.len() };
            match self.next_sequence_numbers(&run[0], length).map_err(external)? {
                Some(numbers) => values.extend(numbers.into_iter().map(Some)),
                None => values.extend(std::iter::repeat_n(None, length)),
            }
        }
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        Ok(ColumnarValue::Array(values))
    }
}

impl fmt::Debug for Nextval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nextval").finish_non_exhaustive()
    }
}

// All instances in one plan are bound to the same statement and therefore equal.
impl PartialEq for Nextval {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Nextval {}

impl Hash for Nextval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NEXTVAL.hash(state);
    }
}
