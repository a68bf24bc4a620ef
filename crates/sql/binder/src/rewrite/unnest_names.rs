//! Disambiguation of UNNEST calls in one SELECT list that differ only in casts: DataFusion names them by their
//! arguments without casts and would confuse them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem, Value};
use syntax::Walk;

use super::any_all_arrays;

/// Rewrites arguments that differ only in a cast to forms with different names: `coalesce(a)` equals `a`.
pub(super) fn disambiguate(items: &mut [SelectItem]) {
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    for item in items {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        let _ = expr.walk_expressions_mut(|expr| {
            if let Some(argument) = argument_of_unnest(expr) {
                let written = argument.to_string();
                let alike = known.entry(without_casts(argument.clone())).or_default();
                let at = alike.iter().position(|known| *known == written).unwrap_or(alike.len());
                if at == alike.len() {
                    alike.push(written);
                }
                for _ in 0..at {
                    let inner = std::mem::replace(argument, Expr::Value(Value::Null.into()));
                    *argument = any_all_arrays::function_call("coalesce", vec![inner]);
                }
            }
            ControlFlow::<()>::Continue(())
        });
    }
}

fn argument_of_unnest(expr: &mut Expr) -> Option<&mut Expr> {
    let Expr::Function(function) = expr else { return None };
    let name = function.name.0.last()?.as_ident()?;
    let FunctionArguments::List(arguments) = &mut function.args else { return None };
    match arguments.args.as_mut_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] if name.value.eq_ignore_ascii_case("unnest") => {
            Some(argument)
        }
        _ => None,
    }
}

fn without_casts(mut expr: Expr) -> String {
    let _ = expr.walk_expressions_mut(|expr| {
        while let Expr::Cast { expr: inner, .. } = expr {
            *expr = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}
