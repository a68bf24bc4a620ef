//! Names of pods, in a file that all pods of the node have.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

pub(super) struct Hosts {
    path: PathBuf,
    known: Mutex<Vec<(String, Ipv4Addr)>>,
}

impl Hosts {
    pub(super) fn in_folder(folder: &Path) -> Hosts {
        let hosts = Hosts { path: folder.join("hosts"), known: Mutex::default() };
        hosts.write(&[]);
        hosts
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// From now on the name is of this address.
    pub(super) fn add(&self, name: &str, address: Ipv4Addr) {
        let mut known = self.known.lock();
        known.retain(|(other, _)| other != name);
        known.push((name.to_owned(), address));
        self.write(&known);
    }

    /// Over what is there: pods have the file itself.
    fn write(&self, known: &[(String, Ipv4Addr)]) {
        let lines = known.iter().map(|(name, address)| format!("{address} {name}\n"));
        let text: String = std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(lines).collect();
        std::fs::write(&self.path, text).expect("the node's folder can be written");
    }
}
