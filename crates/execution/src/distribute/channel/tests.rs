//! Claims about connections to workers: how long they are known.

use datafusion_distributed::GetWorkerInfoRequest;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, DuplexStream};

use super::*;

/// Opens streams and keeps their other ends, until it is told to open none any more.
#[derive(Debug, Default)]
struct Ends(Mutex<Option<Vec<DuplexStream>>>);

#[async_trait]
impl Dial for Ends {
    async fn dial(&self, _: &Url) -> io::Result<Box<dyn ByteStream>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut ends = self.0.lock();
        ends.as_mut().ok_or(io::ErrorKind::ConnectionRefused)?.push(theirs);
        Ok(Box::new(ours))
    }
}

async fn ask(channels: &Channels, worker: &Url) -> DfResult<GetWorkerInfoResponse> {
    channels.get_worker_client_for_url(worker).await?.get_worker_info(GetWorkerInfoRequest {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_forgotten_when_it_ends_or_cannot_be_opened() {
    let ends = Arc::new(Ends(Mutex::new(Some(Vec::new()))));
    let channels = Channels::new(Arc::clone(&ends) as Arc<dyn Dial>);
    let worker = Url::parse("http://127.0.0.1:1/a").expect("it is an address");
    let other = Url::parse("http://127.0.0.1:1/b").expect("it is an address");
    let asking = tokio::spawn({
        let (channels, worker) = (channels.clone(), worker.clone());
        async move { ask(&channels, &worker).await }
    });
    // The first words of HTTP/2 have come: it is connected.
    let mut end = loop {
        if let Some(end) = ends.0.lock().as_mut().and_then(Vec::pop) {
            break end;
        }
        tokio::task::yield_now().await;
    };
    end.read_exact(&mut [0; 24]).await.expect("it speaks");
    assert_eq!(channels.open.count(), 1);
    drop(end);
    asking.await.expect("it does not panic").expect_err("the worker is gone");
    while channels.open.count() != 0 {
        // The end is noticed by a task of its own.
        tokio::task::yield_now().await;
    }
    *ends.0.lock() = None;
    for worker in [&worker, &other] {
        let error = ask(&channels, worker).await.expect_err("nobody is there");
        assert!(error.to_string().contains("cannot be reached"), "{error}");
    }
    assert_eq!(channels.open.count(), 0);
}
