//! ANY and ALL over a literal array, and arrays of a subquery.

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value,
};
use optimizer::correlated_subqueries::ARRAY_SUBQUERY;
use types::text::parse_array;

/// Rewrites ANY and ALL: `x = ANY (ARRAY[a, b])` and `x = ANY ('{a,b}')` become `x IN (a, b)`; `<> ALL` becomes NOT
/// IN. For other operators ANY becomes OR and ALL becomes AND.
pub(super) fn rewrite_any_all(expr: &mut Expr) {
    let (left, operator, right, all) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op.clone(), right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op.clone(), right, true),
        _ => return,
    };
    let Some(list) = elements(right) else { return };
    // IN cannot have an empty list: the array operator evaluates it.
    if list.is_empty() {
        return;
    }
    let left = Box::new(std::mem::replace(left.as_mut(), Expr::Value(Value::Null.into())));
    *expr = match (operator, all) {
        (BinaryOperator::Eq, false) => Expr::InList { expr: left, list, negated: false },
        (BinaryOperator::NotEq, true) => Expr::InList { expr: left, list, negated: true },
        (operator, all) => {
            let word = if all { BinaryOperator::And } else { BinaryOperator::Or };
            let one = |item| Expr::BinaryOp { left: left.clone(), op: operator.clone(), right: Box::new(item) };
            let joined = list.into_iter().map(one).reduce(|first, second| Expr::BinaryOp {
                left: Box::new(first),
                op: word.clone(),
                right: Box::new(second),
            });
            Expr::Nested(Box::new(joined.expect("the list is not empty")))
        }
    };
}

/// Returns the elements of a literal array.
fn elements(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Nested(inner) => elements(inner),
        Expr::Array(Array { elem, .. }) => Some(elem.clone()),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => {
                let mut items = Vec::new();
                let mut push = |item: Option<&str>| {
                    let literal = item.map_or(Value::Null, |item| Value::SingleQuotedString(item.to_owned()));
                    items.push(Expr::Value(literal.into()));
                    Ok(())
                };
                parse_array(text, &mut push).ok()?;
                Some(items)
            }
            _ => None,
        },
        Expr::Cast { expr, data_type: DataType::Array(element), kind, format, .. } => {
            let element = match element {
                datafusion::sql::sqlparser::ast::ArrayElemTypeDef::SquareBracket(element, _)
                | datafusion::sql::sqlparser::ast::ArrayElemTypeDef::AngleBracket(element)
                | datafusion::sql::sqlparser::ast::ArrayElemTypeDef::Parenthesis(element) => element.as_ref(),
                datafusion::sql::sqlparser::ast::ArrayElemTypeDef::None => return None,
            };
            let typed = elements(expr)?.into_iter().map(|item| Expr::Cast {
                kind: kind.clone(),
                expr: Box::new(item),
                data_type: element.clone(),
                array: false,
                format: format.clone(),
            });
            Some(typed.collect())
        }
        _ => None,
    }
}

/// Rewrites `ARRAY(query)` to a call around the query, which the optimizer's `correlated_subqueries` evaluate.
pub(super) fn array_of_subquery(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let is_array = matches!(function.name.0.as_slice(), [part]
        if part.as_ident().is_some_and(|name| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("array")));
    if !is_array {
        return;
    }
    if let FunctionArguments::Subquery(query) = &function.args {
        let argument = Expr::Subquery(query.clone());
        *expr = function_call(ARRAY_SUBQUERY, vec![argument]);
    }
}

/// Builds a call of a function by its unqualified name.
pub(crate) fn function_call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
