//! A tree of joins as a graph: inputs, and the conditions between them, free of the order they were written in.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, HashSet, JoinType, NullEquality};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, Join, LogicalPlan, Operator, Projection, build_join_schema};

use super::leaf_set::LeafSet;
use super::search::Tree;
use crate::origin::is_never_null;

/// Inputs and conditions of a tree of joins.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) leaves: Vec<Leaf>,
    /// Expressions that inner joins make equal.
    pub(super) classes: Vec<Class>,
    /// All other conditions that rows must fulfil.
    pub(super) conditions: Vec<Condition>,
    /// The tree as it was written, sides included, if no condition has to move.
    pub(super) written: Option<Tree>,
}

/// An input of the joins.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) plan: Arc<LogicalPlan>,
    /// How rows meet it, unless by an inner join.
    pub(super) attachment: Option<Attachment>,
}

/// A join other than inner whose right side is one leaf. It does the same to a row wherever in the tree it happens, if only
/// the leaves that its condition reads are there: it commutes with joins that do not read what it adds.
#[derive(Debug)]
pub(super) struct Attachment {
    /// `Left`, `LeftSemi`, `LeftAnti` or `LeftMark`.
    pub(super) join_type: JoinType,
    /// Pairs of equal expressions, the leaf's own second.
    pub(super) on: Vec<(Expr, Expr)>,
    pub(super) filter: Option<Expr>,
    pub(super) null_equality: NullEquality,
    /// NOT IN: a NULL on either side leaves it open whether a row stays.
    pub(super) null_aware: bool,
    /// The leaves that must be on the other side.
    pub(super) required: LeafSet,
}

/// Expressions over one leaf each that all have the same value in every row of the result.
#[derive(Debug, Default)]
pub(super) struct Class {
    pub(super) members: Vec<(usize, Expr)>,
}

/// A condition and the leaves it reads.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) expr: Expr,
    pub(super) leaves: LeafSet,
}

impl Graph {
    /// The graph of the joins at the top of `plan`; `None` if there is nothing to order, or something in it that the graph has no
    /// form for.
    pub(super) fn of(plan: &LogicalPlan) -> Option<Graph> {
        if !is_transparent(plan) {
            return None;
        }
        let mut flat = Flat::default();
        let written = flat.add(plan)?;
        if flat.leaves.len() < 2 || flat.has_ambiguous_columns() {
            return None;
        }
        flat.join_what_must_match();
        flat.into_graph(written)
    }
}

/// Whether the node is taken apart: joins, and what lies between joins without changing rows' values.
fn is_transparent(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner => join.null_equality == NullEquality::NullEqualsNothing,
            JoinType::Full => false,
            _ => true,
        },
        LogicalPlan::Filter(Filter { predicate, input, .. }) => !predicate.is_volatile() && is_transparent(input),
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            expr.iter().all(|expr| matches!(expr, Expr::Column(_))) && is_transparent(input)
        }
        _ => false,
    }
}

/// What was met on the way through the tree.
#[derive(Default)]
struct Flat {
    leaves: Vec<Leaf>,
    conjuncts: Vec<Expr>,
    /// Whether filters lie between the joins: then conditions move even if the order stays.
    has_filters: bool,
}

