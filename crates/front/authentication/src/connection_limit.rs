//! Limit of connections that closes the oldest for a new one, so that idle connections cannot block others.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Limit of the open connections of one kind.
#[derive(Debug)]
pub struct ConnectionLimit {
    connections_max: usize,
    /// Token of each open connection, oldest first; cancelled when the connection has to close or has ended.
    open: Mutex<VecDeque<CancellationToken>>,
}

/// Guard of a connection, which counts until it is dropped.
#[derive(Debug)]
pub struct CountedConnection(CancellationToken);

impl ConnectionLimit {
    /// Creates a limit of `most` connections, which must not be 0.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { connections_max: most, open: Mutex::default() })
    }

    /// Counts a new connection; if there are too many, the oldest is told to close.
    pub fn add(&self) -> CountedConnection {
        let counted = CancellationToken::new();
        let mut open = self.open.lock();
        open.retain(|connection| !connection.is_cancelled());
        while self.connections_max <= open.len() {
            open.pop_front().into_iter().for_each(|oldest| oldest.cancel());
        }
        open.push_back(counted.clone());
        CountedConnection(counted)
    }
}

impl CountedConnection {
    /// Returns a future that completes when the connection has to close.
    pub fn close_requested(&self) -> WaitForCancellationFutureOwned {
        self.0.clone().cancelled_owned()
    }
}

impl Drop for CountedConnection {
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
        let first = limit.add();
        drop(limit.add());
        let (second, first_closes) = (limit.add(), first.close_requested());
        assert!(first_closes.now_or_never().is_none(), "who has gone does not count");
        let third = limit.add();
        assert!(first.close_requested().now_or_never().is_some());
        assert!(second.close_requested().now_or_never().is_none() && third.close_requested().now_or_never().is_none());
    }
}
