//! What is kept of each group: counts, totals, the least and the greatest.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{StringViewArray, StringViewBuilder};

use crate::expression::float_order;
use crate::{Bits, Bounds, Column, Data, Error, Result};

/// A thing that is kept of the rows of a group.
#[derive(Debug, Clone)]
pub struct StateSpec {
    pub kept: Kept,
    /// The column whose values it is of; of rows alone without one. NULLs do not count.
    pub column: Option<usize>,
    /// A column that is true for the rows that count.
    pub filter: Option<usize>,
}

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// How many there are. Gives integers.
    Count,
    /// The sum of integers or of digits of numerics; 0 of none. Gives 128 bits.
    Sum,
    /// The sum of `float8`; 0 of none.
    FloatSum,
    /// The least value; NULL of none.
    Min,
    /// The greatest value; NULL of none.
    Max,
}

/// Groups so few that sums of them are kept several times, so that an addition need not wait for the one before.
const FEW_GROUPS: usize = 64;
const REPLICAS: usize = 4;
/// The greatest sum of integers that lets one more batch be added in 64 bits.
const BATCH_SUM_MAX: i128 = 1 << 62;

/// What is kept of all groups.
#[derive(Debug)]
pub(super) enum State {
    Count(Vec<i64>),
    Sum(Vec<i128>),
    FloatSum(Vec<f64>),
    Least { values: Least, is_max: bool },
}

/// The least or the greatest values; none where there was none yet.
#[derive(Debug)]
pub(super) enum Least {
    Unknown(usize),
    Ints(Vec<Option<i64>>),
    Wide(Vec<Option<i128>>),
    Floats(Vec<Option<f64>>),
    Texts(Vec<Option<Box<str>>>),
}

impl State {
    pub(super) fn new(kept: Kept) -> Self {
        match kept {
            Kept::Count => Self::Count(Vec::new()),
            Kept::Sum => Self::Sum(Vec::new()),
            Kept::FloatSum => Self::FloatSum(Vec::new()),
            Kept::Min => Self::Least { values: Least::Unknown(0), is_max: false },
            Kept::Max => Self::Least { values: Least::Unknown(0), is_max: true },
        }
    }

    /// Makes room for so many groups.
    pub(super) fn resize(&mut self, groups: usize) {
        match self {
            Self::Count(counts) => counts.resize(groups, 0),
            Self::Sum(sums) => sums.resize(groups, 0),
            Self::FloatSum(sums) => sums.resize(groups, 0.0),
            Self::Least { values, .. } => values.resize(groups),
        }
    }

    /// Adds rows: the group of each, and its value. `counts` are the rows that do, all without it.
    pub(super) fn add(&mut self, groups: &[u32], column: Option<&Column>, counts: Option<&Bits>) -> Result<()> {
        match self {
            Self::Count(totals) => {
                add_counts(totals, groups, counts);
                Ok(())
            }
            Self::Sum(sums) => match &column.ok_or(Error::Form("a sum of nothing"))?.data {
                Data::Ints { values, bounds } => add_ints(sums, groups, values, *bounds, counts),
                Data::Wide(values) => add_wide(sums, groups, values, counts),
                _ => Err(Error::Form("a sum of what is no exact number")),
            },
            Self::FloatSum(sums) => {
                let Data::Floats(values) = &column.ok_or(Error::Form("a sum of nothing"))?.data else {
                    return Err(Error::Form("a sum of what is no float8"));
                };
                each(counts, groups.len(), |row| sums[groups[row] as usize] += values[row]);
                if sums.iter().all(|sum| sum.is_finite()) { Ok(()) } else { Err(Error::Value("an infinite sum")) }
            }
            Self::Least { values, is_max } => {
                values.add(*is_max, groups, column.ok_or(Error::Form("the least of nothing"))?, counts)
            }
        }
    }

    /// Adds another's groups, each to the one named for it.
    pub(super) fn merge(&mut self, groups: &[u32], other: &Self) -> Result<()> {
        let pairs = || groups.iter().map(|group| *group as usize).enumerate();
        match (self, other) {
            (Self::Count(mine), Self::Count(theirs)) => pairs().for_each(|(from, to)| mine[to] += theirs[from]),
            (Self::Sum(mine), Self::Sum(theirs)) => {
                for (from, to) in pairs() {
                    mine[to] = mine[to].checked_add(theirs[from]).ok_or(Error::Value("a sum beyond 128 bits"))?;
                }
            }
            (Self::FloatSum(mine), Self::FloatSum(theirs)) => pairs().for_each(|(from, to)| mine[to] += theirs[from]),
            (Self::Least { values, is_max }, Self::Least { values: theirs, .. }) => {
                values.merge(*is_max, groups, theirs)?
            }
            _ => return Err(Error::Form("states of another kind")),
        }
        Ok(())
    }

