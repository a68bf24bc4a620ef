//! Interactive prompt, with line editing, history and statements over several lines.

use std::path::PathBuf;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::console::{Console, Continuation};
use super::split_statements::{InputItem, split_input};

/// Reads and runs until `\q` or the end of input.
#[expect(clippy::print_stdout, reason = "a prompt greets its user")]
pub(crate) async fn run(console: &mut Console) -> anyhow::Result<()> {
    let mut editor = DefaultEditor::new()?;
    let history = history_file();
    if let Some(path) = &history {
        // The file does not exist on the first run.
        let _ = editor.load_history(path);
    }
    println!("kiln sql {}. \\? for help, \\q to leave.", env!("CARGO_PKG_VERSION"));
    let mut pending = String::new();
    loop {
        let (line, back) = read_line(editor, if pending.trim().is_empty() { "kiln=> " } else { "kiln-> " }).await?;
        editor = back;
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        let _ = editor.add_history_entry(&line);
        pending.push_str(&line);
        pending.push('\n');
        let (pieces, rest) = split_input(&pending);
        pending = rest;
        if run_items(console, pieces).await? == Continuation::Quit {
            break;
        }
    }
    if let Some(path) = &history
        && editor.save_history(path).is_err()
    {
        tracing::warn!(path = %path.display(), "could not save the input history of the SQL prompt");
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a refused command is told to its user")]
async fn run_items(console: &mut Console, pieces: Vec<InputItem>) -> anyhow::Result<Continuation> {
    for piece in pieces {
        match piece {
            InputItem::Statement(sql) => {
                console.run_statement(&sql).await?;
            }
            InputItem::Command(command) => match console.run_command(&command).await {
                Ok(Continuation::Continue) => {}
                Ok(Continuation::Quit) => return Ok(Continuation::Quit),
                Err(error) => eprintln!("{error:#}"),
            },
        }
    }
    Ok(Continuation::Continue)
}

/// Reads a line on a blocking thread, so that the connection is served meanwhile.
async fn read_line(
    mut editor: DefaultEditor,
    prompt: &'static str,
) -> anyhow::Result<(Result<String, ReadlineError>, DefaultEditor)> {
    Ok(tokio::task::spawn_blocking(move || (editor.readline(prompt), editor)).await?)
}

fn history_file() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".kiln_history"))
}
