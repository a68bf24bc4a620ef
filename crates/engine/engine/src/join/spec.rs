//! Specification of a hash join.

use crate::expression::Expression;
use crate::{Error, PhysicalType, Result};

/// Kind of join. Left is the build side, right is the probe side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Inner join: matching pairs.
    Inner,
    /// Left outer join: matching pairs, and build rows without a match.
    Left,
    /// Right outer join: matching pairs, and probe rows without a match.
    Right,
    /// Full outer join: matching pairs, and rows of both sides without a match.
    Full,
    /// Left semi join: build rows with a match.
    LeftSemi,
    /// Right semi join: probe rows with a match.
    RightSemi,
    /// Left anti join: build rows without a match.
    LeftAnti,
    /// Null-aware left anti join for NOT IN: build rows whose key certainly equals no probe row's key (`not_in.rs`).
    LeftNotIn,
    /// Right anti join: probe rows without a match.
    RightAnti,
    /// Left mark join: all build rows, marked by whether they have a match.
    LeftMark,
    /// Right mark join: all probe rows, marked by whether they have a match.
    RightMark,
}

impl JoinKind {
    /// Returns whether the join outputs pairs of rows.
    #[must_use]
    pub fn outputs_pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    /// Returns whether the join outputs build rows after all probing, depending on the matches found by all probe
    /// rows.
    #[must_use]
    pub fn outputs_build_rows(self) -> bool {
        matches!(self, Self::Left | Self::Full | Self::LeftSemi | Self::LeftAnti | Self::LeftNotIn | Self::LeftMark)
    }

    /// Returns whether the join outputs probe rows without a match.
    #[must_use]
    pub fn outputs_unmatched_probe_rows(self) -> bool {
        matches!(self, Self::Right | Self::Full | Self::RightAnti | Self::RightMark)
    }

    /// Returns whether the output for a probe row depends on all chunks of a build side that is processed in chunks.
    #[must_use]
    pub fn needs_all_build_chunks(self) -> bool {
        self.outputs_unmatched_probe_rows() || self == Self::RightSemi
    }

    /// Returns whether output batches may have columns of the build side.
    #[must_use]
    pub fn outputs_build_columns(self) -> bool {
        self.outputs_pairs() || self.outputs_build_rows()
    }

    /// Returns whether output batches may have columns of the probe side.
    #[must_use]
    pub fn outputs_probe_columns(self) -> bool {
        self.outputs_pairs() || matches!(self, Self::RightSemi | Self::RightAnti | Self::RightMark)
    }

    /// Returns whether output batches may have a mark column.
    #[must_use]
    pub fn outputs_mark(self) -> bool {
        matches!(self, Self::LeftMark | Self::RightMark)
    }
}

/// Source of a column of an output batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputColumn {
    /// Column of the build side.
    Build(usize),
    /// Column of the probe side.
    Probe(usize),
    /// Mark: true if the row has a match, never NULL.
    Mark,
}

/// Condition that pairs with equal keys must also fulfil.
#[derive(Debug, Clone)]
pub struct Residual {
    /// Columns of the batch that the condition is evaluated on.
    pub columns: Vec<OutputColumn>,
    /// Condition; a pair joins if it is true, not if it is false or NULL.
    pub condition: Expression,
}

/// Specification of a hash join. Left is the build side, right is the probe side.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// Kind of join.
    pub kind: JoinKind,
    /// Columns of the build side and of the probe side that must be equal. Without keys, all pairs match.
    pub keys: Vec<(usize, usize)>,
    /// Whether NULL keys are equal to each other; otherwise a NULL key matches nothing.
    pub nulls_are_equal: bool,
    /// Columns of output batches: of both sides if the kind outputs pairs, otherwise of the side that is output, and
    /// the mark for mark joins.
    pub output: Vec<OutputColumn>,
    /// Condition on pairs beyond the equality of keys.
    pub residual: Option<Residual>,
    /// Physical types of the build side's columns.
    pub build_types: Vec<PhysicalType>,
}

impl JoinSpec {
    /// Checks that keys, output, residual condition and kind are consistent.
    pub(super) fn check(&self) -> Result<()> {
        let has_build = |column: usize| column < self.build_types.len();
        let fits_output = |column: &OutputColumn| match *column {
            OutputColumn::Build(column) => self.kind.outputs_build_columns() && has_build(column),
            OutputColumn::Probe(_) => self.kind.outputs_probe_columns(),
            OutputColumn::Mark => self.kind.outputs_mark(),
        };
        if !self.output.iter().all(fits_output) {
            return Err(Error::Internal("a join outputs a column that its kind does not provide"));
        }
        if self.kind == JoinKind::LeftNotIn && (self.keys.len() != 1 || self.nulls_are_equal || self.residual.is_some())
        {
            return Err(Error::Internal("a NOT IN join must have exactly one key and nothing else"));
        }
        if !self.keys.iter().all(|(build, _)| has_build(*build)) {
            return Err(Error::Internal("a join key is not a column of the build side"));
        }
        let fits_residual = |column: &OutputColumn| match *column {
            OutputColumn::Build(column) => has_build(column),
            OutputColumn::Probe(_) => true,
            OutputColumn::Mark => false,
        };
        if !self.residual.iter().flat_map(|residual| &residual.columns).all(fits_residual) {
            return Err(Error::Internal("a join's residual condition reads an invalid column"));
        }
        Ok(())
    }

    /// Returns whether the probe only needs to know if a match exists, not which rows match.
    pub(super) fn needs_existence_only(&self) -> bool {
        self.residual.is_none() && !self.kind.outputs_build_columns()
    }

    /// Returns whether the values of a build column are needed after the keys have been packed.
    pub(super) fn outputs_build_column(&self, column: usize) -> bool {
        let residual = self.residual.iter().flat_map(|residual| &residual.columns);
        self.output.iter().chain(residual).any(|output| *output == OutputColumn::Build(column))
    }

    /// Returns whether the values of a build column are needed at all.
    pub(super) fn uses_build_column(&self, column: usize) -> bool {
        self.outputs_build_column(column) || self.keys.iter().any(|(build, _)| *build == column)
    }
}
