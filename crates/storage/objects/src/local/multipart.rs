//! Multipart upload to a local folder: all parts are written into one temporary file.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use object_store::path::Path;
use object_store::{MultipartUpload, PutMode, PutPayload, PutResult, Result, UploadPart};

use super::folder::Folder;
use super::temporary_files::TemporaryFile;
use super::{local_error, run_blocking};

/// A multipart upload in progress.
#[derive(Debug)]
pub(super) struct LocalMultipart {
    folder: Arc<Folder>,
    location: Path,
    /// The file, shared with the parts in flight; `None` after completion or abort.
    file: Option<Arc<TemporaryFile>>,
    /// Offset at which the next part starts.
    next_offset: u64,
}

impl LocalMultipart {
    pub(super) fn new(folder: Arc<Folder>, location: Path, file: TemporaryFile) -> Self {
        Self { folder, location, file: Some(Arc::new(file)), next_offset: 0 }
    }
}

#[async_trait]
impl MultipartUpload for LocalMultipart {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let Some(file) = self.file.clone() else { return upload_closed_error().boxed() };
        let (folder, mut offset) = (Arc::clone(&self.folder), self.next_offset);
        self.next_offset += part.content_length() as u64;
        async move {
            run_blocking(&folder, move |folder| {
                folder.check_space(part.content_length() as u64)?;
                for piece in &part {
                    file.file.write_all_at(piece, offset).map_err(|source| local_error(source.into()))?;
                    offset += piece.len() as u64;
                }
                Ok(())
            })
            .await
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let Some(file) = self.file.take().and_then(Arc::into_inner) else { return upload_closed_error().await };
        let (location, expected) = (self.location.clone(), self.next_offset);
        run_blocking(&self.folder, move |folder| {
            let found = file.file.metadata().map_err(|source| local_error(source.into()))?.len();
            if found != expected {
                return Err(local_error(format!("only {found} of {expected} bytes were uploaded").into()));
            }
            folder.publish(file, &location, &PutMode::Overwrite)
        })
        .await
    }

    async fn abort(&mut self) -> Result<()> {
        self.file = None;
        Ok(())
    }
}

/// Fails because the upload cannot be used any more.
async fn upload_closed_error<T>() -> Result<T> {
    Err(local_error("the upload was completed or aborted, or a part of it is still in flight".into()))
}
