//! Visitors over syntax trees, with a walk that is compiled once for all of them.
//!
//! `sqlparser`'s walk is generic: for each visitor type the compiler generates code for 500 node types, which was most
//! of the compile time of the binder.

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, OrderBy, Query, Select, SelectItem, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut, WindowSpec,
};

/// Syntax tree that visitors traverse depth first.
pub trait Walk {
    /// Passes all nodes to a visitor until it breaks.
    fn walk<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut stored = BreakStore { visitor, value: None };
        match self.walk_erased(&mut ErasedVisitor(&mut stored)) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(stored.value.expect("a visitor that breaks stores its value")),
        }
    }

    /// Like [`Walk::walk`], for visitors that change nodes.
    fn walk_mut<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut stored = BreakStore { visitor, value: None };
        match self.walk_erased_mut(&mut ErasedVisitorMut(&mut stored)) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(stored.value.expect("a visitor that breaks stores its value")),
        }
    }

    /// Passes each expression to `visit` before its subexpressions.
    fn walk_expressions<B>(&self, visit: impl FnMut(&Expr) -> ControlFlow<B>) -> ControlFlow<B> {
        self.walk(&mut ExprVisitor(visit))
    }

    /// Passes each expression to `visit` after its subexpressions.
    fn walk_expressions_mut<B>(&mut self, visit: impl FnMut(&mut Expr) -> ControlFlow<B>) -> ControlFlow<B> {
        self.walk_mut(&mut ExprVisitor(visit))
    }

    /// Passes the name of each relation to `visit`.
    fn walk_relations<B>(&self, visit: impl FnMut(&ObjectName) -> ControlFlow<B>) -> ControlFlow<B> {
        self.walk(&mut RelationVisitor(visit))
    }

    /// Walks with a type-erased visitor; callers use [`Walk::walk`].
    fn walk_erased(&self, visitor: &mut ErasedVisitor<'_>) -> ControlFlow<()>;

    /// Like [`Walk::walk_erased`], for visitors that change nodes.
    fn walk_erased_mut(&mut self, visitor: &mut ErasedVisitorMut<'_>) -> ControlFlow<()>;
}

macro_rules! walk {
    ($($tree:ty),*) => {$(
        impl Walk for $tree {
            fn walk_erased(&self, visitor: &mut ErasedVisitor<'_>) -> ControlFlow<()> {
                Visit::visit(self, visitor)
            }

            fn walk_erased_mut(&mut self, visitor: &mut ErasedVisitorMut<'_>) -> ControlFlow<()> {
                VisitMut::visit(self, visitor)
            }
        }
    )*};
}

walk!(Expr, OrderBy, Query, Select, Statement, Vec<SelectItem>, WindowSpec);

/// Type-erased visitor, so that the walk is compiled for this type only.
pub struct ErasedVisitor<'a>(&'a mut dyn Visitor<Break = ()>);

/// Like [`ErasedVisitor`], for visitors that change nodes.
pub struct ErasedVisitorMut<'a>(&'a mut dyn VisitorMut<Break = ()>);

/// Visitor that stores the break value of another, so that it can break without one.
struct BreakStore<'a, V, B> {
    visitor: &'a mut V,
    value: Option<B>,
}

impl<V, B> BreakStore<'_, V, B> {
    fn store(&mut self, flow: ControlFlow<B>) -> ControlFlow<()> {
        flow.map_break(|value| self.value = Some(value))
    }
}

macro_rules! pass_on {
    ($($visit:ident: $node:ty),*) => {
        impl Visitor for ErasedVisitor<'_> {
            type Break = ();

            $(fn $visit(&mut self, node: &$node) -> ControlFlow<()> {
                self.0.$visit(node)
            })*
        }

        impl VisitorMut for ErasedVisitorMut<'_> {
            type Break = ();

            $(fn $visit(&mut self, node: &mut $node) -> ControlFlow<()> {
                self.0.$visit(node)
            })*
        }

        impl<V: Visitor<Break = B>, B> Visitor for BreakStore<'_, V, B> {
            type Break = ();

            $(fn $visit(&mut self, node: &$node) -> ControlFlow<()> {
                let flow = self.visitor.$visit(node);
                self.store(flow)
            })*
        }

        impl<V: VisitorMut<Break = B>, B> VisitorMut for BreakStore<'_, V, B> {
            type Break = ();

            $(fn $visit(&mut self, node: &mut $node) -> ControlFlow<()> {
                let flow = self.visitor.$visit(node);
                self.store(flow)
            })*
        }
    };
}

// All methods of sqlparser's visitor traits: a method missing here is never called.
pass_on!(
    pre_visit_query: Query,
    post_visit_query: Query,
    pre_visit_select: Select,
    post_visit_select: Select,
    pre_visit_relation: ObjectName,
    post_visit_relation: ObjectName,
    pre_visit_table_factor: TableFactor,
    post_visit_table_factor: TableFactor,
    pre_visit_expr: Expr,
    post_visit_expr: Expr,
    pre_visit_statement: Statement,
    post_visit_statement: Statement,
    pre_visit_value: ValueWithSpan,
    post_visit_value: ValueWithSpan
);

struct ExprVisitor<F>(F);

impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for ExprVisitor<F> {
    type Break = B;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        self.0(expr)
    }
}

impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for ExprVisitor<F> {
    type Break = B;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        self.0(expr)
    }
}

struct RelationVisitor<F>(F);

impl<B, F: FnMut(&ObjectName) -> ControlFlow<B>> Visitor for RelationVisitor<F> {
    type Break = B;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<B> {
        self.0(relation)
    }
}
