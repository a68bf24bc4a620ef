//! Writes an object piece by piece.

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use tokio::task::JoinSet;

use crate::{Error, Objects, Result};

#[cfg(test)]
mod tests;

/// Size of every part but the last. R2 wants all of one size, S3 at least 5 MiB and at most 10,000: so an object ends at 80 GB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// Parts on their way at once. Memory in use is this and two more parts.
const PARTS_IN_FLIGHT_MAX: usize = 3;

/// An object that is being written. It appears, whole, when [`Self::finish`] returns; before that, and after
/// [`Self::abort`] or a drop, there is nothing.
#[derive(Debug)]
pub struct Writer {
    objects: Objects,
    name: String,
    location: Path,
    /// What does not fill a part yet; an object that never fills one is written by a plain put.
    buffer: BytesMut,
    upload: Option<Upload>,
    byte_count: u64,
}

#[derive(Debug)]
struct Upload {
    store: Box<dyn MultipartUpload>,
    parts: JoinSet<object_store::Result<()>>,
    /// Whether an object of this name was there before the upload.
    replaces: bool,
}

impl Writer {
    pub(crate) fn new(objects: Objects, name: &str, location: Path) -> Self {
        let name = name.to_owned();
        Self { objects, name, location, buffer: BytesMut::new(), upload: None, byte_count: 0 }
    }

    /// Appends `bytes`; waits while enough parts are on their way.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.byte_count += bytes.len() as u64;
        self.buffer.extend_from_slice(&bytes);
        while PART_BYTES <= self.buffer.len() {
            let part = self.buffer.split_to(PART_BYTES).freeze();
            self.start_part(part).await?;
        }
        Ok(())
    }

    /// Bytes written so far.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.byte_count
    }

    /// Makes the object appear; its size in bytes.
    pub async fn finish(mut self) -> Result<u64> {
        let rest = self.buffer.split().freeze();
        if self.upload.is_none() {
            self.objects.put(&self.name, rest).await?;
            return Ok(self.byte_count);
        }
        if !rest.is_empty() {
            self.start_part(rest).await?;
        }
        self.join_parts(0).await?;
        let upload = self.upload.as_mut().expect("there is an upload, or the object was put above");
        match upload.store.complete().await {
            Ok(_) => {}
            // The answer to a completion that took effect may be lost, and asking again finds the upload gone. Where no
            // object was before, one of the right size can only be this one.
            Err(source) if !upload.replaces => match self.objects.head(&self.name).await {
                Ok(found) if found.bytes == self.byte_count => {}
                _ => return Err(self.failed(source)),
            },
            Err(source) => return Err(self.failed(source)),
        }
        self.upload = None;
        Ok(self.byte_count)
    }

    /// Gives the object up and removes what was sent.
    pub async fn abort(mut self) -> Result<()> {
        match self.upload.take() {
            Some(upload) => upload.abort().await.map_err(|source| self.failed(source)),
            None => Ok(()),
        }
    }

    async fn start_part(&mut self, part: Bytes) -> Result<()> {
        if self.upload.is_none() {
            self.upload = Some(self.start_upload().await?);
        }
        self.join_parts(PARTS_IN_FLIGHT_MAX - 1).await?;
        let upload = self.upload.as_mut().expect("started above");
        let sent = upload.store.put_part(PutPayload::from_bytes(part));
        upload.parts.spawn(sent);
        Ok(())
    }

    async fn start_upload(&mut self) -> Result<Upload> {
        let replaces = match self.objects.head(&self.name).await {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => return Err(error),
        };
        let store = self.objects.store().put_multipart(&self.location).await.map_err(|source| self.failed(source))?;
        Ok(Upload { store, parts: JoinSet::new(), replaces })
    }

    /// Waits until at most `left` parts are on their way.
    async fn join_parts(&mut self, left: usize) -> Result<()> {
        let upload = self.upload.as_mut().expect("parts belong to an upload");
        while left < upload.parts.len() {
            let sent = upload.parts.join_next().await.expect("a part is on its way");
            if let Err(source) = sent.map_err(object_store::Error::from).flatten() {
                return Err(self.failed(source));
            }
        }
        Ok(())
    }

    fn failed(&self, source: object_store::Error) -> Error {
        self.objects.failed("write", &self.name, source)
    }
}

impl Upload {
    async fn abort(mut self) -> object_store::Result<()> {
        // A part that is still on its way when the upload ends may arrive after it and stay for ever.
        while self.parts.join_next().await.is_some() {}
        self.store.abort().await
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Some(upload) = self.upload.take() else { return };
        // Without a runtime the parts stay until the bucket's lifecycle rule removes them; the object never appears.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let object = self.objects.object_url(&self.name);
            runtime.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::warn!(
                        object,
                        error = &error as &dyn std::error::Error,
                        "an abandoned upload was left behind"
                    );
                }
            });
        }
    }
}
