//! Number of rows that are fetched together: a few pages of local files; of remote ones as many as make a request worth
//! its latency.

use super::ShardReader;
use crate::{ColumnDef, ShardMeta};

/// Rows of a run of local pages: four pages, so that memory use is small and dictionaries are rarely decoded again.
pub const FETCH_ROWS_MIN: usize = 4 * 65_536;
/// Size below which a request over the network takes no less time.
const REQUEST_BYTES_MIN: u64 = 256 << 10;
/// Largest size of a run in memory, all columns together.
const FETCH_BYTES_MAX: u64 = 16 << 20;

impl ShardReader {
    /// Returns the number of rows fetched together, a multiple of [`FETCH_ROWS_MIN`].
    pub(crate) fn fetch_rows(&self, row_group: usize, leaves: &[usize]) -> usize {
        if !self.is_remote() {
            return FETCH_ROWS_MIN;
        }
        let group = self.file().metadata.metadata().row_group(row_group);
        let bytes = |leaf: &usize| u64::try_from(group.column(*leaf).compressed_size()).unwrap_or_default();
        remote_rows(self.file().rows(row_group) as u64, &leaves.iter().map(bytes).collect::<Vec<_>>())
    }
}

/// Returns the number of rows of a remote row group worth fetching together, estimated from catalog statistics; a
/// multiple of [`FETCH_ROWS_MIN`].
#[must_use]
pub fn remote_fetch_rows(meta: &ShardMeta, row_group: usize, columns: &[ColumnDef]) -> usize {
    let Some(rows) = meta.row_groups.get(row_group).map(|group| group.rows) else { return FETCH_ROWS_MIN };
    let part = |bytes: u64| u128::from(bytes) * u128::from(rows) / u128::from(meta.rows.max(1));
    let known = columns.iter().filter_map(|column| meta.column(column.id));
    remote_rows(rows, &known.map(|known| u64::try_from(part(known.bytes)).unwrap_or(u64::MAX)).collect::<Vec<_>>())
}

/// Chooses so many rows that each chunk of [`REQUEST_BYTES_MIN`] or more gives a request of that size, unless all
/// chunks together exceed [`FETCH_BYTES_MAX`].
fn remote_rows(rows: u64, chunks: &[u64]) -> usize {
    let share = |bytes: u64, of: u64| u128::from(rows) * u128::from(bytes) / u128::from(of.max(1));
    let narrowest = chunks.iter().copied().filter(|bytes| REQUEST_BYTES_MIN <= *bytes).min();
    let worth = narrowest.map_or_else(|| u128::from(rows), |narrowest| share(REQUEST_BYTES_MIN, narrowest));
    let most = share(FETCH_BYTES_MAX, chunks.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)));
    let segments = worth.div_ceil(FETCH_ROWS_MIN as u128).min(most / FETCH_ROWS_MIN as u128).max(1);
    usize::try_from(segments).map_or(usize::MAX, |segments| segments.saturating_mul(FETCH_ROWS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_requests_are_worth_their_way_as_far_as_memory_goes() {
        const ROWS: u64 = 4 * FETCH_ROWS_MIN as u64;
        let segments = |chunks: &[u64]| remote_rows(ROWS, chunks) / FETCH_ROWS_MIN;
        assert_eq!(segments(&[8 << 20, 1 << 20]), 1, "a quarter of each is enough");
        assert_eq!(segments(&[8 << 20, 512 << 10]), 2);
        assert_eq!(segments(&[1 << 20, 300 << 10]), 4);
        assert_eq!(segments(&[2 << 20, 1 << 10]), 1, "what is less at all counts no more");
        assert_eq!(segments(&[1 << 10, 100 << 10]), 4, "all of it is one request");
        assert_eq!(segments(&[20 << 20, 300 << 10]), 3);
        assert_eq!(segments(&[200 << 20, 300 << 10]), 1);
        assert_eq!((segments(&[]), remote_rows(0, &[0])), (4, FETCH_ROWS_MIN));
    }
}
