//! S3 server for the pods of a test.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::json;
use tempfile::TempDir;
use types::{Clock, SystemClock};

use crate::node::Site;
use crate::plane::Cluster;
use crate::proxy::Proxy;

const BUCKET: &str = "warehouse";
/// Name of the secret with the credentials of the bucket.
pub(crate) const SECRET: &str = "bucket";
/// Exit code of the script if there is no server to run.
const NO_SERVER: i32 = 3;
/// Time limit for the start; building the server for the first time takes minutes.
const START_TIME_MAX: Duration = Duration::from_secs(900);

/// Bucket that pods can reach, with the secret for it. Removed on drop.
pub(crate) struct Bucket {
    process: Child,
    folder: TempDir,
    _road: Proxy,
}

impl Bucket {
    /// Creates an empty bucket. If there is no server to run, prints a line and returns `None`.
    pub(crate) async fn open(cluster: &Cluster, site: &Site) -> Option<Bucket> {
        let folder = TempDir::with_prefix("kiln-s3-").expect("a temporary folder can be made");
        std::fs::create_dir_all(folder.path().join("buckets").join(BUCKET)).expect("the folder is ours");
        let (process, address) = serve(folder.path()).await?;
        let road = site.way_to(address).await;
        let secret = json!({
            "metadata": { "name": SECRET },
            "stringData": {
                "AWS_ENDPOINT_URL": format!("http://{}", road.address),
                "AWS_ACCESS_KEY_ID": "kiln-test",
                "AWS_SECRET_ACCESS_KEY": "kiln-test-secret",
                "AWS_REGION": "us-east-1",
            },
        });
        let secret: Secret = serde_json::from_value(secret).expect("it is a secret");
        cluster.all().create(&PostParams::default(), &secret).await.expect("an administrator may");
        Some(Bucket { process, folder, _road: road })
    }

    /// Returns the URL of a prefix in the bucket.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// Returns the number of objects in the bucket.
    pub(crate) fn objects(&self) -> usize {
        files(&self.folder.path().join("buckets").join(BUCKET))
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Fails if the server has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn serve(folder: &Path) -> Option<(Child, SocketAddr)> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = free.local_addr().expect("it listens");
    drop(free);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/servers/s3.sh");
    let mut process = Command::new(script)
        .arg(address.port().to_string())
        .arg(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the script is part of the tests");
    let clock = SystemClock::new();
    while TcpStream::connect(address).is_err() {
        if let Some(status) = process.try_wait().expect("it is our child") {
            let may_be_missing = std::env::var_os("KILN_TEST_K8S").is_none();
            assert!(may_be_missing && status.code() == Some(NO_SERVER), "the S3 server does not start");
            eprintln!("skipped: there is no S3 server");
            return None;
        }
        assert!(clock.monotonic() < START_TIME_MAX, "the S3 server serves in time");
        clock.sleep(Duration::from_millis(50)).await;
    }
    Some((process, address))
}

/// Returns the number of files below a folder.
fn files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .map(|entry| {
            let path = entry.expect("it is there").path();
            if path.is_dir() { files(&path) } else { 1 }
        })
        .sum()
}
