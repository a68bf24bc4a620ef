//! Addresses of services: connections to a service are forwarded to a ready pod, as every node of a cluster does.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::site::Ground;

/// Label of an EndpointSlice with the name of its service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Endpoints of services.
#[derive(Default)]
struct Ways {
    /// EndpointSlices by name; each belongs to one service.
    slices: HashMap<String, Slice>,
}

struct Slice {
    service: String,
    /// Addresses of ready pods, with the name of the port.
    ends: Vec<(String, SocketAddr)>,
}

/// Service with an address. Dropping it ends the forwarding.
struct Open {
    ground: Arc<Ground>,
    address: Ipv4Addr,
    _doors: JoinSet<()>,
}

/// Forwards the services of the namespace.
pub(super) async fn forward(ground: Arc<Ground>) {
    let services: Api<Service> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let slices: Api<EndpointSlice> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let mut services = watcher(services, watcher::Config::default()).boxed();
    let mut slices = watcher(slices, watcher::Config::default()).boxed();
    let ways = Arc::new(Mutex::new(Ways::default()));
    let mut open: HashMap<String, Open> = HashMap::new();
    loop {
        tokio::select! {
            Some(event) = services.next() => match event.expect("the API server can be watched") {
                Event::Apply(service) | Event::InitApply(service) => {
                    let name = service.name_any();
                    let Some(address) = address(&service) else { continue };
                    if open.get(&name).is_none_or(|open| open.address != address) {
                        open.remove(&name);
                        open.insert(name, Open::new(&ground, &service, address, &ways).await);
                    }
                }
                Event::Delete(service) => drop(open.remove(&service.name_any())),
                Event::Init | Event::InitDone => {}
            },
            Some(event) = slices.next() => match event.expect("the API server can be watched") {
                Event::Apply(slice) | Event::InitApply(slice) => ways.lock().told(&slice),
                Event::Delete(slice) => drop(ways.lock().slices.remove(&slice.name_any())),
                Event::Init | Event::InitDone => {}
            },
        }
    }
}

/// Returns the cluster IP of a service, or `None` for a headless one.
fn address(service: &Service) -> Option<Ipv4Addr> {
    service.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok()
}

impl Open {
    async fn new(ground: &Arc<Ground>, service: &Service, address: Ipv4Addr, ways: &Arc<Mutex<Ways>>) -> Open {
        let name = service.name_any();
        ground.bridge.take(address);
        let mut doors = JoinSet::new();
        for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
            let number = u16::try_from(port.port).expect("ports are small");
            let listener = TcpListener::bind((address, number)).await.expect("nobody else has the address");
            let (service, port, ways) = (name.clone(), port.name.clone().unwrap_or_default(), Arc::clone(ways));
            doors.spawn(async move {
                let mut guests = JoinSet::new();
                while let Ok((guest, _)) = listener.accept().await {
                    // Without a ready pod the connection is closed at once.
                    if let Some(to) = ways.lock().to(&service, &port) {
                        guests.spawn(carry(guest, to));
                    }
                    while guests.try_join_next().is_some() {}
                }
            });
        }
        ground.hosts.add(&format!("{name}.{}.svc", ground.namespace), address);
        Open { ground: Arc::clone(ground), address, _doors: doors }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.ground.bridge.let_go(self.address);
    }
}

impl Ways {
    fn told(&mut self, slice: &EndpointSlice) {
        let Some(service) = slice.labels().get(SERVICE_LABEL) else { return };
        let ready = slice.endpoints.iter().filter(|endpoint| {
            let conditions = endpoint.conditions.as_ref();
            conditions.and_then(|conditions| conditions.ready).unwrap_or(true)
        });
        let addresses: Vec<Ipv4Addr> = ready.filter_map(|endpoint| endpoint.addresses.first()?.parse().ok()).collect();
        let ports = slice.ports.iter().flatten();
        let ends = ports.flat_map(|port| {
            let number = u16::try_from(port.port.unwrap_or(0)).expect("ports are small");
            let name = port.name.clone().unwrap_or_default();
            addresses.iter().map(move |address| (name.clone(), SocketAddr::from((*address, number))))
        });
        self.slices.insert(slice.name_any(), Slice { service: service.clone(), ends: ends.collect() });
    }

    fn to(&self, service: &str, port: &str) -> Option<SocketAddr> {
        let slices = self.slices.values().filter(|slice| slice.service == service);
        let mut ends = slices.flat_map(|slice| &slice.ends).filter(|(name, _)| name == port);
        ends.next().map(|(_, address)| *address)
    }
}

async fn carry(mut guest: TcpStream, to: SocketAddr) {
    let Ok(mut there) = TcpStream::connect(to).await else { return };
    // Either side may close the connection.
    let _ = tokio::io::copy_bidirectional(&mut guest, &mut there).await;
}
