//! Draining of partial groups, for example to spill files, and the specification that aggregates them a second time.

use std::sync::Arc;

use super::keys::KeyForm;
use super::state::State;
use super::{AggregateSpec, Aside, Groups, Kept, StateSpec};
use crate::{BATCH_ROWS, Batch, Bits, Column, Form, Result};

impl AggregateSpec {
    /// Returns the specification that merges the partial groups from [`Groups::drain`] into the result that
    /// [`Groups::finish`] would have returned for all rows.
    #[must_use]
    pub fn of_partial(&self) -> Self {
        // The id of a grouping set is one more key.
        let keys = self.keys.len() + usize::from(!self.sets.is_empty());
        let first_state = keys + self.carried.len();
        let states = self.states.iter().zip(first_state..);
        let mut key_forms = self.key_forms.clone();
        if !key_forms.is_empty() {
            key_forms.resize(keys, Form::Ints);
        }
        Self {
            keys: (0..keys).collect(),
            carried: (keys..first_state).collect(),
            states: states.map(|(state, column)| state.of_partial(column)).collect(),
            key_forms,
            ..Self::default()
        }
    }
}

impl StateSpec {
    /// Returns the aggregate that merges partial states of this one, which are in `column`.
    #[must_use]
    pub fn of_partial(&self, column: usize) -> Self {
        let kept = match self.kept {
            Kept::Count | Kept::Sum => Kept::Sum,
            other => other,
        };
        Self { kept, column: Some(column), filter: None }
    }
}

impl Groups {
    /// Passes all groups to `take`, batch by batch, and removes them. Columns are those of [`Groups::finish`]: keys,
    /// carried columns, states.
    ///
    /// Groups of the current run of clustered rows may be among them. From here on [`Groups::end_stretch`] therefore
    /// returns no groups.
    ///
    /// # Errors
    /// Errors of `take` and of [`Groups::finish`].
    pub fn drain(&mut self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let spec = match self.spec.clustered {
            Some(_) => Arc::new(AggregateSpec { clustered: None, ..(*self.spec).clone() }),
            None => Arc::clone(&self.spec),
        };
        let next = Self::looking_at(&spec, self.reduction.few());
        let all = std::mem::replace(self, next).whole()?;
        if !all.spec.sets.is_empty() {
            let rows = if all.is_empty() { return Ok(()) } else { all.finish()? };
            return (0..).map_while(|number| rows.batch(number)).try_for_each(take);
        }
        if all.is_aside() {
            return all.put_aside()?.into_iter().try_for_each(|aside| aside.drain(take));
        }
        let Some(table) = &all.table else { return Ok(()) };
        let carried = all.carried.iter().map(|carried| carried.column()).collect::<Result<Vec<_>>>()?;
        drain(&all.keys, (table.words(), table.stride()), table.len(), &carried, &all.states, take)
    }
}

impl Aside {
    /// Passes all groups to `take`, batch by batch, like [`Groups::drain`].
    fn drain(self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let stride = self.keys.iter().map(KeyForm::words).sum::<usize>() + 1;
        for piece in self.pieces {
            drain(&self.keys, (&piece.words, stride), piece.len(), &piece.carried, &piece.states, take)?;
        }
        Ok(())
    }
}

/// Passes `groups` groups to `take`, batch by batch, given the words of their keys, `stride` for each, carried columns
/// and states.
fn drain(
    keys: &[KeyForm],
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
            let validity = has_null.then(|| Arc::new(Bits::of(end - start, |row| !is_null(row))));
            columns.push(Column { data: form.few_values(words, stride, at)?, validity });
            at += form.words();
        }
        columns.extend(carried.iter().map(|column| column.slice(start, end)));
        for state in states {
            columns.push(state.part(start..end).column(end - start)?);
        }
        take(Batch { rows: end - start, columns })?;
    }
    Ok(())
}
