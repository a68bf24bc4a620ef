//! What a join is to do.

use crate::expression::Expression;
use crate::{Error, Form, Result};

/// Which rows a join gives. Left is the build side, right is the probe side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and build rows without a match.
    Left,
    /// Pairs, and probe rows without a match.
    Right,
    /// Pairs, and rows of both sides without a match.
    Full,
    /// Build rows with a match.
    LeftSemi,
    /// Probe rows with a match.
    RightSemi,
    /// Build rows without a match.
    LeftAnti,
    /// Build rows whose one key is for sure none of the probe rows' (`not_in.rs`).
    LeftNotIn,
    /// Probe rows without a match.
    RightAnti,
    /// Build rows, and whether they have a match.
    LeftMark,
    /// Probe rows, and whether they have a match.
    RightMark,
}

impl JoinKind {
    /// Whether pairs of rows are given.
    #[must_use]
    pub fn gives_pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    /// Whether build rows are given after all probing, by the matches that all probe rows have found.
    #[must_use]
    pub fn gives_rest(self) -> bool {
        matches!(self, Self::Left | Self::Full | Self::LeftSemi | Self::LeftAnti | Self::LeftNotIn | Self::LeftMark)
    }

    /// Whether probe rows without a match are given.
    #[must_use]
    pub fn keeps_probe_rows(self) -> bool {
        matches!(self, Self::Right | Self::Full | Self::RightAnti | Self::RightMark)
    }

    /// Whether what becomes of a probe row with one piece of the build side depends on the others.
    #[must_use]
    pub fn asks_whole_build(self) -> bool {
        self.keeps_probe_rows() || self == Self::RightSemi
    }

    /// Whether output batches may have columns of the build side.
    #[must_use]
    pub fn gives_build_columns(self) -> bool {
        self.gives_pairs() || self.gives_rest()
    }

    /// Whether output batches may have columns of the probe side.
    #[must_use]
    pub fn gives_probe_columns(self) -> bool {
        self.gives_pairs() || matches!(self, Self::RightSemi | Self::RightAnti | Self::RightMark)
    }

    /// Whether output batches may have a column that says which rows have a match.
    #[must_use]
    pub fn gives_mark(self) -> bool {
        matches!(self, Self::LeftMark | Self::RightMark)
    }
}

/// A column of an output batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputColumn {
    /// A column of the build side.
    Build(usize),
    /// A column of the probe side.
    Probe(usize),
    /// Whether the row has a match; never NULL.
    Mark,
}

/// A condition over pairs whose keys are equal.
#[derive(Debug, Clone)]
pub struct Residual {
    /// The columns of the batch that the condition is asked about.
    pub columns: Vec<OutputColumn>,
    /// True of the pairs that are joined: neither false nor NULL.
    pub condition: Expression,
}

/// A join: left is the build side, right is the probe side.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    pub kind: JoinKind,
    /// The columns whose values are equal, of the build side and of the probe side. Without any, all pairs match.
    pub keys: Vec<(usize, usize)>,
    /// Whether NULL keys are equal to each other; otherwise a NULL key matches nothing.
    pub nulls_are_equal: bool,
    /// The columns of output batches: of both sides where pairs are given, otherwise of the side that is given and, of mark joins, the
    /// mark.
    pub output: Vec<OutputColumn>,
    /// What pairs fulfil besides their keys.
    pub residual: Option<Residual>,
    /// The forms of the build side's columns.
    pub build_forms: Vec<Form>,
}

impl JoinSpec {
    /// Whether the parts fit each other.
    pub(super) fn check(&self) -> Result<()> {
        let has_build = |column: usize| column < self.build_forms.len();
        let fits_output = |column: &OutputColumn| match *column {
            OutputColumn::Build(column) => self.kind.gives_build_columns() && has_build(column),
            OutputColumn::Probe(_) => self.kind.gives_probe_columns(),
            OutputColumn::Mark => self.kind.gives_mark(),
        };
        if !self.output.iter().all(fits_output) {
            return Err(Error::Form("a join's output has a column that its kind does not give"));
        }
        if self.kind == JoinKind::LeftNotIn && (self.keys.len() != 1 || self.nulls_are_equal || self.residual.is_some())
        {
            return Err(Error::Form("NOT IN with more than one key and nothing else"));
        }
        if !self.keys.iter().all(|(build, _)| has_build(*build)) {
            return Err(Error::Form("a join's key is no column of its build side"));
        }
        let fits_residual = |column: &OutputColumn| match *column {
            OutputColumn::Build(column) => has_build(column),
            OutputColumn::Probe(_) => true,
            OutputColumn::Mark => false,
        };
        if !self.residual.iter().flat_map(|residual| &residual.columns).all(fits_residual) {
            return Err(Error::Form("a join's condition has a column that there is not"));
        }
        Ok(())
    }

    /// Whether it is enough to know that a probe row has a match, whichever.
    pub(super) fn asks_existence(&self) -> bool {
        self.residual.is_none() && !self.kind.gives_build_columns()
    }

    /// Whether a build column's values are needed once the keys are known.
    pub(super) fn gives_build(&self, column: usize) -> bool {
        let residual = self.residual.iter().flat_map(|residual| &residual.columns);
        self.output.iter().chain(residual).any(|output| *output == OutputColumn::Build(column))
    }

    /// Whether a build column's values are needed at all.
    pub(super) fn uses_build(&self, column: usize) -> bool {
        self.gives_build(column) || self.keys.iter().any(|(build, _)| *build == column)
    }
}
