//! The host's side of what workers say: who may come in, and what is known of who has.

use cluster_model::{WorkerId, WorkerState};
use control_plane::{Vouched, Vouching};
use tokio::sync::mpsc;

use super::one::{Link, One};
use super::{Hosted, Processes};
use crate::identity::Name;
use crate::join::{Base64, Desk, FromInstance, FromWorker, Hello, LinkNumber, PROTOCOL, Place, Welcome};

/// No worker's address or version is longer.
const TEXT_BYTES_MAX: usize = 255;

impl Processes {
    /// Whether it may come in: who was told a secret once or is vouched for, afterwards who has the certificate.
    fn check(&self, hello: &Hello, is_certified: bool, is_vouched: bool, hosted: &mut Hosted) -> Result<(), String> {
        let Some(one) = hosted.workers.get_mut(&hello.worker).filter(|one| !one.is_gone()) else {
            return Err("it is none of this instance's workers".to_owned());
        };
        let is_expected = match &hello.secret {
            Some(shown) => one.secret.as_ref().is_some_and(|expected| expected.is(&shown.0)),
            None => is_vouched || (is_certified && one.has_joined),
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

impl Processes {
    /// Has one in that nobody has invited. Who came before it from where it lives is gone: its process was started again.
    fn admit(&self, worker: WorkerId, vouched: Vouched, hosted: &mut Hosted) -> Result<(), String> {
        if hosted.is_closing {
            return Err("the instance ends".to_owned());
        }
        if let Some(known) = hosted.workers.get(&worker) {
            // It has not heard that it is welcome. Ids are drawn: of another life it is one that somebody has seen.
            let is_same = known.life.as_ref() == Some(&vouched.life) && !known.is_gone();
            return if is_same { Ok(()) } else { Err("its id is another's".to_owned()) };
        }
        let now = self.clock.monotonic();
        for one in hosted.workers.values_mut().filter(|one| one.life.as_ref() == Some(&vouched.life)) {
            one.gone("its process was started again", now);
        }
        hosted.workers.insert(worker, One::vouched(worker, vouched, now));
        Ok(())
    }
}

impl Desk for Processes {
    fn vouch<'a>(&'a self, token: &'a str) -> Vouching<'a> {
        match &self.settings.vouch {
            Some(vouch) => vouch.vouch(token),
            None => Box::pin(std::future::ready(Err("nobody here knows tokens".to_owned()))),
        }
    }

    fn welcome(
        &self,
        hello: &Hello,
        is_certified: bool,
        vouched: Option<Vouched>,
        say: mpsc::Sender<FromInstance>,
    ) -> Result<(Box<Welcome>, LinkNumber), String> {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let is_vouched = vouched.is_some();
        let admitted = vouched.map_or(Ok(()), |vouched| self.admit(hello.worker, vouched, &mut hosted));
        let checked = admitted.and_then(|()| self.check(hello, is_certified, is_vouched, &mut hosted));
        if let Err(reason) = checked {
            // Who is not taken was not here: it may come as another one.
            hosted.workers.retain(|id, one| *id != hello.worker || one.life.is_none() || one.has_joined);
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
        let means = self.means(one);
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
            FromWorker::Leaving => one.drain(now),
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
            // One whose process nobody here sees has ended where it was told to.
            let has_ended = one.life.is_some() && one.stopping.is_some();
            drop(hosted);
            if has_ended {
                self.note_end(worker, "told to end");
                self.save();
                self.changes.advance();
            }
        }
    }
}
