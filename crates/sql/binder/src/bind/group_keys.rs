//! Keys of one GROUP BY that DataFusion would take for one another: it calls expressions by what they are without their casts.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};
use syntax::Walk;

use crate::rewrite::list;

/// Gives keys that differ by a cast only, wherever they occur in their SELECT, forms that differ otherwise too: `coalesce(a)` is `a`.
/// Names must be settled.
pub(super) fn tell_apart(query: &mut Query) {
    let _ = query.walk_mut(&mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            tell_keys_apart(select, query.order_by.as_mut());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        tell_keys_apart(select, None);
        ControlFlow::Continue(())
    }
}

fn tell_keys_apart(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let renamed = renamed(&keys(select));
    if renamed.is_empty() {
        return;
    }
    let mut marking = Marking { keys: &renamed };
    let _ = select.walk_mut(&mut marking);
    let _ = select.walk_expressions_mut(|expr| unmark(expr, &renamed));
    if let Some(order_by) = order_by {
        let _ = order_by.walk_mut(&mut marking);
        let _ = order_by.walk_expressions_mut(|expr| unmark(expr, &renamed));
    }
}

/// The keys of GROUP BY, those of its sets too.
fn keys(select: &Select) -> Vec<Expr> {
    let GroupByExpr::Expressions(written, _) = &select.group_by else { return Vec::new() };
    let mut keys = Vec::new();
    let mut rest: Vec<&Expr> = written.iter().rev().collect();
    while let Some(key) = rest.pop() {
        match key {
            Expr::Nested(inner) => rest.push(inner),
            Expr::Tuple(all) => rest.extend(all.iter().rev()),
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                rest.extend(sets.iter().flatten().rev());
            }
            Expr::Value(value) => {
                let Value::Number(number, _) = &value.value else { continue };
                keys.extend(number.parse().ok().and_then(|number: usize| item(select, number)));
            }
            key => keys.push(key.clone()),
        }
    }
    keys
}

/// The output with this number, from 1.
fn item(select: &Select, number: usize) -> Option<Expr> {
    match select.projection.get(number.checked_sub(1)?)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
        _ => None,
    }
}

/// The keys with forms that have names of their own: themselves, but where another has the name. Nothing if none has.
fn renamed(keys: &[Expr]) -> Vec<(Expr, Expr)> {
    let mut alike: HashMap<String, Vec<&Expr>> = HashMap::new();
    let mut names = Vec::with_capacity(keys.len());
    for key in keys {
        let name = without_casts(key.clone());
        let known = alike.entry(name.clone()).or_default();
        if !known.contains(&key) {
            known.push(key);
        }
        names.push(name);
    }
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let (mut renamed, mut is_any_renamed) = (Vec::new(), false);
    for name in names {
        let Some(mut known) = alike.remove(&name) else { continue };
        // What has no cast keeps its name, as others may have it by that.
        known.sort_by_key(|key| key.to_string() != name);
        let mut known = known.into_iter();
        // As a whole: what is within it may be a key with another form.
        renamed.extend(known.next().map(|key| (key.clone(), key.clone())));
        for key in known {
            is_any_renamed = true;
            let mut form = list::call("coalesce", vec![key.clone()]);
            while !taken.insert(without_casts(form.clone())) {
                form = list::call("coalesce", vec![form]);
            }
            renamed.push((key.clone(), form));
        }
    }
    if is_any_renamed { renamed } else { Vec::new() }
}

/// Puts marks in the place of keys, outer ones first.
struct Marking<'a> {
    keys: &'a [(Expr, Expr)],
}

impl VisitorMut for Marking<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(number) = self.keys.iter().position(|(key, _)| key == expr) {
            *expr = Expr::Identifier(Ident::new(mark(number)));
        }
        ControlFlow::Continue(())
    }
}

fn unmark(expr: &mut Expr, keys: &[(Expr, Expr)]) -> ControlFlow<()> {
    if let Expr::Identifier(name) = expr
        && let Some(number) = (0..keys.len()).find(|number| name.value == mark(*number))
    {
        *expr = keys[number].1.clone();
    }
    ControlFlow::Continue(())
}

/// No name that was settled.
fn mark(number: usize) -> String {
    format!("group key\u{1}{number}")
}

fn without_casts(mut expr: Expr) -> String {
    let _ = expr.walk_expressions_mut(|expr| {
        loop {
            *expr = match expr {
                Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => {
                    std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()))
                }
                Expr::TypedString(typed) => Expr::Value(typed.value.clone()),
                _ => return ControlFlow::<()>::Continue(()),
            };
        }
    });
    expr.to_string()
}
