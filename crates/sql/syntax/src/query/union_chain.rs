//! Chains of UNION as trees of low height.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

/// Minimum number of operands of a balanced chain; shorter chains stay left-deep, as written.
pub const UNION_BALANCED_MIN: usize = 32;

/// Chain of the form `first UNION [ALL] … UNION [ALL] …`.
pub(super) struct UnionChain {
    operands: Vec<SetExpr>,
    /// Quantifier before each operand but the first.
    quantifiers: Vec<SetQuantifier>,
}

impl UnionChain {
    pub(super) fn new(first: SetExpr) -> Self {
        Self { operands: vec![first], quantifiers: Vec::new() }
    }

    pub(super) fn push(&mut self, quantifier: SetQuantifier, operand: SetExpr) {
        self.quantifiers.push(quantifier);
        self.operands.push(operand);
    }

    /// Returns the height of the tree that the chain becomes.
    pub(super) fn height(&self) -> usize {
        let count = self.operands.len();
        // The last UNION without ALL splits the chain into two balanced trees, which takes one more level.
        if count < UNION_BALANCED_MIN { count - 1 } else { 2 + count.ilog2() as usize }
    }

    /// Builds one tree from the chain. A long chain becomes balanced: a UNION removes the duplicates of all operands
    /// before it, so earlier UNIONs can be UNION ALL.
    pub(super) fn into_tree(self) -> SetExpr {
        let Self { operands, quantifiers } = self;
        let mut operands = operands.into_iter();
        if operands.len() < UNION_BALANCED_MIN {
            let first = operands.next().expect("a UNION chain has an operand");
            let rest = quantifiers.into_iter().zip(operands);
            return rest.fold(first, |left, (quantifier, right)| union(left, quantifier, right));
        }
        let last_distinct = quantifiers.iter().rposition(|quantifier| *quantifier != SetQuantifier::All);
        let Some(last_distinct) = last_distinct else { return balance_unions(operands.collect(), SetQuantifier::All) };
        let distinct = operands.by_ref().take(last_distinct + 2).collect();
        let distinct = balance_unions(distinct, SetQuantifier::None);
        balance_unions(std::iter::once(distinct).chain(operands).collect(), SetQuantifier::All)
    }
}

/// Joins `operands`, in order, into a balanced tree of UNION ALL whose root has `quantifier`.
fn balance_unions(operands: Vec<SetExpr>, quantifier: SetQuantifier) -> SetExpr {
    let mut joined = operands;
    while joined.len() > 1 {
        let quantifier = if joined.len() == 2 { quantifier } else { SetQuantifier::All };
        let mut operands = joined.into_iter();
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        while let Some(left) = operands.next() {
            pairs.push(match operands.next() {
                Some(right) => union(left, quantifier, right),
                None => left,
            });
        }
        joined = pairs;
    }
    joined.pop().expect("a UNION chain has an operand")
}

fn union(left: SetExpr, set_quantifier: SetQuantifier, right: SetExpr) -> SetExpr {
    SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left: Box::new(left), right: Box::new(right) }
}
