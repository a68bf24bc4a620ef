//! Log lines on standard error, as text or JSON, filtered by target.

use std::io::IsTerminal;

use binder::Step;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging for the process.
///
/// # Errors
/// Returns an error that names the filter if it cannot be parsed.
pub(crate) fn init(filter: &str, json: bool) -> anyhow::Result<()> {
    let env_filter = EnvFilter::try_new(filter)
        .map_err(|error| anyhow::anyhow!("cannot understand the log filter {filter:?}: {error}"))?;
    // Colours only for terminals, not for files and programs that read the log.
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(env_filter).with_writer(std::io::stderr).with_ansi(colours);
    // With the steps of statements enabled, the start and the end of each span are logged too.
    let lines = lines.with_span_events(if logs_statement_steps(filter) {
        FmtSpan::NEW | FmtSpan::CLOSE
    } else {
        FmtSpan::NONE
    });
    if json {
        lines.json().finish().try_init()?
    } else {
        lines.finish().try_init()?
    }
    Ok(())
}

/// Returns whether a filter enables the steps of statements by name, as `info,step=debug` does.
fn logs_statement_steps(filter: &str) -> bool {
    let Ok(targets) = filter.parse::<Targets>() else { return false };
    targets.would_enable(Step::TARGET, &Level::DEBUG) && targets.iter().any(|(target, _)| target == Step::TARGET)
}
