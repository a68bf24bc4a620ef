//! What nodes share, as the machines of one data centre do: a network with names, services and a way to the API server, disks that pods claim, and images.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kube::Client;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;
use types::SystemClock;

use super::hosts::Hosts;
use super::image::Image;
use super::network::{Bridge, HERE};
use super::volume::{self, Disk};
use super::{program, services};
use crate::plane::Cluster;
use crate::road::Road;

/// There is one at a time: they all have the same addresses, and this machine's cores.
static ONE: OnceLock<Arc<tokio::sync::Mutex<()>>> = OnceLock::new();

/// A place for the pods of one namespace.
pub(crate) struct Site {
    pub(super) ground: Arc<Ground>,
    /// Ended with it.
    _tasks: JoinSet<()>,
}

/// What nodes, and the tasks of their site, have of it.
pub(super) struct Ground {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) hosts: Hosts,
    /// The way of pods to the API server.
    pub(super) road: Road,
    pub(super) clock: SystemClock,
    image: Image,
    /// What other images than the one of the program under test say besides, by their names.
    images: Mutex<HashMap<String, Vec<String>>>,
    /// Goes with the bridge.
    folder: PathBuf,
    pub(super) bridge: Bridge,
    /// Last: the next one may begin when the bridge is gone.
    _one: OwnedMutexGuard<()>,
}

impl Site {
    /// A place for the pods of the cluster's namespace; `None`, and one line, where this machine cannot be one.
    pub(crate) async fn open(cluster: &Cluster) -> Option<Arc<Site>> {
        let one = Arc::clone(ONE.get_or_init(Arc::default)).lock_owned().await;
        let folder = TempDir::with_prefix("kiln-site-").expect("a temporary folder can be made");
        let (Some(program), Some(bridge)) = (program(), Bridge::open(folder.path())) else {
            assert!(
                std::env::var_os("KILN_TEST_K8S").is_none(),
                "pods need root, the program `ip`, and `cargo build --workspace --bins`, or a kiln that KILN_BIN names"
            );
            eprintln!("skipped: pods need root, the program `ip`, and a kiln");
            return None;
        };
        let folder = folder.keep();
        let image = tokio::task::block_in_place(|| Image::of(&program));
        let ground = Arc::new(Ground {
            client: cluster.client.clone(),
            namespace: cluster.namespace.clone(),
            hosts: Hosts::in_folder(&folder),
            road: Road::at((HERE, 0).into(), cluster.api_server()).await,
            clock: SystemClock::new(),
            image,
            images: Mutex::default(),
            folder,
            bridge,
            _one: one,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(volume::provide(Arc::clone(&ground)));
        tasks.spawn(services::forward(Arc::clone(&ground)));
        Some(Arc::new(Site { ground, _tasks: tasks }))
    }

    /// From now on the image of this name has these variables, `NAME=value`, beside those of all.
    pub(crate) fn image(&self, name: &str, variables: &[&str]) {
        let variables = variables.iter().map(|one| (*one).to_owned()).collect();
        self.ground.images.lock().insert(name.to_owned(), variables);
    }

    /// A way of pods to somebody who listens on this machine.
    pub(crate) async fn way_to(&self, listener: SocketAddr) -> Road {
        Road::at((HERE, 0).into(), listener).await
    }

    /// What the containers of pods of this name have written.
    pub(crate) fn log(&self, pod: &str) -> String {
        std::fs::read_to_string(self.ground.log(pod)).unwrap_or_default()
    }

    /// The disk that a claim has got.
    pub(crate) async fn disk(&self, claim: &str) -> Disk {
        volume::disk(&self.ground, claim).await
    }
}

impl Ground {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn log(&self, pod: &str) -> PathBuf {
        self.folder.join(format!("{pod}.log"))
    }

    /// The root of all images.
    pub(super) fn root(&self) -> &Path {
        &self.image.root
    }

    /// The variables of whoever runs in an image: its own, and where the API server is.
    pub(super) fn variables(&self, image: &str) -> Vec<String> {
        let mut variables = self.image.variables.clone();
        variables.extend(self.images.lock().get(image).into_iter().flatten().cloned());
        let address = self.road.address;
        variables.push(format!("KUBERNETES_SERVICE_HOST={}", address.ip()));
        variables.push(format!("KUBERNETES_SERVICE_PORT={}", address.port()));
        variables
    }
}