impl Flat {
    fn add(&mut self, plan: &LogicalPlan) -> Option<Tree> {
        match plan {
            _ if !is_transparent(plan) => self.leaf(Leaf { plan: Arc::new(plan.clone()), attachment: None }),
            LogicalPlan::Projection(projection) => self.add(&projection.input),
            LogicalPlan::Filter(filter) => {
                self.has_filters = true;
                let tree = self.add(&filter.input);
                self.conjuncts.extend(split_conjunction(&filter.predicate).into_iter().cloned());
                tree
            }
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                let left = self.add(&join.left)?;
                let right = self.add(&join.right)?;
                self.conjuncts.extend(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())));
                self.conjuncts.extend(join.filter.iter().flat_map(split_conjunction).cloned());
                Some(Tree::join(left, right))
            }
            LogicalPlan::Join(join) => self.attach(join),
            _ => None,
        }
    }

    /// Adds a leaf; `None` if there are too many.
    fn leaf(&mut self, leaf: Leaf) -> Option<Tree> {
        self.leaves.push(leaf);
        (self.leaves.len() <= LeafSet::COUNT_MAX).then(|| Tree::Leaf(self.leaves.len() - 1))
    }

    fn attach(&mut self, join: &Join) -> Option<Tree> {
        let is_right =
            matches!(join.join_type, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
        let (kept, attached) = if is_right { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let before = self.leaves.len();
        let tree = self.add(kept)?;
        let present = LeafSet::first(self.leaves.len()).minus(LeafSet::first(before));
        let on = join.on.iter().cloned().map(|(left, right)| if is_right { (right, left) } else { (left, right) });
        let on: Vec<(Expr, Expr)> = on.collect();
        let mut required = LeafSet::EMPTY;
        let own = attached.schema();
        let read = on.iter().map(|(theirs, _)| theirs).chain(&join.filter);
        for column in read.flat_map(Expr::column_refs) {
            match (self.leaf_of(column), own.has_column(column)) {
                (Some(leaf), false) => required = required.union(LeafSet::one(leaf)),
                (None, true) => {}
                // Of neither side, or of both.
                _ => return None,
            }
        }
        // A condition that reads no row of the other side holds for all of them alike, wherever it stands.
        let required = if required.is_empty() { present } else { required };
        let null_aware =
            join.null_aware && on.iter().any(|(theirs, own)| may_be_null(theirs, kept) || may_be_null(own, attached));
        // Then it is another join, though it may stay where it is.
        self.has_filters |= null_aware != join.null_aware;
        let leaf = self.leaf(Leaf {
            plan: Arc::clone(attached),
            attachment: Some(Attachment {
                join_type: if is_right { join.join_type.swap() } else { join.join_type },
                on,
                filter: join.filter.clone(),
                null_equality: join.null_equality,
                null_aware,
                required,
            }),
        })?;
        Some(if is_right { Tree::join(leaf, tree) } else { Tree::join(tree, leaf) })
    }

    /// The leaf whose column this is, as seen from above the joins; `None` if there is none.
    fn leaf_of(&self, column: &Column) -> Option<usize> {
        self.leaves.iter().position(|leaf| leaf.shows(column))
    }

    /// Names may come back that a projection between the joins had hidden.
    fn has_ambiguous_columns(&self) -> bool {
        let mut seen = HashSet::new();
        self.leaves.iter().any(|leaf| leaf.shown().iter().any(|column| !seen.insert(column.clone())))
    }

    /// Lets rows without a match go, where a condition would leave them out: an outer join whose added columns must not be NULL is an inner one.
    fn join_what_must_match(&mut self) {
        while let Some(leaf) = (0..self.leaves.len()).find(|leaf| self.must_match(*leaf)) {
            let Some(attachment) = self.leaves[leaf].attachment.take() else { return };
            self.has_filters = true;
            self.conjuncts.extend(attachment.on.into_iter().map(|(theirs, own)| theirs.eq(own)));
            self.conjuncts.extend(attachment.filter.iter().flat_map(split_conjunction).cloned());
        }
    }

    fn must_match(&self, leaf: usize) -> bool {
        let leaf = &self.leaves[leaf];
        let is_outer = leaf.attachment.as_ref().is_some_and(|attachment| {
            attachment.join_type == JoinType::Left && attachment.null_equality == NullEquality::NullEqualsNothing
        });
        is_outer && self.conjuncts.iter().any(|conjunct| fails_for_null(conjunct, |column| leaf.shows(column)))
    }

    fn leaves_of(&self, expr: &Expr) -> Option<LeafSet> {
        expr.column_refs().into_iter().map(|column| self.leaf_of(column)).collect()
    }

    fn into_graph(self, written: Tree) -> Option<Graph> {
        let mut classes: Vec<Class> = Vec::new();
        let mut conditions = Vec::new();
        let mut is_as_written = !self.has_filters;
        for conjunct in &self.conjuncts {
            let leaves = self.leaves_of(conjunct)?;
            // What reads no leaf says yes or no to all rows alike.
            let leaves = if leaves.is_empty() { LeafSet::first(self.leaves.len()) } else { leaves };
            match self.equality(conjunct)? {
                Some((left, right)) => join_classes(&mut classes, left, right),
                None => {
                    is_as_written &= 1 < leaves.count();
                    conditions.push(Condition { expr: conjunct.clone(), leaves });
                }
            }
        }
        let written = is_as_written.then_some(written);
        Some(Graph { leaves: self.leaves, classes, conditions, written })
    }

    /// The sides of `a = b` between two inner leaves.
    #[expect(clippy::type_complexity, reason = "a leaf and its expression, twice")]
    fn equality(&self, conjunct: &Expr) -> Option<Option<((usize, Expr), (usize, Expr))>> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = conjunct else { return Some(None) };
        let side = |expr: &Expr| -> Option<Option<(usize, Expr)>> {
            let leaf = self.leaves_of(expr)?.single();
            Some(leaf.filter(|leaf| self.leaves[*leaf].attachment.is_none()).map(|leaf| (leaf, expr.clone())))
        };
        Some(match (side(left)?, side(right)?) {
            (Some(left), Some(right)) if left.0 != right.0 && !conjunct.is_volatile() => Some((left, right)),
            _ => None,
        })
    }
}