    /// The state of each group as a column. `like` is a column of the form that the values had, for groups that had none.
    pub(super) fn column(self, groups: usize) -> Result<Column> {
        let mut state = self;
        state.resize(groups);
        Ok(match state {
            Self::Count(counts) => ints(counts),
            Self::Sum(sums) if sums.iter().any(|sum| BEYOND_DIGITS <= sum.saturating_abs()) => {
                return Err(Error::Value("a sum of more than 38 digits"));
            }
            Self::Sum(sums) => Column::new(narrowest(sums)),
            Self::FloatSum(sums) => Column::new(Data::Floats(Arc::new(sums))),
            Self::Least { values, .. } => values.column(),
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Count(counts) => counts.capacity() * 8,
            Self::Sum(sums) => sums.capacity() * 16,
            Self::FloatSum(sums) => sums.capacity() * 8,
            Self::Least { values, .. } => values.memory_bytes(),
        }
    }
}

fn ints(values: Vec<i64>) -> Column {
    let (min, max) = values.iter().fold((0, 0), |(min, max), value| (*value.min(&min), *value.max(&max)));
    Column::new(Data::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } })
}

/// Digits that a sum may have.
const BEYOND_DIGITS: i128 = 10_i128.pow(38);

fn narrowest(sums: Vec<i128>) -> Data {
    let (min, max) = sums.iter().fold((0, 0), |(min, max), sum| (*sum.min(&min), *sum.max(&max)));
    let bounds = Bounds { min, max };
    if !bounds.are_narrow() {
        return Data::Wide(Arc::new(sums));
    }
    #[expect(clippy::cast_possible_truncation, reason = "all lie within bounds of 64 bits")]
    let values = sums.iter().map(|sum| *sum as i64).collect();
    Data::Ints { values: Arc::new(values), bounds }
}

/// Tells of each row that counts.
fn each(counts: Option<&Bits>, rows: usize, tell: impl FnMut(usize)) {
    match counts {
        None => (0..rows).for_each(tell),
        Some(bits) => bits.ones().for_each(tell),
    }
}

fn add_counts(totals: &mut [i64], groups: &[u32], counts: Option<&Bits>) {
    if let (None, [total]) = (counts, &mut *totals) {
        *total += i64::try_from(groups.len()).expect("a batch has fewer rows");
        return;
    }
    if totals.len() <= FEW_GROUPS && counts.is_none() {
        let mut parts = [[0_i64; REPLICAS]; FEW_GROUPS];
        let chunks = groups.chunks_exact(REPLICAS);
        chunks.remainder().iter().for_each(|group| parts[*group as usize % FEW_GROUPS][0] += 1);
        for chunk in chunks {
            for (replica, group) in chunk.iter().enumerate() {
                parts[*group as usize % FEW_GROUPS][replica] += 1;
            }
        }
        totals.iter_mut().zip(&parts).for_each(|(total, parts)| *total += parts.iter().sum::<i64>());
        return;
    }
    each(counts, groups.len(), |row| totals[groups[row] as usize] += 1);
}

fn add_ints(sums: &mut [i128], groups: &[u32], values: &[i64], bounds: Bounds, counts: Option<&Bits>) -> Result<()> {
    let rows = groups.len() as i128;
    let is_small = bounds.min.abs().max(bounds.max.abs()) < BATCH_SUM_MAX / rows.max(1);
    if let (None, [sum]) = (counts, &mut *sums)
        && is_small
    {
        return add(sum, values.iter().sum::<i64>().into());
    }
    if is_small && sums.len() <= FEW_GROUPS && counts.is_none() {
        let mut parts = [[0_i64; REPLICAS]; FEW_GROUPS];
        let (group_chunks, value_chunks) = (groups.chunks_exact(REPLICAS), values.chunks_exact(REPLICAS));
        for (group, value) in group_chunks.remainder().iter().zip(value_chunks.remainder()) {
            parts[*group as usize % FEW_GROUPS][0] += value;
        }
        for (groups, values) in group_chunks.zip(value_chunks) {
            for (replica, (group, value)) in groups.iter().zip(values).enumerate() {
                parts[*group as usize % FEW_GROUPS][replica] += value;
            }
        }
        return sums.iter_mut().zip(&parts).try_for_each(|(sum, parts)| add(sum, parts.iter().sum::<i64>().into()));
    }
    let mut is_beyond = false;
    each(counts, groups.len(), |row| {
        let sum = &mut sums[groups[row] as usize];
        let (total, overflows) = sum.overflowing_add(values[row].into());
        *sum = total;
        is_beyond |= overflows;
    });
    if is_beyond { Err(Error::Value("a sum beyond 128 bits")) } else { Ok(()) }
}

