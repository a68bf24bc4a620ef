//! Log lines on standard error, as text or JSON, filtered by target.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging for the process; a filter that cannot be understood is an error naming it.
pub(crate) fn start(filter: &str, json: bool) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| anyhow::anyhow!("cannot understand the log filter {filter:?}: {error}"))?;
    // Colours are for people: files and programs that read the log get none.
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    if json {
        lines.json().finish().try_init()?
    } else {
        lines.finish().try_init()?
    }
    Ok(())
}
