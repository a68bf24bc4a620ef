//! Digest of an expression over Arrow arrays. Only expressions that give the same result in every statement have one.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NegativeExpr,
    NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::{Digest, DigestBuilder};
use functions::function_codec::SerializedScalar;

/// Returns the digest of an expression over columns with these digests and the types in `schema`; `None` if it has
/// none.
pub(crate) fn digest(expression: &Arc<dyn PhysicalExpr>, schema: &Schema, columns: &[Digest]) -> Option<Digest> {
    let of = |part: &Arc<dyn PhysicalExpr>| digest(part, schema, columns);
    let all = |parts: &[Arc<dyn PhysicalExpr>]| parts.iter().map(of).collect::<Option<Vec<_>>>();
    if let Some(column) = expression.downcast_ref::<Column>() {
        let data_type = schema.fields().get(column.index())?.data_type();
        return Some(DigestBuilder::new("array").with(columns.get(column.index())?).with(data_type).finish());
    }
    if let Some(literal) = expression.downcast_ref::<Literal>() {
        return constant_digest(literal.value());
    }
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        // Whether it wraps around is visible only by comparison.
        let plain = BinaryExpr::new(Arc::clone(binary.left()), *binary.op(), Arc::clone(binary.right()));
        let (left, right) = (of(binary.left())?, of(binary.right())?);
        let mut sides = [left, right];
        if matches!(binary.op(), Operator::And | Operator::Or | Operator::Eq | Operator::NotEq) {
            sides.sort_unstable();
        }
        return (*binary == plain).then(|| DigestBuilder::new("binary").with(binary.op()).with(sides).finish());
    }
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        let plain = CastExpr::new(Arc::clone(cast.expr()), cast.cast_type().clone(), None);
        let inner = of(cast.expr())?;
        return (*cast == plain).then(|| DigestBuilder::new("cast").with(inner).with(cast.cast_type()).finish());
    }
    if let Some(not) = expression.downcast_ref::<NotExpr>() {
        return Some(DigestBuilder::new("not").with(of(not.arg())?).finish());
    }
    if let Some(negative) = expression.downcast_ref::<NegativeExpr>() {
        return Some(DigestBuilder::new("negative").with(of(negative.arg())?).finish());
    }
    if let Some(test) = expression.downcast_ref::<IsNullExpr>() {
        return Some(DigestBuilder::new("is null").with(of(test.arg())?).finish());
    }
    if let Some(test) = expression.downcast_ref::<IsNotNullExpr>() {
        return Some(DigestBuilder::new("is not null").with(of(test.arg())?).finish());
    }
    if let Some(list) = expression.downcast_ref::<InListExpr>() {
        let mut items = all(list.list())?;
        items.sort_unstable();
        return Some(DigestBuilder::new("in").with(of(list.expr())?).with(items).with(list.negated()).finish());
    }
    if let Some(like) = expression.downcast_ref::<LikeExpr>() {
        let flags = (like.negated(), like.case_insensitive());
        return Some(DigestBuilder::new("like").with(of(like.expr())?).with(of(like.pattern())?).with(flags).finish());
    }
    if let Some(case) = expression.downcast_ref::<CaseExpr>() {
        let some = |part: Option<&Arc<dyn PhysicalExpr>>| part.map_or(Some(None), |part| of(part).map(Some));
        let branches = case.when_then_expr().iter().map(|(when, then)| Some([of(when)?, of(then)?]));
        let branches = branches.collect::<Option<Vec<_>>>()?;
        return Some(
            DigestBuilder::new("case").with(some(case.expr())?).with(branches).with(some(case.else_expr())?).finish(),
        );
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let form = rmp_serde::to_vec(&SerializedScalar::encode_if_cacheable(call.fun())?).ok()?;
    Some(DigestBuilder::new("call").with(form).with(all(call.args())?).with(call.return_type()).finish())
}

/// Returns the digest of a constant; `None` for nested types, whose `Hash` covers too little.
fn constant_digest(value: &ScalarValue) -> Option<Digest> {
    let data_type = value.data_type();
    let is_plain = !data_type.is_nested() && !matches!(data_type, DataType::Dictionary(..));
    is_plain.then(|| DigestBuilder::new("literal").with(data_type).with(value.is_null()).with(value).finish())
}
