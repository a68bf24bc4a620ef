//! Chains of UNION in few levels.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

/// Chains of fewer operands are trees as they are written, one operand joined to all before it.
pub const BALANCED_FROM: usize = 32;

/// `first UNION [ALL] … UNION [ALL] …`
pub(super) struct UnionChain {
    operands: Vec<SetExpr>,
    /// ALL or DISTINCT before each operand but the first.
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

    /// Levels of operators that the chain becomes.
    pub(super) fn levels(&self) -> usize {
        let count = self.operands.len();
        // One more where UNION ALL follows on UNION.
        if count < BALANCED_FROM { count - 1 } else { 2 + count.ilog2() as usize }
    }

    /// The chain as one tree. A long one has its operands side by side: UNION takes the duplicates out of all that comes before it, whatever was taken
    /// out earlier.
    pub(super) fn joined(self) -> SetExpr {
        let Self { operands, quantifiers } = self;
        let mut operands = operands.into_iter();
        if operands.len() < BALANCED_FROM {
            let first = operands.next().expect("a chain has its first operand");
            let rest = quantifiers.into_iter().zip(operands);
            return rest.fold(first, |left, (quantifier, right)| union(left, quantifier, right));
        }
        let last_distinct = quantifiers.iter().rposition(|quantifier| *quantifier != SetQuantifier::All);
        let Some(last_distinct) = last_distinct else { return balanced(operands.collect(), SetQuantifier::All) };
        let distinct = operands.by_ref().take(last_distinct + 2).collect();
        let distinct = balanced(distinct, SetQuantifier::None);
        balanced(std::iter::once(distinct).chain(operands).collect(), SetQuantifier::All)
    }
}

/// `operands` in order under as few operators as possible: UNION ALL, the topmost with `quantifier`.
fn balanced(operands: Vec<SetExpr>, quantifier: SetQuantifier) -> SetExpr {
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
    joined.pop().expect("a chain has operands")
}

fn union(left: SetExpr, set_quantifier: SetQuantifier, right: SetExpr) -> SetExpr {
    SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left: Box::new(left), right: Box::new(right) }
}
