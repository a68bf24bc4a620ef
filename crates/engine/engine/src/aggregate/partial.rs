//! Groups that are taken away before all rows are known, to be grouped again with others.

use std::sync::Arc;

use super::keys::KeyForm;
use super::state::State;
use super::{AggregateSpec, Aside, Groups, Kept, StateSpec};
use crate::{BATCH_ROWS, Batch, Bits, Column, Form, Result};

impl AggregateSpec {
    /// What groups rows that [`Groups::drain`] has given, into what [`Groups::finish`] would have given of all.
    #[must_use]
    pub fn of_partial(&self) -> Self {
        // The number of a set is one more key.
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
    /// What makes it of states, which a column has.
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
    /// Gives all groups away, a batch at a time: keys, what they determine, states, as [`Groups::finish`] does. A stretch of rows that has
    /// begun no longer has its groups to itself: none goes on early from here on.
    ///
    /// # Errors
    /// Those of `take`, and of [`Groups::finish`].
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
    /// As [`Groups::drain`].
    fn drain(self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let stride = self.keys.iter().map(KeyForm::words).sum::<usize>() + 1;
        for piece in self.pieces {
            drain(&self.keys, (&piece.words, stride), piece.len(), &piece.carried, &piece.states, take)?;
        }
        Ok(())
    }
}

/// Gives so many groups a batch at a time: the words of their keys, of which each has as many, what they determine, and their states.
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
