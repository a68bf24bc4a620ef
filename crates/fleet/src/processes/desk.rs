//! The host's side of what workers say: who may come in, and what is known of who has.

use cluster::{WorkerId, WorkerState};
use tokio::sync::mpsc;

use super::means::means;
use super::one::Link;
use super::{Hosted, Processes};
use crate::identity::Name;
use crate::join::{Base64, Desk, FromInstance, FromWorker, Hello, LinkNumber, PROTOCOL, Place, Welcome};

/// No worker's address or version is longer.
const TEXT_BYTES_MAX: usize = 255;

impl Processes {
    /// Whether it may come in: who was told a secret once, afterwards who has the certificate.
    fn check(&self, hello: &Hello, is_certified: bool, hosted: &mut Hosted) -> Result<(), String> {
        let Some(one) = hosted.workers.get_mut(&hello.worker).filter(|one| !one.is_gone()) else {
            return Err("it is none of this instance's workers".to_owned());
        };
        let is_expected = match &hello.secret {
            Some(shown) => one.secret.as_ref().is_some_and(|expected| expected.is(&shown.0)),
            None => is_certified && one.has_joined,
        };
        if !is_expected {
            return Err("its ticket is not the one that was given to it, or was used before".to_owned());
        }
        if TEXT_BYTES_MAX < hello.version.len() {
            return Err("its version is no version".to_owned());
        }
        one.seen_mut().version = Some(hello.version.clone());
        if hello.protocol != PROTOCOL {
            return Err(format!(
                "it speaks version {} of the protocol, and this instance version {PROTOCOL}",
                hello.protocol
            ));
        }
        match one.stopping {
            Some(reason) => Err(reason.to_string()),
            None => Ok(()),
        }
    }
}

impl Desk for Processes {
    fn welcome(
        &self,
        hello: &Hello,
        is_certified: bool,
        say: mpsc::Sender<FromInstance>,
    ) -> Result<(Box<Welcome>, LinkNumber), String> {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let checked = self.check(hello, is_certified, &mut hosted);
        if let Err(reason) = checked {
            drop(hosted);
            self.changes.advance();
            return Err(reason);
        }
        let signed = self.authority.sign(Name::Worker(hello.worker), &hello.public_key.0);
        let certificate = signed.map_err(|error| error.to_string())?;
        hosted.next_link += 1;
        let number = hosted.next_link;
        let one = hosted.workers.get_mut(&hello.worker).ok_or("it is gone")?;
        // A ticket is good for once.
        (one.secret, one.has_joined) = (None, true);
        one.public_key.clone_from(&hello.public_key.0);
        one.link = Some(Link { number, say });
        one.answered(now);
        let seen = one.seen();
        let place = Place {
            cluster: seen.cluster,
            slot: seen.slot,
            storage: self.settings.storage.clone(),
            folder: self.settings.folder.clone(),
            reserve_bytes: self.settings.reserve_bytes,
        };
        let means = means(&seen.spec, &self.settings);
        drop(hosted);
        self.save();
        Ok((Box::new(Welcome { certificate: Base64(certificate.to_vec()), place, means }), number))
    }

    fn heard(&self, worker: WorkerId, said: FromWorker) {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let Some(one) = hosted.workers.get_mut(&worker).filter(|one| !one.is_gone()) else { return };
        let (was_hung, state, since) = (one.seen().hung, one.seen().state, one.seen().since);
        match said {
            FromWorker::Joined(joined) if joined.address.len() <= TEXT_BYTES_MAX => one.joined(joined.address, now),
            FromWorker::Joined(_) => tracing::warn!(%worker, "its address is too long to be one"),
            FromWorker::Beat(beat) => one.beat(beat, now),
            FromWorker::TookOver(took) => one.took_over(took.number),
        }
        let is_news = was_hung || one.seen().state != state;
        if is_news && state == WorkerState::Starting {
            let (cluster, slot) = (one.seen().cluster, one.seen().slot);
            let took_ms = now.saturating_sub(since).as_millis();
            tracing::info!(%worker, %cluster, slot, took_ms, "a worker has joined");
        }
        drop(hosted);
        if is_news {
            self.changes.advance();
        }
    }

    fn unlinked(&self, worker: WorkerId, link: LinkNumber) {
        let mut hosted = self.hosted.lock();
        if let Some(one) = hosted.workers.get_mut(&worker)
            && one.link.as_ref().is_some_and(|current| current.number == link)
        {
            one.link = None;
            // What it takes over ends with the connection.
            one.taking.clear();
        }
    }
}
