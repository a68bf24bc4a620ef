//! Startup, liveness and readiness probes of a container.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use types::{Clock, SystemClock};

/// Result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Started,
    Ready(bool),
    /// The container must be killed and restarted.
    Dead,
}

/// Probes a container until the receiver of the findings is dropped: first its startup, then its liveness and
/// readiness.
pub(super) async fn ask(container: Container, address: Ipv4Addr, findings: mpsc::Sender<Finding>) {
    if let Some(startup) = &container.startup_probe
        && !until_started(startup, &container, address).await
    {
        let _ = findings.send(Finding::Dead).await;
        return;
    }
    if findings.send(Finding::Started).await.is_err() {
        return;
    }
    let live = async {
        let Some(probe) = &container.liveness_probe else { return std::future::pending().await };
        let mut failures = 0;
        while failures < probe.failure_threshold.unwrap_or(3) {
            pause(probe).await;
            failures = if answers(probe, &container, address).await { 0 } else { failures + 1 };
        }
        let _ = findings.send(Finding::Dead).await;
    };
    let ready = async {
        let Some(probe) = &container.readiness_probe else {
            let _ = findings.send(Finding::Ready(true)).await;
            return std::future::pending().await;
        };
        let (mut failures, mut is_ready) = (0, false);
        loop {
            failures = if answers(probe, &container, address).await { 0 } else { failures + 1 };
            let was_ready = is_ready;
            is_ready = failures == 0 || (was_ready && failures < probe.failure_threshold.unwrap_or(3));
            if is_ready != was_ready && findings.send(Finding::Ready(is_ready)).await.is_err() {
                return;
            }
            pause(probe).await;
        }
    };
    tokio::select! {
        () = live => {}
        () = ready => {}
    }
}

async fn until_started(probe: &Probe, container: &Container, address: Ipv4Addr) -> bool {
    for _ in 0..probe.failure_threshold.unwrap_or(3) {
        if answers(probe, container, address).await {
            return true;
        }
        pause(probe).await;
    }
    false
}

async fn pause(probe: &Probe) {
    let seconds = probe.period_seconds.unwrap_or(10).unsigned_abs();
    SystemClock::new().sleep(Duration::from_secs(seconds.into())).await;
}

/// Returns whether a probe succeeds within its timeout.
async fn answers(probe: &Probe, container: &Container, address: Ipv4Addr) -> bool {
    let port = match (&probe.http_get, &probe.tcp_socket) {
        (Some(get), _) => &get.port,
        (None, Some(socket)) => &socket.port,
        (None, None) => panic!("other probes are not known here"),
    };
    let port = match port {
        IntOrString::Int(port) => *port,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let port = ports.find(|port| port.name.as_ref() == Some(name)).expect("a probe's port is the container's");
            port.container_port
        }
    };
    let port = u16::try_from(port).expect("ports are small");
    let path = probe.http_get.as_ref().map(|get| get.path.as_deref().unwrap_or("/"));
    let asked = async {
        let mut stream = TcpStream::connect((address, port)).await?;
        let Some(path) = path else { return Ok(true) };
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.") && answer.ends_with(b" 200"))
    };
    let seconds = probe.timeout_seconds.unwrap_or(1).unsigned_abs();
    tokio::time::timeout(Duration::from_secs(seconds.into()), asked).await.is_ok_and(|good| good.unwrap_or(false))
}
