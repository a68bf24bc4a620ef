use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use pgwire::tokio::server::MaybeTls;
use session::client_wait::ClientWait;
use session::metrics::Metrics;
use tokio::net::{TcpListener, TcpStream};
use types::{ObjectNames, SessionZone, SqlType, SystemClock};

use super::*;

/// Bytes of a row: as many as are sent at a time.
const ROW_BYTES: usize = 64 << 10;

#[derive(Debug)]
struct NoNames;

impl ObjectNames for NoNames {
    fn format(&self, _: &SqlType, oid: u32) -> String {
        oid.to_string()
    }
}

/// Returns endless batches of one long row; `drawn` counts them.
fn endless(drawn: &Arc<AtomicUsize>) -> BoxStream<'static, SqlResult<RecordBatch>> {
    let row: ArrayRef = Arc::new(StringViewArray::from(vec!["x".repeat(ROW_BYTES)]));
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8View, true)]));
    let batch = RecordBatch::try_new(schema, vec![row]).expect("one column of one row");
    let drawn = Arc::clone(drawn);
    stream::repeat_with(move || {
        drawn.fetch_add(1, Ordering::Relaxed);
        Ok(batch.clone())
    })
    .boxed()
}

/// A statement yields after each buffer, so that it can be stopped even if there are always rows and the socket takes
/// them all.
#[tokio::test]
async fn between_two_looks_at_a_stop_one_buffer_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has one");
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (_client, _) = listener.accept().await.expect("it was connected");
    let (_, half) = tokio::io::split(MaybeTls::Plain(stream));
    let clock = Arc::new(SystemClock::new());
    let mut outbox = Outbox::new(half, Arc::<Metrics>::default(), ClientWait::new(clock));
    let column = OutputColumn { name: "a".to_owned(), sql_type: SqlType::Text, table: None, column: None };
    let drawn = Arc::<AtomicUsize>::default();
    let style = TextStyle { zone: SessionZone::UTC, names: Arc::new(NoNames) };
    let mut rows = Rows::new(endless(&drawn), vec![column], style, None);
    let mut sending = pin!(send(&mut rows, &mut outbox, &[Format::Text], None));
    for look in 1..=3 {
        assert!(futures::poll!(&mut sending).is_pending(), "there is no end of rows");
        assert!(drawn.load(Ordering::Relaxed) <= look, "{} buffers before look {look}", drawn.load(Ordering::Relaxed));
    }
    assert!(1 < drawn.load(Ordering::Relaxed), "the socket takes more than one");
}
