//! Disambiguation of GROUP BY keys that differ only in casts: DataFusion names expressions without their casts and
//! would confuse them.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};
use plan::take_unique_name;
use syntax::Walk;

use crate::rewrite::any_all_arrays;

/// Rewrites keys that differ only in a cast, wherever they occur in their SELECT, to forms with different names:
/// `coalesce(a)` equals `a`. Names must be resolved.
pub(super) fn disambiguate(query: &mut Query) {
    let _ = query.walk_mut(&mut KeyDisambiguator);
}

struct KeyDisambiguator;

impl VisitorMut for KeyDisambiguator {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            disambiguate_select(select, query.order_by.as_mut());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        disambiguate_select(select, None);
        ControlFlow::Continue(())
    }
}

fn disambiguate_select(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let renamed = keys_with_distinct_names(&keys(select));
    if renamed.is_empty() {
        return;
    }
    let marks = unused_names(renamed.len(), select, order_by.as_deref());
    let mut marking = KeyMarker { keys: &renamed, marks: &marks };
    let _ = select.walk_mut(&mut marking);
    let _ = select.walk_expressions_mut(|expr| replace_mark(expr, &renamed, &marks));
    if let Some(order_by) = order_by {
        let _ = order_by.walk_mut(&mut marking);
        let _ = order_by.walk_expressions_mut(|expr| replace_mark(expr, &renamed, &marks));
    }
}

/// Returns the keys of GROUP BY, including those of grouping sets.
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
                keys.extend(number.parse().ok().and_then(|number: usize| output_at(select, number)));
            }
            key => keys.push(key.clone()),
        }
    }
    keys
}

/// Returns the output with this number, from 1.
fn output_at(select: &Select, number: usize) -> Option<Expr> {
    match select.projection.get(number.checked_sub(1)?)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
        _ => None,
    }
}

/// Returns each key with its new form, which is the key itself unless another key has the same name. Empty if all
/// names differ.
fn keys_with_distinct_names(keys: &[Expr]) -> Vec<(Expr, Expr)> {
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
        // A key without a cast keeps its name, because other expressions may refer to it by that.
        known.sort_by_key(|key| key.to_string() != name);
        let mut known = known.into_iter();
        // An unchanged key is also replaced, so that keys within it are not.
        renamed.extend(known.next().map(|key| (key.clone(), key.clone())));
        for key in known {
            is_any_renamed = true;
            let mut form = any_all_arrays::function_call("coalesce", vec![key.clone()]);
            while !taken.insert(without_casts(form.clone())) {
                form = any_all_arrays::function_call("coalesce", vec![form]);
            }
            renamed.push((key.clone(), form));
        }
    }
    if is_any_renamed { renamed } else { Vec::new() }
}

/// Returns names that stand for keys while others are replaced: no name in the SELECT or its ORDER BY equals one.
fn unused_names(count: usize, select: &Select, order_by: Option<&OrderBy>) -> Vec<String> {
    let mut names = HashSet::new();
    let mut add = |expr: &Expr| {
        if let Expr::Identifier(name) = expr {
            names.insert(name.value.clone());
        }
        ControlFlow::<()>::Continue(())
    };
    let _ = select.walk_expressions(&mut add);
    let _ = order_by.map(|order_by| order_by.walk_expressions(&mut add));
    (0..count).map(|_| take_unique_name(&mut names, "group_key")).collect()
}

/// Visitor that replaces keys by marks, outer ones first.
struct KeyMarker<'a> {
    keys: &'a [(Expr, Expr)],
    marks: &'a [String],
}

impl VisitorMut for KeyMarker<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(number) = self.keys.iter().position(|(key, _)| key == expr) {
            *expr = Expr::Identifier(Ident::new(&self.marks[number]));
        }
        ControlFlow::Continue(())
    }
}

fn replace_mark(expr: &mut Expr, keys: &[(Expr, Expr)], marks: &[String]) -> ControlFlow<()> {
    if let Expr::Identifier(name) = expr
        && let Some(number) = marks.iter().position(|mark| *mark == name.value)
    {
        *expr = keys[number].1.clone();
    }
    ControlFlow::Continue(())
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
