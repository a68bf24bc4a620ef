//! Check at the start that the data folder and the storage belong together.

use std::error::Error;
use std::sync::Arc;

use anyhow::Context;
use objects::Objects;
use serde_json::Value;
use server_config::Config;
use uuid::Uuid;

/// Name of the claim object below the storage's prefix.
const CLAIM_OBJECT: &str = "kiln-claim.json";

/// Refuses a data folder that is older than its storage, has lost commits, or belongs to another warehouse. With
/// `--new-timeline`, begins a new timeline instead.
///
/// # Errors
/// Returns an error if the start is refused or the storage cannot be read.
pub(super) async fn check_storage(
    kv: &Arc<dyn kv::TxKv>,
    objects: &Objects,
    instance: Uuid,
    config: &Config,
) -> anyhow::Result<()> {
    let (data, storage) = (config.data_folder.display(), &config.storage_url);
    match history::compare_with_storage(&**kv, objects).await {
        Ok(()) => Ok(()),
        // Acquiring the claim fails next and names the other instance.
        Err(divergence) if divergence.is_divergence() && is_claimed_by_other(objects, instance).await? => Ok(()),
        Err(divergence) if divergence.is_divergence() && config.new_timeline => {
            let error = &divergence as &dyn Error;
            tracing::warn!(error, %data, "beginning a new timeline: commits that the storage has and the data folder has not are abandoned");
            history::fork_root_timeline(kv).await.with_context(|| format!("cannot begin a new timeline in {data}"))
        }
        Err(divergence) if divergence.is_divergence() => Err(divergence).with_context(|| {
            format!(
                "refusing to serve from {data}, which does not belong to what {storage} holds. Check --data and --storage; \
                 `kiln restore` into another folder brings back what the storage has; `kiln serve --new-timeline` goes on with this \
                 folder as it is, and leaves behind for good what the storage has beyond it"
            )
        }),
        Err(error) => Err(error).with_context(|| {
            format!("cannot compare {data} with the storage {storage}; nothing is served before it is known that they belong together")
        }),
    }
}

/// Returns whether another instance has claimed the storage.
async fn is_claimed_by_other(objects: &Objects, instance: Uuid) -> anyhow::Result<bool> {
    let bytes = match objects.get(CLAIM_OBJECT).await {
        Ok(bytes) => bytes,
        Err(objects::Error::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(error).context("cannot read the claim on the storage"),
    };
    let claim: Value = serde_json::from_slice(&bytes).context("cannot read the claim on the storage")?;
    Ok(claim.get("instance").and_then(Value::as_str).is_none_or(|holder| holder != instance.to_string()))
}
