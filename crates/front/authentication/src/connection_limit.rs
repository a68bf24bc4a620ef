//! Limit of connections that closes the oldest for a new one, so that idle connections cannot block others.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Limit of the open connections of one kind.
#[derive(Debug)]
pub struct ConnectionLimit {
    most: usize,
    /// Token of each open connection, oldest first; cancelled when the connection has to close or has ended.
    open: Mutex<VecDeque<CancellationToken>>,
}

/// Guard of a connection, which counts until it is dropped.
#[derive(Debug)]
pub struct Counted(CancellationToken);

impl ConnectionLimit {
    /// Creates a limit of `most` connections, which must not be 0.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Counts a new connection; if there are too many, the oldest is told to close.
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
    /// Returns a future that completes when the connection has to close.
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
