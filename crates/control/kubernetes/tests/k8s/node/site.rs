//! Parts that the nodes of a test share, like the machines of a data centre: network, host names, services, a proxy to
//! the API server, claimed volumes and images.

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
use crate::proxy::Proxy;

/// Lock that allows one site at a time, because all use the same addresses and the cores of this machine.
static ONE: OnceLock<Arc<tokio::sync::Mutex<()>>> = OnceLock::new();

/// Environment for the nodes and pods of one namespace.
pub(crate) struct Site {
    pub(super) ground: Arc<Ground>,
    /// Tasks of the site, aborted on drop.
    _tasks: JoinSet<()>,
}

/// State that nodes and the tasks of their site share.
pub(super) struct Ground {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) hosts: Hosts,
    /// Proxy by which pods reach the API server.
    pub(super) road: Proxy,
    pub(super) clock: SystemClock,
    image: Image,
    /// Additional environment variables of images, by the image's name.
    images: Mutex<HashMap<String, Vec<String>>>,
    /// Folder of the site, deleted together with the bridge.
    folder: PathBuf,
    pub(super) bridge: Bridge,
    /// Lock of the site. Declared last, so that it is released after the bridge is gone.
    _one: OwnedMutexGuard<()>,
}

impl Site {
    /// Opens a site for the cluster's namespace. If this machine cannot run pods, prints a line and returns `None`.
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
            road: Proxy::bind((HERE, 0).into(), cluster.api_server()).await,
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

    /// Adds environment variables, as `NAME=value`, to the image of this name.
    pub(crate) fn image(&self, name: &str, variables: &[&str]) {
        let variables = variables.iter().map(|one| (*one).to_owned()).collect();
        self.ground.images.lock().insert(name.to_owned(), variables);
    }

    /// Opens a proxy by which pods reach a listener on this machine.
    pub(crate) async fn way_to(&self, listener: SocketAddr) -> Proxy {
        Proxy::bind((HERE, 0).into(), listener).await
    }

    /// Returns the output of the containers of all pods of this name.
    pub(crate) fn log(&self, pod: &str) -> String {
        std::fs::read_to_string(self.ground.log(pod)).unwrap_or_default()
    }

    /// Returns the disk of a volume claim.
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

    /// Returns the root file system of the image.
    pub(super) fn root(&self) -> &Path {
        &self.image.root
    }

    /// Returns the environment variables of an image, with the address of the API server.
    pub(super) fn variables(&self, image: &str) -> Vec<String> {
        let mut variables = self.image.variables.clone();
        variables.extend(self.images.lock().get(image).into_iter().flatten().cloned());
        let address = self.road.address;
        variables.push(format!("KUBERNETES_SERVICE_HOST={}", address.ip()));
        variables.push(format!("KUBERNETES_SERVICE_PORT={}", address.port()));
        variables
    }
}
