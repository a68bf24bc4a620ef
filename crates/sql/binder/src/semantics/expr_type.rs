//! SQL types of expressions: from their fields, with special rules for untyped literals and small integer literals.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::datatype::FieldExt;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ReturnFieldArgs};
use functions::{ResolvedFunction, UnresolvedFunction, field_type};
use types::SqlType;

/// Returns the SQL type of `expr`. Quoted literals and NULL are [`SqlType::Unknown`]; integer literals are `integer`
/// if they fit.
pub(crate) fn type_of(expr: &Expr, schema: &dyn ExprSchema) -> Result<SqlType> {
    match expr {
        Expr::Literal(value, metadata) => {
            let field = Field::new("literal", value.data_type(), true);
            let field = match metadata {
                Some(metadata) => metadata.add_to_field(field),
                None => field,
            };
            Ok(if field.metadata().is_empty() { field_type(&field, Some(value)) } else { field_type(&field, None) })
        }
        Expr::Alias(alias) => type_of(&alias.expr, schema),
        Expr::Placeholder(placeholder) if placeholder.field.is_none() => Ok(SqlType::Unknown),
        _ => Ok(field_type(field_of(expr, schema)?.as_ref(), None)),
    }
}

/// Returns the field of `expr`, except for its name and nullability. DataFusion's own function formats the name of
/// every subexpression at every level.
pub(crate) fn field_of(expr: &Expr, schema: &dyn ExprSchema) -> Result<FieldRef> {
    let of_type = |data_type: DataType| Arc::new(Field::new("", data_type, true));
    match expr {
        Expr::Alias(alias) => {
            let field = field_of(&alias.expr, schema)?;
            Ok(match &alias.metadata {
                Some(added) => {
                    let mut metadata = FieldMetadata::from(field.metadata());
                    metadata.extend(added.clone());
                    field.with_field_metadata(&metadata)
                }
                None => field,
            })
        }
        Expr::Negative(operand) => field_of(operand, schema),
        Expr::Cast(cast) if !cast.field.name().is_empty() || !cast.field.metadata().is_empty() => {
            Ok(of_type(cast.field.data_type().clone()).with_field_metadata(&FieldMetadata::from(cast.field.metadata())))
        }
        Expr::ScalarFunction(call) => {
            let function = call.func.inner();
            if let Some(resolved) = function.downcast_ref::<ResolvedFunction>() {
                return Ok(Arc::new(resolved.result_type().arrow_field("", true)));
            }
            let mut fields = call.args.iter().map(|arg| field_of(arg, schema)).collect::<Result<Vec<_>>>()?;
            if !function.is::<UnresolvedFunction>() {
                fields = fields_with_udf(&fields, call.func.as_ref())?;
            }
            let literals: Vec<Option<&ScalarValue>> = call.args.iter().map(Expr::as_literal).collect();
            let args = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &literals };
            call.func.return_field_from_args(args)
        }
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            for then in thens {
                let field = field_of(then, schema)?;
                if !field.data_type().is_null() {
                    return Ok(of_type(field.data_type().clone()));
                }
            }
            Ok(of_type(DataType::Null))
        }
        Expr::BinaryExpr(binary) if returns_boolean(binary.op) => Ok(of_type(DataType::Boolean)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let right = field_of(right, schema)?;
            // Shortcut for long chains, in which each level would visit all levels below.
            if *op == Operator::StringConcat && *right.data_type() == DataType::Utf8View {
                return Ok(of_type(DataType::Utf8View));
            }
            let left = field_of(left, schema)?;
            BinaryTypeCoercer::new(left.data_type(), op, right.data_type()).get_result_type().map(of_type)
        }
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::InList(_)
        | Expr::Between(_)
        | Expr::Like(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_) => Ok(of_type(DataType::Boolean)),
        _ => Ok(expr.to_field(schema)?.1),
    }
}

/// Returns whether an operator returns a boolean.
fn returns_boolean(operator: Operator) -> bool {
    use Operator as O;
    matches!(
        operator,
        O::And
            | O::Or
            | O::Eq
            | O::NotEq
            | O::Lt
            | O::LtEq
            | O::Gt
            | O::GtEq
            | O::IsDistinctFrom
            | O::IsNotDistinctFrom
    )
}
