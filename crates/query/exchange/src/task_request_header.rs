//! Query-wide settings that a task's session needs before it decodes its plan, sent as a header of the request: the
//! library transports only its own settings.

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

use crate::codec::{RecordError, read_record, write_record};

/// Name of the header.
const HEADER: &str = "x-kiln-query";

/// Prefix of the settings that the library sends itself.
const LIBRARY_PREFIX: &str = "distributed.";

/// Settings common to all tasks of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskRequestHeader {
    /// Id of the run, not of the statement: each run has its own memory and thread share.
    pub(super) run: [u8; 16],
    pub(super) priority: Priority,
    /// Memory limit for its tasks on one worker together, in bytes.
    pub(super) memory: Option<usize>,
    /// True if the engine runs what it can compile.
    pub(super) engine: bool,
    /// True if results in the fragment cache may be used.
    fragment_cache: bool,
    /// DataFusion settings that differ from their defaults.
    options: Vec<(String, String)>,
}

impl TaskRequestHeader {
    /// Returns the header of a query that is planned with `config`.
    pub(super) fn new(
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

    /// Applies the settings to the session configuration of a task.
    pub(super) fn apply(&self, config: &mut SessionConfig) -> DfResult<()> {
        if !self.fragment_cache {
            config.set_extension(Arc::new(NoFragmentCache));
        }
        let options = config.options_mut();
        self.options.iter().try_for_each(|(key, value)| options.set(key, value))
    }

    /// Encodes the settings as request headers.
    pub(super) fn headers(&self) -> DfResult<MetadataMap> {
        let mut bytes = Vec::new();
        write_record(self, &mut bytes)?;
        let value = MetadataValue::try_from(URL_SAFE_NO_PAD.encode(bytes)).expect("base64 is a valid header");
        let mut headers = MetadataMap::new();
        headers.insert(HEADER, value);
        Ok(headers)
    }

    /// Decodes the settings from request headers.
    pub(super) fn from_headers(headers: &MetadataMap) -> DfResult<Self> {
        let absent = || {
            DataFusionError::from(RecordError::Other(format!(
                "a worker got a task request without the header {HEADER}"
            )))
        };
        let bytes = URL_SAFE_NO_PAD.decode(headers.get(HEADER).ok_or_else(absent)?.as_bytes());
        Ok(read_record(&bytes.map_err(|error| RecordError::Other(error.to_string()))?)?)
    }
}
