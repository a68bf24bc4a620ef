//! Choice of the index for a statement's conditions.

use catalog::{RowIndex, Table};
use datafusion::logical_expr::Operator;
use rowstore::{Value, encode_key_value};
use types::{ColumnId, Oid, SqlResult};

use super::key_range::{KeyBound, KeyRange};

/// Comparison of a column with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// Returns the comparison with exchanged sides.
    pub fn reversed(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
        }
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        })
    }
}

/// Returns the comparison of an operator; `None` for operators that no index supports.
pub fn comparison_of(operator: Operator) -> Option<Comparison> {
    Some(match operator {
        Operator::Eq => Comparison::Equal,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::AtMost,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::AtLeast,
        _ => return None,
    })
}

/// Access path: an index and the conditions that bound its range, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexAccess {
    pub index: Oid,
    pub columns: Vec<ColumnId>,
    /// Equality conditions, one for each leading column.
    equal: Vec<usize>,
    /// Bounds of the column that follows them.
    lower: KeyBound<usize>,
    upper: KeyBound<usize>,
    /// True if at most one row has the key.
    pub is_unique: bool,
}

impl IndexAccess {
    /// Returns the most selective index of the table, judged by the conditions alone; `None` if no index helps.
    pub fn choose(table: &Table, conditions: &[(ColumnId, Comparison)]) -> Option<Self> {
        let mut best: Option<Self> = None;
        for access in table.row_indexes().filter_map(|index| Self::try_new(index, conditions)) {
            if best.as_ref().is_none_or(|best| best.rank() < access.rank()) {
                best = Some(access);
            }
        }
        best
    }

    fn try_new(index: RowIndex<'_>, conditions: &[(ColumnId, Comparison)]) -> Option<Self> {
        let condition = |column: ColumnId, wanted: Comparison| {
            conditions.iter().position(|(of, comparison)| *of == column && *comparison == wanted)
        };
        let equal: Vec<usize> =
            index.columns.iter().map_while(|column| condition(*column, Comparison::Equal)).collect();
        let next = index.columns.get(equal.len()).copied();
        let bound = |included: Comparison, excluded: Comparison| {
            let Some(next) = next else { return KeyBound::None };
            let excluded = condition(next, excluded).map(KeyBound::Excluded);
            excluded.or_else(|| condition(next, included).map(KeyBound::Included)).unwrap_or(KeyBound::None)
        };
        let least = bound(Comparison::AtLeast, Comparison::Greater);
        let greatest = bound(Comparison::AtMost, Comparison::Less);
        if equal.is_empty() && least == KeyBound::None && greatest == KeyBound::None {
            return None;
        }
        let is_unique = index.unique && next.is_none();
        Some(Self {
            index: index.oid,
            columns: index.columns.to_vec(),
            equal,
            lower: least,
            upper: greatest,
            is_unique,
        })
    }

    /// Returns the selectivity rank: the higher it is, the fewer rows are expected.
    pub fn rank(&self) -> (bool, usize, usize) {
        let bounds = [self.lower, self.upper].iter().filter(|bound| **bound != KeyBound::None).count();
        (self.is_unique, self.equal.len(), bounds)
    }

    /// Returns the conditions that bound the range.
    pub fn conditions(&self) -> impl Iterator<Item = usize> {
        let bounds = [self.lower, self.upper].into_iter().filter_map(|bound| match bound {
            KeyBound::None => None,
            KeyBound::Included(condition) | KeyBound::Excluded(condition) => Some(condition),
        });
        self.equal.iter().copied().chain(bounds)
    }

    /// Returns the columns of the index that vary within the range, in order.
    pub fn varying_columns(&self) -> &[ColumnId] {
        &self.columns[self.equal.len()..]
    }

    /// Returns the range of keys for the `value` of each condition, which must have the column's type; `None` if a
    /// value is NULL, so that no row can match.
    pub fn range<'a>(&self, value: impl Fn(usize) -> SqlResult<Value<'a>>) -> SqlResult<Option<KeyRange>> {
        let mut start = Vec::new();
        for condition in &self.equal {
            let value = value(*condition)?;
            if value.is_null() {
                return Ok(None);
            }
            encode_key_value(value, &mut start);
        }
        let bound = |bound: KeyBound<usize>| {
            SqlResult::Ok(match bound {
                KeyBound::None => KeyBound::None,
                KeyBound::Included(condition) => KeyBound::Included(value(condition)?),
                KeyBound::Excluded(condition) => KeyBound::Excluded(value(condition)?),
            })
        };
        let (least, greatest) = (bound(self.lower)?, bound(self.upper)?);
        let is_null = |bound: &KeyBound<Value<'_>>| match bound {
            KeyBound::None => false,
            KeyBound::Included(value) | KeyBound::Excluded(value) => value.is_null(),
        };
        Ok((!is_null(&least) && !is_null(&greatest)).then(|| KeyRange::between(&start, least, greatest)))
    }
}
