//! Formatting of rows as an aligned table, CSV or JSON.

use clap::ValueEnum;

mod json;
#[cfg(test)]
mod tests;

pub(crate) use json::JsonForm;

/// Output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns under a heading
    Table,
    /// RFC 4180, with a header line; NULL is empty, empty text is ""
    Csv,
    /// One JSON object a line; numbers and booleans as such
    Json,
}

/// Rows of a result, or a part of them, as text.
#[derive(Debug, Default)]
pub(crate) struct ResultRows {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// JSON forms of the columns; a column without one is formatted as text.
    pub(crate) json_forms: Vec<JsonForm>,
    /// Values, `None` for NULL.
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

impl ResultRows {
    /// Formats the rows, with a line break at the end. `with_heading` is false for the later parts of a long result.
    pub(crate) fn render(&self, format: Format, with_heading: bool) -> String {
        let mut text = String::new();
        match format {
            Format::Table => self.render_table(with_heading, &mut text),
            Format::Csv => self.render_csv(with_heading, &mut text),
            Format::Json => self.render_json(&mut text),
        }
        text
    }

    fn render_table(&self, with_heading: bool, text: &mut String) {
        let mut widths: Vec<usize> = self.columns.iter().map(|name| name.chars().count()).collect();
        for row in &self.rows {
            for (width, value) in widths.iter_mut().zip(row) {
                let widest_line = value.as_deref().unwrap_or("").lines().map(|line| line.chars().count()).max();
                *width = (*width).max(widest_line.unwrap_or(0));
            }
        }
        let numeric: Vec<bool> = (0..self.columns.len()).map(|column| self.is_numeric(column)).collect();
        if with_heading {
            let heading: Vec<String> =
                self.columns.iter().zip(&widths).map(|(name, width)| format!(" {name:^width$} ")).collect();
            text.push_str(heading.join("|").trim_end());
            text.push('\n');
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            text.push_str(&rule.join("+"));
            text.push('\n');
        }
        for row in &self.rows {
            render_row(row, &widths, &numeric, text);
        }
    }

    /// Returns whether all values of a column are numbers, which are right-aligned as in psql. Decided by the values,
    /// because a simple query does not report column types.
    fn is_numeric(&self, column: usize) -> bool {
        let mut values = self.rows.iter().filter_map(|row| row.get(column)?.as_deref()).peekable();
        values.peek().is_some() && values.all(|value| value.parse::<f64>().is_ok())
    }

    fn render_csv(&self, with_heading: bool, text: &mut String) {
        if with_heading {
            let names: Vec<String> = self.columns.iter().map(|name| format_csv_field(Some(name))).collect();
            text.push_str(&names.join(","));
            text.push('\n');
        }
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(|value| format_csv_field(value.as_deref())).collect();
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }

    fn render_json(&self, text: &mut String) {
        for row in &self.rows {
            json::write_row(&self.columns, &self.json_forms, row, text);
        }
    }
}

fn render_row(row: &[Option<String>], widths: &[usize], numeric: &[bool], text: &mut String) {
    let cells: Vec<Vec<&str>> = row.iter().map(|value| value.as_deref().unwrap_or("").split('\n').collect()).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    for line in 0..height {
        let mut shown = Vec::with_capacity(cells.len());
        for ((cell, width), numeric) in cells.iter().zip(widths).zip(numeric) {
            let part = cell.get(line).copied().unwrap_or("");
            // As in psql, `+` marks a value that continues on the next line.
            let mark = if line + 1 < cell.len() { '+' } else { ' ' };
            shown.push(if *numeric { format!(" {part:>width$}{mark}") } else { format!(" {part:<width$}{mark}") });
        }
        text.push_str(shown.join("|").trim_end());
        text.push('\n');
    }
}

fn format_csv_field(value: Option<&str>) -> String {
    match value {
        None => String::new(),
        Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Some(text) => text.to_owned(),
    }
}
