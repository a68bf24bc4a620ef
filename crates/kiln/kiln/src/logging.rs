//! Log lines on standard error, as text or JSON, filtered by target.

use std::io::IsTerminal;

use binder::Step;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging for the process; a filter that cannot be understood is an error naming it.
pub(crate) fn start(filter: &str, json: bool) -> anyhow::Result<()> {
    let known = EnvFilter::try_new(filter)
        .map_err(|error| anyhow::anyhow!("cannot understand the log filter {filter:?}: {error}"))?;
    // Colours are for people: files and programs that read the log get none.
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(known).with_writer(std::io::stderr).with_ansi(colours);
    // Who asks for the steps of statements wants to know when they begin and end; without steps a span is only what its lines are about.
    let lines = lines.with_span_events(if shows_steps(filter) { FmtSpan::NEW | FmtSpan::CLOSE } else { FmtSpan::NONE });
    if json {
        lines.json().finish().try_init()?
    } else {
        lines.finish().try_init()?
    }
    Ok(())
}

/// Whether a filter asks for the steps of statements by name, as `info,step=debug` does.
fn shows_steps(filter: &str) -> bool {
    let Ok(targets) = filter.parse::<Targets>() else { return false };
    targets.would_enable(Step::TARGET, &Level::DEBUG) && targets.iter().any(|(target, _)| target == Step::TARGET)
}
