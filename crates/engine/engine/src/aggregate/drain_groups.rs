//! Draining of partial groups, for example to spill files, and the specification that aggregates them a second time.

use std::sync::Arc;

use super::aggregate_state::State;
use super::key_encoding::KeyEncoding;
use super::{AggregateKind, AggregateSpec, FlushedGroups, Groups, StateSpec};
use crate::{BATCH_ROWS, Batch, Bitmap, Column, PhysicalType, Result};

impl AggregateSpec {
    /// Returns the specification that merges the partial groups from [`Groups::drain`] into the result that
    /// [`Groups::finish`] would have returned for all rows.
    #[must_use]
    pub fn merge_spec(&self) -> Self {
        // The id of a grouping set is one more key.
        let keys = self.keys.len() + usize::from(!self.sets.is_empty());
        let first_state = keys + self.carried.len();
        let states = self.states.iter().zip(first_state..);
        let mut key_types = self.key_types.clone();
        if !key_types.is_empty() {
            key_types.resize(keys, PhysicalType::Ints);
        }
        Self {
            keys: (0..keys).collect(),
            carried: (keys..first_state).collect(),
            states: states.map(|(state, column)| state.merge_spec(column)).collect(),
            key_types,
            ..Self::default()
        }
    }
}

impl StateSpec {
    /// Returns the aggregate that merges partial states of this one, which are in `column`.
    #[must_use]
    pub fn merge_spec(&self, column: usize) -> Self {
        let kept = match self.kind {
            AggregateKind::Count | AggregateKind::Sum => AggregateKind::Sum,
            other => other,
        };
        Self { kind: kept, column: Some(column), filter: None }
    }
}

impl Groups {
    /// Passes all groups to `take`, batch by batch, and removes them. Columns are those of [`Groups::finish`]: keys,
    /// carried columns, states.
    ///
    /// Groups of the current run of clustered rows may be among them. From here on [`Groups::end_run`] therefore
    /// returns no groups.
    ///
    /// # Errors
    /// Errors of `take` and of [`Groups::finish`].
    pub fn drain(&mut self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let spec = match self.spec.clustered {
            Some(_) => Arc::new(AggregateSpec { clustered: None, ..(*self.spec).clone() }),
            None => Arc::clone(&self.spec),
        };
        let next = Self::with_first_check(&spec, self.reduction.first_check());
        let all = std::mem::replace(self, next).with_border_merged()?;
        if !all.spec.sets.is_empty() {
            let rows = if all.is_empty() { return Ok(()) } else { all.finish()? };
            return (0..).map_while(|number| rows.batch(number)).try_for_each(take);
        }
        if all.has_flushed() {
            return all.flush_to_partitions()?.into_iter().try_for_each(|aside| aside.drain(take));
        }
        let Some(table) = &all.table else { return Ok(()) };
        let carried = all.carried.iter().map(|carried| carried.concat()).collect::<Result<Vec<_>>>()?;
        drain(&all.keys, (table.key_words(), table.stride()), table.len(), &carried, &all.states, take)
    }
}

impl FlushedGroups {
    /// Passes all groups to `take`, batch by batch, like [`Groups::drain`].
    fn drain(self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let stride = self.keys.iter().map(KeyEncoding::word_count).sum::<usize>() + 1;
        for piece in self.runs {
            drain(&self.keys, (&piece.key_words, stride), piece.len(), &piece.carried, &piece.states, take)?;
        }
        Ok(())
    }
}

/// Passes `groups` groups to `take`, batch by batch, given the words of their keys, `stride` for each, carried columns
/// and states.
fn drain(
    keys: &[KeyEncoding],
    (words, stride): (&[i64], usize),
    groups: usize,
    carried: &[Column],
    states: &[State],
    take: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    for start in (0..groups).step_by(BATCH_ROWS) {
        let end = groups.min(start + BATCH_ROWS);
        let words = &words[start * stride..end * stride];
        let mut columns = Vec::with_capacity(keys.len() + carried.len() + states.len());
        let mut at = 0;
        for (key, form) in keys.iter().enumerate() {
            let is_null = |row: usize| words[row * stride + stride - 1] >> key & 1 == 1;
            let has_null = (0..end - start).any(is_null);
            let validity = has_null.then(|| Arc::new(Bitmap::from_fn(end - start, |row| !is_null(row))));
            columns.push(Column { data: form.decode_few(words, stride, at)?, validity });
            at += form.word_count();
        }
        columns.extend(carried.iter().map(|column| column.slice(start, end)));
        for state in states {
            columns.push(state.slice(start..end).into_column(end - start)?);
        }
        take(Batch { rows: end - start, columns })?;
    }
    Ok(())
}