impl Leaf {
    /// Whether joins and conditions above can read the column from this leaf.
    fn shows(&self, column: &Column) -> bool {
        match (&self.attachment, &column.relation) {
            (None, Some(_)) => self.plan.schema().has_column(column),
            _ => self.shown().contains(column),
        }
    }

    fn shown(&self) -> Vec<Column> {
        match self.attachment.as_ref().map(|attachment| attachment.join_type) {
            Some(JoinType::LeftSemi | JoinType::LeftAnti) => Vec::new(),
            // Only the column that says whether there was a match.
            Some(JoinType::LeftMark) => build_join_schema(&DFSchema::empty(), self.plan.schema(), &JoinType::LeftMark)
                .map_or_else(|_| Vec::new(), |schema| schema.columns()),
            _ => self.plan.schema().columns(),
        }
    }
}

fn may_be_null(expr: &Expr, plan: &LogicalPlan) -> bool {
    match expr {
        Expr::Alias(alias) => may_be_null(&alias.expr, plan),
        Expr::Cast(cast) => may_be_null(&cast.expr, plan),
        Expr::Column(column) => !is_never_null(plan, column),
        _ => true,
    }
}

/// Whether a condition holds for no row in which these columns are NULL.
fn fails_for_null(condition: &Expr, is_null: impl Fn(&Column) -> bool) -> bool {
    let null = |mut expr: &Expr| {
        while let Expr::Cast(cast) = expr {
            expr = &cast.expr;
        }
        matches!(expr, Expr::Column(column) if is_null(column))
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_comparison = matches!(
                op,
                Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            );
            is_comparison && (null(left) || null(right))
        }
        Expr::IsNotNull(expr) => null(expr),
        _ => false,
    }
}

/// Puts both expressions in one class, with all that already equal either.
fn join_classes(classes: &mut Vec<Class>, left: (usize, Expr), right: (usize, Expr)) {
    let mut joined = Class { members: vec![left, right] };
    let (meeting, apart): (Vec<Class>, Vec<Class>) = std::mem::take(classes)
        .into_iter()
        .partition(|class| class.members.iter().any(|member| joined.members.contains(member)));
    *classes = apart;
    for member in meeting.into_iter().flat_map(|class| class.members) {
        if !joined.members.contains(&member) {
            joined.members.push(member);
        }
    }
    classes.push(joined);
}
