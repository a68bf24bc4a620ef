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
pub(crate) enum Place {
    /// This machine.
    Here,
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
        network.make()?;
        Ok(network)
    }

    fn make(&self) -> Result<(), String> {
        let Self { name, .. } = self;
        ip(&format!("netns add {name}-hub"))?;
        ip(&format!("-n {name}-hub link add {BRIDGE} type bridge"))?;
        ip(&format!("-n {name}-hub link set {BRIDGE} up"))?;
        for place in self.places() {
            let port = match place {
                Place::Here => {
                    let mac = self.mac(place);
                    ip(&format!("link add {name} address {mac} type veth peer name here netns {name}-hub"))?;
                    "here".to_owned()
                }
                Place::Host(number) => {
                    let (mac, port) = (self.mac(place), format!("host{number}"));
                    ip(&format!("netns add {name}-{number}"))?;
                    let peer = format!("{LINK} address {mac} netns {name}-{number}");
                    ip(&format!("-n {name}-hub link add {port} type veth peer name {peer}"))?;
                    self.at(place, "link set lo up")?;
                    port
                }
            };
            ip(&format!("-n {name}-hub link set {port} master {BRIDGE} up"))?;
            let (address, link) = (self.address(place), self.link(place));
            self.at(place, &format!("addr add {address}/24 dev {link}"))?;
            self.at(place, &format!("link set {link} up"))?;
        }
        for from in self.places() {
            // Static link addresses instead of ARP, so that a cut affects one direction only.
            self.places().into_iter().filter(|to| *to != from).try_for_each(|to| self.lead(from, to, &self.mac(to)))?;
        }
        Ok(())
    }

    /// Returns the address of this machine or of a host.
    pub(crate) fn address(&self, place: Place) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.subnet, number(place))
    }

    /// Returns the command that runs another one on the host whose number replaces `{slot}`.
    pub(crate) fn launcher(&self) -> String {
        format!("ip netns exec {}-{{slot}}", self.name)
    }

    /// Cuts the connection in one direction.
    pub(crate) fn cut(&self, from: Place, to: Place) {
        let nobody = format!("02:00:00:{:02x}:ff:{:02x}", self.subnet, number(to));
        self.lead(from, to, &nobody).expect("the network is there");
    }

    /// Restores all connections.
    pub(crate) fn heal(&self) {
        for from in self.places() {
            for to in self.places().into_iter().filter(|to| *to != from) {
                self.lead(from, to, &self.mac(to)).expect("the network is there");
            }
        }
    }

    fn lead(&self, from: Place, to: Place, mac: &str) -> Result<(), String> {
        let (address, link) = (self.address(to), self.link(from));
        self.at(from, &format!("neigh replace {address} lladdr {mac} nud permanent dev {link}"))
    }

    fn places(&self) -> Vec<Place> {
        std::iter::once(Place::Here).chain((0..self.hosts).map(Place::Host)).collect()
    }

    fn mac(&self, place: Place) -> String {
        format!("02:00:00:{:02x}:00:{:02x}", self.subnet, number(place))
    }

    fn link(&self, place: Place) -> &str {
        if place == Place::Here { &self.name } else { LINK }
    }

    fn at(&self, place: Place, what: &str) -> Result<(), String> {
        match place {
            Place::Here => ip(what),
            Place::Host(number) => ip(&format!("-n {}-{number} {what}", self.name)),
        }
        .map(drop)
    }
}

/// Returns the last byte of an address.
fn number(place: Place) -> u8 {
    match place {
        Place::Here => 1,
        Place::Host(number) => number + 2,
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
