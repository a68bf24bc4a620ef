//! Admission of joining workers and handling of their messages.

use cluster_model::{WorkerId, WorkerState};
use control_plane::{Vouched, Vouching};
use tokio::sync::mpsc;

use super::one::{Link, One};
use super::{Hosted, Processes};
use crate::identity::Name;
use crate::join::{Base64, Desk, FromInstance, FromWorker, Hello, LinkNumber, PROTOCOL, Place, Welcome};

/// Longest accepted address or version of a worker.
const TEXT_BYTES_MAX: usize = 255;

impl Processes {
    /// Checks whether a worker may join: the first time with the secret of its ticket or a verified token, later with
    /// its certificate. Returns the reason for a refusal.
    fn check(&self, hello: &Hello, is_certified: bool, is_vouched: bool, hosted: &mut Hosted) -> Result<(), String> {
        let Some(one) = hosted.workers.get_mut(&hello.worker).filter(|one| !one.is_gone()) else {
            return Err("this instance has no worker with this id".to_owned());
        };
        let is_expected = match &hello.secret {
            Some(shown) => one.secret.as_ref().is_some_and(|expected| expected.is(&shown.0)),
            None => is_vouched || (is_certified && one.has_joined),
        };
        if !is_expected {
            return Err("its ticket is wrong or has been used already".to_owned());
        }
        if TEXT_BYTES_MAX < hello.version.len() {
            return Err("its version is too long".to_owned());
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
    /// Registers a worker with a verified token. An earlier worker with the same life (such as a pod) is marked as
    /// gone, because its process was restarted.
    fn admit(&self, worker: WorkerId, vouched: Vouched, hosted: &mut Hosted) -> Result<(), String> {
        if hosted.is_closing {
            return Err("the instance is shutting down".to_owned());
        }
        if let Some(known) = hosted.workers.get(&worker) {
            // The same worker repeats a join whose answer got lost. Ids are random, so with another life somebody
            // reuses an id that it has seen.
            let is_same = known.life.as_ref() == Some(&vouched.life) && !known.is_gone();
            return if is_same { Ok(()) } else { Err("its id belongs to another worker".to_owned()) };
        }
        let now = self.clock.monotonic();
        for one in hosted.workers.values_mut().filter(|one| one.life.as_ref() == Some(&vouched.life)) {
            one.gone("its process was restarted", now);
        }
        hosted.workers.insert(worker, One::vouched(worker, vouched, now));
        Ok(())
    }
}

impl Desk for Processes {
    fn vouch<'a>(&'a self, token: &'a str) -> Vouching<'a> {
        match &self.settings.vouch {
            Some(vouch) => vouch.vouch(token),
            None => Box::pin(std::future::ready(Err("this instance accepts no tokens".to_owned()))),
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
        let signed = checked.and_then(|()| {
            let signed = self.authority.sign(Name::Worker(hello.worker), &hello.public_key.0);
            signed.map_err(|error| error.to_string())
        });
        let certificate = match signed {
            Ok(certificate) => certificate,
            Err(reason) => {
                // A refused worker leaves no entry, so that it can join under another token later.
                hosted.workers.retain(|id, one| *id != hello.worker || one.life.is_none() || one.has_joined);
                drop(hosted);
                self.changes.advance();
                return Err(reason);
            }
        };
        hosted.next_link += 1;
        let number = hosted.next_link;
        let one = hosted.workers.get_mut(&hello.worker).ok_or("the worker is gone")?;
        // Tickets are single-use.
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
            FromWorker::Joined(_) => tracing::warn!(%worker, "ignored a worker's task address: too long"),
            FromWorker::Beat(beat) => one.beat(beat, now),
            FromWorker::TookOver(took) => one.took_over(took.number),
            FromWorker::Leaving => one.drain(now),
        }
        let is_news = was_hung || one.seen().state != state;
        if is_news && state == WorkerState::Starting {
            let (cluster, slot) = (one.seen().cluster, one.seen().slot);
            let took_ms = now.saturating_sub(since).as_millis();
            tracing::info!(%worker, %cluster, slot, took_ms, "worker joined");
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
            // Its cache hand-overs end with the connection.
            one.taking.clear();
            // A worker whose process is not visible here counts as ended once it disconnects after a stop message.
            let has_ended = one.life.is_some() && one.stopping.is_some();
            drop(hosted);
            if has_ended {
                self.note_end(worker, "stopped by the instance");
                self.save();
                self.changes.advance();
            }
        }
    }
}
