//! Join graph: the inputs of a tree of joins and the conditions between them, independent of the order in the
//! statement.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, HashSet, JoinType, NullEquality};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, Join, LogicalPlan, Operator, Projection, build_join_schema};

use super::join_tree_search::Tree;
use super::leaf_set::LeafSet;
use crate::column_origin::is_never_null;

/// Join graph: inputs and conditions of a tree of joins.
#[derive(Debug)]
pub(super) struct JoinGraph {
    /// Inputs of the joins.
    pub(super) leaves: Vec<Leaf>,
    /// Equivalence classes of expressions that inner joins equate.
    pub(super) classes: Vec<EquivalenceClass>,
    /// All other conditions that rows must fulfil.
    pub(super) conditions: Vec<Condition>,
    /// Original tree, with its build and probe sides; `None` if a condition has to move even in this order.
    pub(super) original_tree: Option<Tree>,
}

/// Input of the joins.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) plan: Arc<LogicalPlan>,
    /// Outer, semi, anti or mark join that adds the leaf; `None` for inner joins.
    pub(super) attachment: Option<Attachment>,
}

/// Non-inner join whose right side is a single leaf. Its effect on a row is the same anywhere in the tree where the
/// leaves that its condition reads are present, so it commutes with joins that do not read the columns that it adds.
#[derive(Debug)]
pub(super) struct Attachment {
    /// `Left`, `LeftSemi`, `LeftAnti` or `LeftMark`.
    pub(super) join_type: JoinType,
    /// Equi-join keys; the leaf's expression is second.
    pub(super) on: Vec<(Expr, Expr)>,
    pub(super) filter: Option<Expr>,
    pub(super) null_equality: NullEquality,
    /// Whether it is a NOT IN whose keys may be NULL on either side.
    pub(super) null_aware: bool,
    /// Leaves that the other side must contain.
    pub(super) required_leaves: LeafSet,
}

/// Equivalence class: expressions, each over one leaf, that have the same value in every row of the result.
#[derive(Debug, Default)]
pub(super) struct EquivalenceClass {
    /// Expressions with the indices of their leaves.
    pub(super) members: Vec<(usize, Expr)>,
}

/// Condition with the leaves that it reads.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) expr: Expr,
    pub(super) leaves: LeafSet,
}

impl JoinGraph {
    /// Returns the graph of the joins at the top of `plan`; `None` if there is nothing to order or the graph cannot
    /// represent it.
    pub(super) fn try_from_plan(plan: &LogicalPlan) -> Option<JoinGraph> {
        if !is_transparent(plan) {
            return None;
        }
        let mut flat = FlattenedJoins::default();
        let written = flat.add_subtree(plan)?;
        if flat.leaves.len() < 2 || flat.has_ambiguous_columns() {
            return None;
        }
        flat.reduce_outer_joins();
        flat.into_graph(written)
    }
}

/// Returns whether the graph includes the node itself instead of taking it as a leaf: reorderable joins, and filters
/// and column projections between joins.
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

/// Flattened tree of joins.
#[derive(Default)]
struct FlattenedJoins {
    leaves: Vec<Leaf>,
    /// Conditions of inner joins and of filters between joins.
    conjuncts: Vec<Expr>,
    /// Whether filters lie between the joins, so that conditions move even if the order stays.
    has_filters: bool,
}

