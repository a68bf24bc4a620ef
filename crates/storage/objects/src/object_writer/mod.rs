//! Streaming writes of objects of unknown size by multipart upload.

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use tokio::task::JoinSet;

use crate::{Error, Objects, Result};

#[cfg(test)]
mod tests;

/// Size of all parts but the last, in bytes. R2 requires equal sizes; S3 requires at least 5 MiB and allows 10,000
/// parts, so an object has at most 80 GB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of parts in flight. A writer uses memory for this number of parts and two more.
const PARTS_IN_FLIGHT_MAX: usize = 3;

/// Writer of one object. The object appears when [`Self::finish`] returns; after [`Self::abort`] or a drop without it,
/// nothing is stored.
#[derive(Debug)]
pub struct ObjectWriter {
    objects: Objects,
    name: String,
    location: Path,
    /// Bytes that do not fill a part yet; an object smaller than a part is written by a plain put.
    buffer: BytesMut,
    /// The multipart upload; `None` until the first part is full.
    upload: Option<ActiveUpload>,
    /// Bytes written so far.
    byte_count: u64,
}

/// A multipart upload in progress.
#[derive(Debug)]
struct ActiveUpload {
    multipart_upload: Box<dyn MultipartUpload>,
    /// Parts in flight.
    parts_in_flight: JoinSet<object_store::Result<()>>,
    /// Whether an object of this name existed before the upload.
    object_existed: bool,
}

impl ObjectWriter {
    pub(crate) fn new(objects: Objects, name: &str, location: Path) -> Self {
        let name = name.to_owned();
        Self { objects, name, location, buffer: BytesMut::new(), upload: None, byte_count: 0 }
    }

    /// Appends `bytes`; waits while `PARTS_IN_FLIGHT_MAX` parts are in flight.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.byte_count += bytes.len() as u64;
        self.buffer.extend_from_slice(&bytes);
        while PART_BYTES <= self.buffer.len() {
            let part = self.buffer.split_to(PART_BYTES).freeze();
            self.start_part(part).await?;
        }
        Ok(())
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.byte_count
    }

    /// Completes the object and returns its size in bytes.
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
        let upload = self.upload.as_mut().expect("an object without an upload was put above");
        match upload.multipart_upload.complete().await {
            Ok(_) => {}
            // The response to a successful completion may be lost, and a retry then finds the upload gone. If no object
            // existed before, one of the right size can only be this one.
            Err(source) if !upload.object_existed => match self.objects.head(&self.name).await {
                Ok(found) if found.bytes == self.byte_count => {}
                _ => return Err(self.write_error(source)),
            },
            Err(source) => return Err(self.write_error(source)),
        }
        self.upload = None;
        Ok(self.byte_count)
    }

    /// Discards the object and removes uploaded parts.
    pub async fn abort(mut self) -> Result<()> {
        match self.upload.take() {
            Some(upload) => upload.abort().await.map_err(|source| self.write_error(source)),
            None => Ok(()),
        }
    }

    /// Starts sending a part, and the upload if it is the first part.
    async fn start_part(&mut self, part: Bytes) -> Result<()> {
        if self.upload.is_none() {
            self.upload = Some(self.start_upload().await?);
        }
        self.join_parts(PARTS_IN_FLIGHT_MAX - 1).await?;
        let upload = self.upload.as_mut().expect("the upload was started above");
        let sent = upload.multipart_upload.put_part(PutPayload::from_bytes(part));
        upload.parts_in_flight.spawn(sent);
        Ok(())
    }

    async fn start_upload(&mut self) -> Result<ActiveUpload> {
        let replaces = match self.objects.head(&self.name).await {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => return Err(error),
        };
        let multipart_upload =
            self.objects.store().put_multipart(&self.location).await.map_err(|source| self.write_error(source))?;
        Ok(ActiveUpload { multipart_upload, parts_in_flight: JoinSet::new(), object_existed: replaces })
    }

    /// Waits until at most `left` parts are in flight.
    async fn join_parts(&mut self, in_flight_max: usize) -> Result<()> {
        let upload = self.upload.as_mut().expect("join_parts is called only after the upload was started");
        while in_flight_max < upload.parts_in_flight.len() {
            let sent = upload.parts_in_flight.join_next().await.expect("a part is in flight");
            if let Err(source) = sent.map_err(object_store::Error::from).flatten() {
                return Err(self.write_error(source));
            }
        }
        Ok(())
    }

    fn write_error(&self, source: object_store::Error) -> Error {
        self.objects.to_error("write", &self.name, source)
    }
}

impl ActiveUpload {
    async fn abort(mut self) -> object_store::Result<()> {
        // A part that arrives after the upload was aborted would stay in the bucket for ever.
        while self.parts_in_flight.join_next().await.is_some() {}
        self.multipart_upload.abort().await
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        let Some(upload) = self.upload.take() else { return };
        // Without a runtime the parts stay until the bucket's lifecycle rule removes them.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let object = self.objects.object_url(&self.name);
            runtime.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::warn!(
                        object,
                        error = &error as &dyn std::error::Error,
                        "could not abort a dropped upload; a lifecycle rule of the bucket must remove its parts"
                    );
                }
            });
        }
    }
}
