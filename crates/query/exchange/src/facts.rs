//! What a task's session has to know of its query, as a header of the request that brings the task's plan: the library tells workers nothing
//! else before they read it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::prelude::SessionConfig;
use plan::NoFragmentCache;
use scheduler::Priority;
use serde::{Deserialize, Serialize};
use tonic::metadata::{MetadataMap, MetadataValue};
use uuid::Uuid;

use crate::codec::{FormError, read, write};

/// The header's name.
const HEADER: &str = "x-kiln-query";

/// What the library itself sends.
const LIBRARY_PREFIX: &str = "distributed.";

/// What tasks of one query have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueryFacts {
    /// The run's, not the statement's: each has its own memory and share of the threads.
    pub(super) run: [u8; 16],
    pub(super) priority: Priority,
    /// Bytes that its tasks on one worker may have together.
    pub(super) memory: Option<usize>,
    /// Whether the engine runs what it can.
    pub(super) engine: bool,
    /// Whether it uses what others have grouped of shards.
    fragment_cache: bool,
    /// DataFusion's settings that are not what they are by themselves.
    options: Vec<(String, String)>,
}

impl QueryFacts {
    /// Of a query that is planned with `config`.
    pub(super) fn of(
        run: Uuid,
        priority: Priority,
        memory: Option<usize>,
        engine: bool,
        config: &SessionConfig,
    ) -> Self {
        let plain: Vec<_> = ConfigOptions::new().entries();
        let is_plain =
            |key: &str, value: &Option<String>| plain.iter().any(|entry| entry.key == key && entry.value == *value);
        let changed = config
            .options()
            .entries()
            .into_iter()
            .filter(|entry| !entry.key.starts_with(LIBRARY_PREFIX) && !is_plain(&entry.key, &entry.value));
        let options = changed.filter_map(|entry| Some((entry.key, entry.value?))).collect();
        let fragment_cache = config.get_extension::<NoFragmentCache>().is_none();
        Self { run: run.into_bytes(), priority, memory, engine, fragment_cache, options }
    }

    /// `config` as the coordinator has it, but for what each process has by itself.
    pub(super) fn apply(&self, config: &mut SessionConfig) -> DfResult<()> {
        if !self.fragment_cache {
            config.set_extension(Arc::new(NoFragmentCache));
        }
        let options = config.options_mut();
        self.options.iter().try_for_each(|(key, value)| options.set(key, value))
    }

    pub(super) fn headers(&self) -> DfResult<MetadataMap> {
        let mut bytes = Vec::new();
        write(self, &mut bytes)?;
        let value = MetadataValue::try_from(URL_SAFE_NO_PAD.encode(bytes)).expect("base64 is ASCII");
        let mut headers = MetadataMap::new();
        headers.insert(HEADER, value);
        Ok(headers)
    }

    /// Those of a request.
    pub(super) fn read(headers: &MetadataMap) -> DfResult<Self> {
        let absent = || DataFusionError::from(FormError::Other(format!("a request without {HEADER}")));
        let bytes = URL_SAFE_NO_PAD.decode(headers.get(HEADER).ok_or_else(absent)?.as_bytes());
        Ok(read(&bytes.map_err(|error| FormError::Other(error.to_string()))?)?)
    }
}
