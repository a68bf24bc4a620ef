//! Propagation of keys through a plan: from a join to sides of joins above it whose columns must equal the keys.

use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

/// Side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

impl Side {
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// Returns this input of a join.
    pub(super) fn input(self, join: &Join) -> &LogicalPlan {
        match self {
            Self::Left => &join.left,
            Self::Right => &join.right,
        }
    }

    /// Returns the pairs of columns that a join equates, this side's column first.
    pub(super) fn key_pairs(self, join: &Join) -> impl Iterator<Item = (&Column, &Column)> {
        join.on.iter().filter_map(move |(left, right)| match (self, left, right) {
            (Self::Left, Expr::Column(left), Expr::Column(right)) => Some((left, right)),
            (Self::Right, Expr::Column(left), Expr::Column(right)) => Some((right, left)),
            _ => None,
        })
    }
}

/// Side of a join that a set of keys filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilteredSide {
    /// Index of the join in a preorder walk of the plan.
    pub(super) join: usize,
    pub(super) side: Side,
    /// Column that must hold one of the keys.
    pub(super) column: Column,
}

/// Join above another one, whose columns it sees under the same names.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParentJoin<'a> {
    pub(super) join: &'a Join,
    /// Index of the join in a preorder walk of the plan.
    pub(super) number: usize,
    /// Input that contains the lower join.
    pub(super) side: Side,
}

/// Calls `visit` for each join of a plan in preorder, with its index and the joins above that see its columns.
pub(super) fn for_each_join<'a>(
    plan: &'a LogicalPlan,
    visit: &mut impl FnMut(&'a Join, usize, &[ParentJoin<'a>]) -> Result<()>,
) -> Result<()> {
    walk(plan, &mut Vec::new(), &mut 0, visit)
}

fn walk<'a>(
    plan: &'a LogicalPlan,
    above: &mut Vec<ParentJoin<'a>>,
    number: &mut usize,
    visit: &mut impl FnMut(&'a Join, usize, &[ParentJoin<'a>]) -> Result<()>,
) -> Result<()> {
    if let LogicalPlan::Join(join) = plan {
        let own = *number;
        *number += 1;
        visit(join, own, above)?;
        for side in [Side::Left, Side::Right] {
            above.push(ParentJoin { join, number: own, side });
            walk(side.input(join), above, number, visit)?;
            above.pop();
        }
        return Ok(());
    }
    let keeps_names = match plan {
        LogicalPlan::Filter(_) => true,
        LogicalPlan::Projection(projection) => projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))),
        _ => false,
    };
    for input in plan.inputs() {
        match keeps_names {
            true => walk(input, above, number, visit)?,
            false => walk(input, &mut Vec::new(), number, visit)?,
        }
    }
    Ok(())
}

/// Returns the sides of joins above that the keys may filter, with the joins. Each of `columns` holds one of the keys
/// in every row that the lowest join gives; equalities of the joins above extend the set of such columns.
pub(super) fn propagate_keys<'a>(columns: [&Column; 2], above: &[ParentJoin<'a>]) -> Vec<(FilteredSide, &'a Join)> {
    let (mut equal, mut targets) = (columns.map(Column::clone).to_vec(), Vec::new());
    for ParentJoin { join, number, side } in above.iter().rev() {
        let other = side.opposite();
        for (own, column) in side.key_pairs(join) {
            if !equal.contains(own) || join.null_equality != NullEquality::NullEqualsNothing {
                continue;
            }
            // NOT IN depends on NULLs, which a set of keys does not hold.
            if may_filter(join.join_type, other) && !join.null_aware {
                targets.push((FilteredSide { join: *number, side: other, column: column.clone() }, *join));
            }
            if join.join_type == JoinType::Inner {
                equal.push(column.clone());
            }
        }
        if !outputs_side(join.join_type, *side) {
            break;
        }
    }
    targets
}

/// Returns whether rows of this side without a partner do not affect the join's result.
pub(super) fn may_filter(join: JoinType, side: Side) -> bool {
    use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    match join {
        Inner | LeftSemi | RightSemi => true,
        Left | LeftAnti | LeftMark => side == Side::Right,
        Right | RightAnti | RightMark => side == Side::Left,
        Full => false,
    }
}

/// Returns whether a join's result has the columns of this side.
fn outputs_side(join: JoinType, side: Side) -> bool {
    match join {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => side == Side::Left,
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => side == Side::Right,
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => true,
    }
}
