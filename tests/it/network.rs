//! Virtual network on this machine: network namespaces with their own addresses on a bridge; each connection can be
//! cut, in one direction at a time.
//!
//! A host whose connection is cut sends its packets to an unused link address: they are lost silently, as with an
//! unplugged cable, while the other direction still works.

use std::net::Ipv4Addr;
use std::process::Command;

/// Network of hosts and this machine; removed when dropped.
pub(crate) struct Network {
    /// Prefix of all created names; unique to this process.
    name: String,
    /// Third byte of the addresses, which are from a block reserved for network tests.
    subnet: u8,
    hosts: u8,
}

/// Endpoint of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// This machine.
    ThisMachine,
    /// The host with this number.
    Host(u8),
}

/// Network interface of each host, and this machine's interface on the bridge.
const LINK: &str = "eth0";
const BRIDGE: &str = "br0";

impl Network {
    /// Creates a network with `hosts` hosts besides this machine.
    ///
    /// # Errors
    /// A one-line reason if networks cannot be created here.
    pub(crate) fn new(hosts: u8) -> Result<Self, String> {
        let name = format!("kn{}", std::process::id());
        let taken = ip("addr show")?;
        let is_free = |subnet: &u8| !taken.contains(&format!(" 198.18.{subnet}."));
        let subnet = (0..=u8::MAX).find(is_free).ok_or("all addresses for tests are taken")?;
        // Created first, so that a failure below removes what exists.
        let network = Self { name, subnet, hosts };
        network.create()?;
        Ok(network)
    }

    fn create(&self) -> Result<(), String> {
        let Self { name, .. } = self;
        ip(&format!("netns add {name}-hub"))?;
        ip(&format!("-n {name}-hub link add {BRIDGE} type bridge"))?;
        ip(&format!("-n {name}-hub link set {BRIDGE} up"))?;
        for place in self.all_hosts() {
            let port = match place {
                Endpoint::ThisMachine => {
                    let mac = self.mac(place);
                    ip(&format!("link add {name} address {mac} type veth peer name here netns {name}-hub"))?;
                    "here".to_owned()
                }
                Endpoint::Host(number) => {
                    let (mac, port) = (self.mac(place), format!("host{number}"));
                    ip(&format!("netns add {name}-{number}"))?;
                    let peer = format!("{LINK} address {mac} netns {name}-{number}");
                    ip(&format!("-n {name}-hub link add {port} type veth peer name {peer}"))?;
                    self.run_on(place, "link set lo up")?;
                    port
                }
            };
            ip(&format!("-n {name}-hub link set {port} master {BRIDGE} up"))?;
            let (address, link) = (self.address(place), self.link(place));
            self.run_on(place, &format!("addr add {address}/24 dev {link}"))?;
            self.run_on(place, &format!("link set {link} up"))?;
        }
        for from in self.all_hosts() {
            // Static link addresses instead of ARP, so that a cut affects one direction only.
            self.all_hosts()
                .into_iter()
                .filter(|to| *to != from)
                .try_for_each(|to| self.set_neighbor(from, to, &self.mac(to)))?;
        }
        Ok(())
    }

    /// Returns the address of this machine or of a host.
    pub(crate) fn address(&self, place: Endpoint) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.subnet, number(place))
    }

    /// Returns the command that runs another one on the host whose number replaces `{slot}`.
    pub(crate) fn launcher(&self) -> String {
        format!("ip netns exec {}-{{slot}}", self.name)
    }

    /// Cuts the connection in one direction.
    pub(crate) fn cut(&self, from: Endpoint, to: Endpoint) {
        let nobody = format!("02:00:00:{:02x}:ff:{:02x}", self.subnet, number(to));
        self.set_neighbor(from, to, &nobody).expect("the network is there");
    }

    /// Restores all connections.
    pub(crate) fn heal(&self) {
        for from in self.all_hosts() {
            for to in self.all_hosts().into_iter().filter(|to| *to != from) {
                self.set_neighbor(from, to, &self.mac(to)).expect("the network is there");
            }
        }
    }

    fn set_neighbor(&self, from: Endpoint, to: Endpoint, mac: &str) -> Result<(), String> {
        let (address, link) = (self.address(to), self.link(from));
        self.run_on(from, &format!("neigh replace {address} lladdr {mac} nud permanent dev {link}"))
    }

    fn all_hosts(&self) -> Vec<Endpoint> {
        std::iter::once(Endpoint::ThisMachine).chain((0..self.hosts).map(Endpoint::Host)).collect()
    }

    fn mac(&self, place: Endpoint) -> String {
        format!("02:00:00:{:02x}:00:{:02x}", self.subnet, number(place))
    }

    fn link(&self, place: Endpoint) -> &str {
        if place == Endpoint::ThisMachine { &self.name } else { LINK }
    }

    fn run_on(&self, place: Endpoint, what: &str) -> Result<(), String> {
        match place {
            Endpoint::ThisMachine => ip(what),
            Endpoint::Host(number) => ip(&format!("-n {}-{number} {what}", self.name)),
        }
        .map(drop)
    }
}

/// Returns the last byte of an address.
fn number(place: Endpoint) -> u8 {
    match place {
        Endpoint::ThisMachine => 1,
        Endpoint::Host(number) => number + 2,
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let hosts = (0..self.hosts).map(|number| number.to_string());
        for name in hosts.chain(["hub".to_owned()]) {
            // It may not have been created.
            let _ = ip(&format!("netns del {}-{name}", self.name));
        }
        // Its peer is removed with the bridge, but not immediately.
        let _ = ip(&format!("link del {}", self.name));
    }
}

fn ip(what: &str) -> Result<String, String> {
    let ran = Command::new("ip").args(what.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&ran.stderr);
    Err(format!("ip {what}: {}", told.lines().next().unwrap_or_default()))
}