fn add_wide(sums: &mut [i128], groups: &[u32], values: &[i128], counts: Option<&Bits>) -> Result<()> {
    let mut is_beyond = false;
    each(counts, groups.len(), |row| {
        let sum = &mut sums[groups[row] as usize];
        let (total, overflows) = sum.overflowing_add(values[row]);
        *sum = total;
        is_beyond |= overflows;
    });
    if is_beyond { Err(Error::Value("a sum beyond 128 bits")) } else { Ok(()) }
}

fn add(sum: &mut i128, value: i128) -> Result<()> {
    *sum = sum.checked_add(value).ok_or(Error::Value("a sum beyond 128 bits"))?;
    Ok(())
}

impl Least {
    fn resize(&mut self, groups: usize) {
        match self {
            Self::Unknown(count) => *count = groups,
            Self::Ints(values) => values.resize(groups, None),
            Self::Wide(values) => values.resize(groups, None),
            Self::Floats(values) => values.resize(groups, None),
            Self::Texts(values) => values.resize(groups, None),
        }
    }

    /// Takes the form of the first values.
    fn take_form(&mut self, data: &Data) -> Result<()> {
        if let Self::Unknown(groups) = *self {
            *self = match data {
                Data::Ints { .. } => Self::Ints(Vec::new()),
                Data::Wide(_) => Self::Wide(Vec::new()),
                Data::Floats(_) => Self::Floats(Vec::new()),
                Data::Codes { .. } | Data::Texts(_) => Self::Texts(Vec::new()),
                Data::Bools(_) => return Err(Error::Form("the least truth value")),
            };
            self.resize(groups);
        }
        // Digits that did not need 128 bits before may need them now.
        if let (Self::Ints(values), Data::Wide(_)) = (&*self, data) {
            *self = Self::Wide(values.iter().map(|value| value.map(i128::from)).collect());
        }
        Ok(())
    }

    fn add(&mut self, is_max: bool, groups: &[u32], column: &Column, counts: Option<&Bits>) -> Result<()> {
        self.take_form(&column.data)?;
        let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
        let rows = groups.len();
        match (self, &column.data) {
            (Self::Ints(least), Data::Ints { values, .. }) => each(counts, rows, |row| {
                replace(&mut least[groups[row] as usize], values[row], |new, old| new.cmp(old) == wanted);
            }),
            (Self::Wide(least), Data::Ints { values, .. }) => each(counts, rows, |row| {
                replace(&mut least[groups[row] as usize], values[row].into(), |new, old| new.cmp(old) == wanted);
            }),
            (Self::Wide(least), Data::Wide(values)) => each(counts, rows, |row| {
                replace(&mut least[groups[row] as usize], values[row], |new, old| new.cmp(old) == wanted);
            }),
            (Self::Floats(least), Data::Floats(values)) => each(counts, rows, |row| {
                replace(&mut least[groups[row] as usize], values[row], |new, old| float_order(*new, *old) == wanted);
            }),
            (Self::Texts(least), Data::Codes { codes, strings }) => each(counts, rows, |row| {
                replace_text(&mut least[groups[row] as usize], strings.get(codes[row]), wanted);
            }),
            (Self::Texts(least), Data::Texts(texts)) => each(counts, rows, |row| {
                replace_text(&mut least[groups[row] as usize], texts.value(row), wanted);
            }),
            _ => return Err(Error::Form("values of several types")),
        }
        Ok(())
    }

