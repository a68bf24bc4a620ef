//! A limit of connections that closes the oldest for a newer one: whoever holds many open without a word keeps nobody out.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Connections of one kind.
#[derive(Debug)]
pub struct ConnectionLimit {
    most: usize,
    /// The oldest first. Cancelled where the connection is to be closed, or does not count any more.
    open: Mutex<VecDeque<CancellationToken>>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub struct Counted(CancellationToken);

impl ConnectionLimit {
    /// At most `most` at once, which is not 0.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Counts one more; where that is too many, the oldest is to be closed.
    pub fn count(&self) -> Counted {
        let counted = CancellationToken::new();
        let mut open = self.open.lock();
        open.retain(|connection| !connection.is_cancelled());
        while self.most <= open.len() {
            open.pop_front().into_iter().for_each(|oldest| oldest.cancel());
        }
        open.push_back(counted.clone());
        Counted(counted)
    }
}

impl Counted {
    /// Completes when the connection is to be closed.
    pub fn is_to_close(&self) -> WaitForCancellationFutureOwned {
        self.0.clone().cancelled_owned()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_oldest_goes_for_one_too_many() {
        let limit = ConnectionLimit::new(2);
        let first = limit.count();
        drop(limit.count());
        let (second, first_closes) = (limit.count(), first.is_to_close());
        assert!(first_closes.now_or_never().is_none(), "who has gone does not count");
        let third = limit.count();
        assert!(first.is_to_close().now_or_never().is_some());
        assert!(second.is_to_close().now_or_never().is_none() && third.is_to_close().now_or_never().is_none());
    }
}
