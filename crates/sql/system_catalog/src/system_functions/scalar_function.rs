//! Arguments of a call of a system function, and the DataFusion function that makes the call.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature,
};
use session_context::StatementContext;
use types::{Condition, Oid, SqlError, SqlResult, SqlType};

use super::function_declaration::FunctionDeclaration;
use crate::relation_lookup::resolve_relation;
use crate::row_builder::{Cell, to_array};
use crate::row_source::{Relation, VisibleRelations};
use crate::table_definition::{SystemTables, declared_type};

/// Arguments of a call for one row, with the context of the statement.
pub(crate) struct FunctionCall<'a> {
    pub(crate) context: &'a Arc<StatementContext>,
    system_tables: &'static SystemTables,
    arguments: &'a [Cell],
}

impl<'a> FunctionCall<'a> {
    pub(super) fn new(
        context: &'a Arc<StatementContext>,
        system_tables: &'static SystemTables,
        arguments: &'a [Cell],
    ) -> Self {
        Self { context, system_tables, arguments }
    }

    pub(super) fn relations(&self) -> VisibleRelations<'a> {
        VisibleRelations { context: self.context, system_tables: self.system_tables }
    }

    pub(super) fn state(&self) -> &'a catalog::CatalogState {
        &self.context.snapshot
    }

    pub(super) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Returns an argument; NULL if the call has fewer.
    pub(super) fn cell(&self, at: usize) -> &'a Cell {
        self.arguments.get(at).unwrap_or(&Cell::Null)
    }

    pub(super) fn text(&self, at: usize) -> &'a str {
        self.cell(at).as_text().unwrap_or_default()
    }

    /// Returns an argument as a number; text is parsed.
    pub(super) fn number(&self, at: usize) -> SqlResult<i64> {
        match self.cell(at) {
            Cell::Int(value) => Ok(*value),
            Cell::Text(text) => types::text::parse_int8(text),
            Cell::Bool(value) => Ok(i64::from(*value)),
            _ => Ok(0),
        }
    }

    pub(super) fn bool(&self, at: usize) -> bool {
        match self.cell(at) {
            Cell::Bool(value) => *value,
            Cell::Text(text) => types::text::parse_bool(text).unwrap_or(false),
            _ => false,
        }
    }

    pub(super) fn oid(&self, at: usize) -> SqlResult<Oid> {
        let number = self.number(at)?;
        u32::try_from(number).map(Oid).map_err(|_| {
            SqlError::new(Condition::NumericValueOutOfRange, format!("value \"{number}\" is out of range for type oid"))
        })
    }

    /// Returns the relation of an argument of type `regclass`: by OID, or by a name that is looked up along the search
    /// path.
    pub(super) fn relation(&self, at: usize) -> SqlResult<Option<Relation<'a>>> {
        match self.cell(at) {
            Cell::Text(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                resolve_relation(self.relations(), text).map(Some)
            }
            _ => Ok(self.relations().find_by_oid(self.oid(at)?)),
        }
    }
}

/// Declared function, bound to a statement.
pub(super) struct SystemFunction {
    declaration: &'static FunctionDeclaration,
    context: Arc<StatementContext>,
    system_tables: &'static SystemTables,
    signature: Signature,
    result: SqlType,
}

impl SystemFunction {
    pub(super) fn new(
        declaration: &'static FunctionDeclaration,
        context: &Arc<StatementContext>,
        system_tables: &'static SystemTables,
    ) -> Self {
        let arities = declaration.arity.clone().map(|count| match count {
            0 => TypeSignature::Nullary,
            count => TypeSignature::Any(count),
        });
        let signature = Signature::one_of(arities.collect(), declaration.volatility);
        Self {
            declaration,
            context: Arc::clone(context),
            system_tables,
            signature,
            result: declared_type(declaration.result),
        }
    }

    fn call_row(&self, arguments: &[Cell]) -> DfResult<Cell> {
        if self.declaration.strict && arguments.contains(&Cell::Null) {
            return Ok(Cell::Null);
        }
        (self.declaration.call)(&FunctionCall::new(&self.context, self.system_tables, arguments))
            .map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

impl ScalarUDFImpl for SystemFunction {
    fn name(&self) -> &str {
        self.declaration.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.result.arrow_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::new(self.result.arrow_field(self.declaration.name, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let is_volatile = self.declaration.volatility == datafusion::logical_expr::Volatility::Volatile;
        let count = if constant && !is_volatile { 1 } else { args.number_rows };
        let columns = args
            .args
            .iter()
            .map(|argument| to_cells(&argument.to_array(count)?))
            .collect::<DfResult<Vec<Vec<Cell>>>>()?;
        let results = (0..count)
            .map(|row| {
                let arguments: Vec<Cell> = columns.iter().map(|column| column[row].clone()).collect();
                self.call_row(&arguments)
            })
            .collect::<DfResult<Vec<Cell>>>()?;
        let array = to_array(results, &self.result)?;
        if constant && !is_volatile {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// Converts the values of an Arrow array to cells.
pub(super) fn to_cells(array: &ArrayRef) -> DfResult<Vec<Cell>> {
    let data_type = array.data_type();
    Ok(match data_type {
        DataType::Null => vec![Cell::Null; array.len()],
        DataType::Boolean => array.as_boolean().iter().map(Cell::from).collect(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(array, &DataType::Utf8View)?;
            texts.as_string_view().iter().map(Cell::from).collect()
        }
        DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Float32 | DataType::Float64 => {
            let numbers = cast(array, &DataType::Float64)?;
            numbers.as_primitive::<Float64Type>().iter().map(Cell::from).collect()
        }
        DataType::List(_) => array
            .as_list::<i32>()
            .iter()
            .map(|items| items.map_or(Ok(Cell::Null), |items| to_cells(&items).map(Cell::List)))
            .collect::<DfResult<_>>()?,
        other if other.is_integer() || other.is_temporal() => {
            let numbers = cast(array, &DataType::Int64)?;
            numbers.as_primitive::<Int64Type>().iter().map(Cell::from).collect()
        }
        other => {
            let message = format!("a system function cannot take an argument of type {other}");
            return Err(DataFusionError::External(Box::new(SqlError::new(Condition::DatatypeMismatch, message))));
        }
    })
}

impl fmt::Debug for SystemFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemFunction").field("name", &self.declaration.name).finish_non_exhaustive()
    }
}

// Functions of the same name in one plan are bound to the same statement and therefore equal.
impl PartialEq for SystemFunction {
    fn eq(&self, other: &Self) -> bool {
        self.declaration.name == other.declaration.name
    }
}

impl Eq for SystemFunction {}

impl Hash for SystemFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.declaration.name.hash(state);
    }
}