    fn merge(&mut self, is_max: bool, groups: &[u32], other: &Self) -> Result<()> {
        let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
        let pairs = || groups.iter().map(|group| *group as usize).enumerate();
        if let (Self::Unknown(count), known) = (&*self, other) {
            let form = match known {
                Self::Unknown(_) => return Ok(()),
                Self::Ints(_) => Self::Ints(vec![None; *count]),
                Self::Wide(_) => Self::Wide(vec![None; *count]),
                Self::Floats(_) => Self::Floats(vec![None; *count]),
                Self::Texts(_) => Self::Texts(vec![None; *count]),
            };
            *self = form;
        }
        if let (Self::Ints(values), Self::Wide(_)) = (&*self, other) {
            *self = Self::Wide(values.iter().map(|value| value.map(i128::from)).collect());
        }
        match (self, other) {
            (_, Self::Unknown(_)) => {}
            (Self::Ints(mine), Self::Ints(theirs)) => pairs().for_each(|(from, to)| {
                if let Some(value) = theirs[from] {
                    replace(&mut mine[to], value, |new, old| new.cmp(old) == wanted);
                }
            }),
            (Self::Wide(mine), Self::Ints(theirs)) => pairs().for_each(|(from, to)| {
                if let Some(value) = theirs[from] {
                    replace(&mut mine[to], value.into(), |new, old| new.cmp(old) == wanted);
                }
            }),
            (Self::Wide(mine), Self::Wide(theirs)) => pairs().for_each(|(from, to)| {
                if let Some(value) = theirs[from] {
                    replace(&mut mine[to], value, |new, old| new.cmp(old) == wanted);
                }
            }),
            (Self::Floats(mine), Self::Floats(theirs)) => pairs().for_each(|(from, to)| {
                if let Some(value) = theirs[from] {
                    replace(&mut mine[to], value, |new, old| float_order(*new, *old) == wanted);
                }
            }),
            (Self::Texts(mine), Self::Texts(theirs)) => pairs().for_each(|(from, to)| {
                if let Some(value) = &theirs[from] {
                    replace_text(&mut mine[to], value, wanted);
                }
            }),
            _ => return Err(Error::Form("values of several types")),
        }
        Ok(())
    }

    fn column(self) -> Column {
        match self {
            // No row had a value: of whatever form, all are NULL.
            Self::Unknown(groups) => Column {
                data: Data::Ints { values: Arc::new(vec![0; groups]), bounds: Bounds::of(0) },
                validity: Some(Arc::new(Bits::all(groups, false))),
            },
            Self::Ints(least) => {
                let validity = validity(&least);
                Column { validity, ..ints(least.into_iter().map(Option::unwrap_or_default).collect()) }
            }
            Self::Wide(least) => {
                let validity = validity(&least);
                Column { data: narrowest(least.into_iter().map(Option::unwrap_or_default).collect()), validity }
            }
            Self::Floats(least) => {
                let validity = validity(&least);
                let values = least.into_iter().map(Option::unwrap_or_default).collect();
                Column { data: Data::Floats(Arc::new(values)), validity }
            }
            Self::Texts(least) => {
                let validity = validity(&least);
                let mut builder = StringViewBuilder::with_capacity(least.len());
                least.iter().for_each(|value| builder.append_value(value.as_deref().unwrap_or_default()));
                let texts: StringViewArray = builder.finish();
                Column { data: Data::Texts(texts), validity }
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Unknown(_) => 0,
            Self::Ints(values) => values.capacity() * 16,
            Self::Wide(values) => values.capacity() * 32,
            Self::Floats(values) => values.capacity() * 16,
            Self::Texts(values) => {
                values.capacity() * 16 + values.iter().flatten().map(|text| text.len()).sum::<usize>()
            }
        }
    }
}

fn validity<T>(values: &[Option<T>]) -> Option<Arc<Bits>> {
    let has_none = values.iter().any(Option::is_none);
    has_none.then(|| Arc::new(Bits::of(values.len(), |row| values[row].is_some())))
}

fn replace<T>(least: &mut Option<T>, value: T, is_wanted: impl Fn(&T, &T) -> bool) {
    if least.as_ref().is_none_or(|old| is_wanted(&value, old)) {
        *least = Some(value);
    }
}

fn replace_text(least: &mut Option<Box<str>>, value: &str, wanted: Ordering) {
    if least.as_ref().is_none_or(|old| value.cmp(old) == wanted) {
        *least = Some(value.into());
    }
}