impl FlattenedJoins {
    /// Adds the leaves and conditions below `plan`; returns its tree over the leaves.
    fn add_subtree(&mut self, plan: &LogicalPlan) -> Option<Tree> {
        match plan {
            _ if !is_transparent(plan) => self.add_leaf(Leaf { plan: Arc::new(plan.clone()), attachment: None }),
            LogicalPlan::Projection(projection) => self.add_subtree(&projection.input),
            LogicalPlan::Filter(filter) => {
                self.has_filters = true;
                let tree = self.add_subtree(&filter.input);
                self.conjuncts.extend(split_conjunction(&filter.predicate).into_iter().cloned());
                tree
            }
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                let left = self.add_subtree(&join.left)?;
                let right = self.add_subtree(&join.right)?;
                self.conjuncts.extend(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())));
                self.conjuncts.extend(join.filter.iter().flat_map(split_conjunction).cloned());
                Some(Tree::join(left, right))
            }
            LogicalPlan::Join(join) => self.add_attached_join(join),
            _ => None,
        }
    }

    /// Adds a leaf; `None` if there are too many.
    fn add_leaf(&mut self, leaf: Leaf) -> Option<Tree> {
        self.leaves.push(leaf);
        (self.leaves.len() <= LeafSet::COUNT_MAX).then(|| Tree::Leaf(self.leaves.len() - 1))
    }

    /// Adds a non-inner join; `None` if the graph cannot represent it.
    fn add_attached_join(&mut self, join: &Join) -> Option<Tree> {
        let is_right =
            matches!(join.join_type, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
        let (kept, attached) = if is_right { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let before = self.leaves.len();
        let tree = self.add_subtree(kept)?;
        let present = LeafSet::first(self.leaves.len()).difference(LeafSet::first(before));
        let on = join.on.iter().cloned().map(|(left, right)| if is_right { (right, left) } else { (left, right) });
        let on: Vec<(Expr, Expr)> = on.collect();
        let mut required = LeafSet::EMPTY;
        let own = attached.schema();
        let read = on.iter().map(|(theirs, _)| theirs).chain(&join.filter);
        for column in read.flat_map(Expr::column_refs) {
            match (self.leaf_of(column), own.has_column(column)) {
                (Some(leaf), false) => required = required.union(LeafSet::from_leaf(leaf)),
                (None, true) => {}
                // The column belongs to neither side, or to both.
                _ => return None,
            }
        }
        // A condition that reads nothing of the other side must stay above the same leaves as in the statement.
        let required = if required.is_empty() { present } else { required };
        let null_aware =
            join.null_aware && on.iter().any(|(theirs, own)| may_be_null(theirs, kept) || may_be_null(own, attached));
        // The join differs from the original one even if it stays in its position.
        self.has_filters |= null_aware != join.null_aware;
        let leaf = self.add_leaf(Leaf {
            plan: Arc::clone(attached),
            attachment: Some(Attachment {
                join_type: if is_right { join.join_type.swap() } else { join.join_type },
                on,
                filter: join.filter.clone(),
                null_equality: join.null_equality,
                null_aware,
                required_leaves: required,
            }),
        })?;
        Some(if is_right { Tree::join(leaf, tree) } else { Tree::join(tree, leaf) })
    }

    /// Returns the leaf that provides a column to nodes above the joins.
    fn leaf_of(&self, column: &Column) -> Option<usize> {
        self.leaves.iter().position(|leaf| leaf.provides(column))
    }

    /// Returns whether two leaves have a column of the same name: dropping a projection may uncover names that it hid.
    fn has_ambiguous_columns(&self) -> bool {
        let mut seen = HashSet::new();
        self.leaves.iter().any(|leaf| leaf.provided_columns().iter().any(|column| !seen.insert(column.clone())))
    }

    /// Turns outer joins into inner ones where a condition above rejects NULLs in the columns that they add.
    fn reduce_outer_joins(&mut self) {
        while let Some(leaf) = (0..self.leaves.len()).find(|leaf| self.is_reducible_outer(*leaf)) {
            let Some(attachment) = self.leaves[leaf].attachment.take() else { return };
            self.has_filters = true;
            self.conjuncts.extend(attachment.on.into_iter().map(|(theirs, own)| theirs.eq(own)));
            self.conjuncts.extend(attachment.filter.iter().flat_map(split_conjunction).cloned());
        }
    }

    /// Returns whether a leaf is added by an outer join and a condition above rejects its NULLs.
    fn is_reducible_outer(&self, leaf: usize) -> bool {
        let leaf = &self.leaves[leaf];
        let is_outer = leaf.attachment.as_ref().is_some_and(|attachment| {
            attachment.join_type == JoinType::Left && attachment.null_equality == NullEquality::NullEqualsNothing
        });
        is_outer && self.conjuncts.iter().any(|conjunct| is_null_rejecting(conjunct, |column| leaf.provides(column)))
    }

    fn leaves_of(&self, expr: &Expr) -> Option<LeafSet> {
        expr.column_refs().into_iter().map(|column| self.leaf_of(column)).collect()
    }

    fn into_graph(self, written: Tree) -> Option<JoinGraph> {
        let mut classes: Vec<EquivalenceClass> = Vec::new();
        let mut conditions = Vec::new();
        let mut is_as_written = !self.has_filters;
        for conjunct in &self.conjuncts {
            let leaves = self.leaves_of(conjunct)?;
            // A condition that reads no leaf applies to complete rows.
            let leaves = if leaves.is_empty() { LeafSet::first(self.leaves.len()) } else { leaves };
            match self.equality_sides(conjunct)? {
                Some((left, right)) => merge_classes(&mut classes, left, right),
                None => {
                    is_as_written &= 1 < leaves.count();
                    conditions.push(Condition { expr: conjunct.clone(), leaves });
                }
            }
        }
        let written = is_as_written.then_some(written);
        Some(JoinGraph { leaves: self.leaves, classes, conditions, original_tree: written })
    }

    /// Returns both sides of a condition `a = b` between two different inner leaves, with their leaves. The outer
    /// `None` means that the graph cannot represent the condition, the inner one that it is no such equality.
    #[expect(clippy::type_complexity, reason = "a leaf and its expression, twice")]
    fn equality_sides(&self, conjunct: &Expr) -> Option<Option<((usize, Expr), (usize, Expr))>> {
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
    /// Returns whether joins and conditions above can read the column from this leaf.
    fn provides(&self, column: &Column) -> bool {
        match (&self.attachment, &column.relation) {
            (None, Some(_)) => self.plan.schema().has_column(column),
            _ => self.provided_columns().contains(column),
        }
    }

    /// Returns the columns that joins and conditions above can read from this leaf.
    fn provided_columns(&self) -> Vec<Column> {
        match self.attachment.as_ref().map(|attachment| attachment.join_type) {
            Some(JoinType::LeftSemi | JoinType::LeftAnti) => Vec::new(),
            // A mark join gives only the column that says whether there was a match.
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

/// Returns whether a condition is not true for any row in which the columns that fulfil `is_null` are NULL.
fn is_null_rejecting(condition: &Expr, is_null: impl Fn(&Column) -> bool) -> bool {
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

/// Puts both expressions into one class, merging the classes that contain either.
fn merge_classes(classes: &mut Vec<EquivalenceClass>, left: (usize, Expr), right: (usize, Expr)) {
    let mut joined = EquivalenceClass { members: vec![left, right] };
    let (meeting, apart): (Vec<EquivalenceClass>, Vec<EquivalenceClass>) = std::mem::take(classes)
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
