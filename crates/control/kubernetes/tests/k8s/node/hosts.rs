//! Host names of pods and services, in a hosts file that all pods mount.

use std::fs::File;
use std::io::Write;
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

    /// Sets the address of a name.
    pub(super) fn add(&self, name: &str, address: Ipv4Addr) {
        let mut known = self.known.lock();
        known.retain(|(other, _)| other != name);
        known.push((name.to_owned(), address));
        self.write(&known);
    }

    /// Overwrites the file in place, because pods mount the file itself, and in one write, so that readers find every
    /// name.
    fn write(&self, known: &[(String, Ipv4Addr)]) {
        let lines = known.iter().map(|(name, address)| format!("{address} {name}\n"));
        let text: String = std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(lines).collect();
        let mut file =
            File::options().create(true).write(true).truncate(false).open(&self.path).expect("the folder is ours");
        file.write_all(text.as_bytes()).expect("the folder can be written");
        file.set_len(text.len() as u64).expect("the folder can be written");
    }
}
