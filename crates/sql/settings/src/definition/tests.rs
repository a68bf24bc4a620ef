//! `docs/reference/settings.md`: every setting with its type, default, values and description.

use generated_docs::{check_page, inline_code, markdown_table};

use super::{ChangeLevel, DEFINITIONS, Definition, ValueKind};

const INTRODUCTION: &str = "\
Settings of a session. [SET](sql/set.md) changes one, [SHOW](sql/show.md) prints it, [RESET](sql/reset.md) restores its default, and `pg_settings` lists all.
Options of the server are something else: [configure.md](../operations/configure.md).";

const CHANGEABLE: &str = "\
Every role may change these for its session. The default of new sessions comes from `ALTER DATABASE kiln SET`, then from `ALTER ROLE … SET`,
then from the options of the connection; the last one wins. `kiln.statement_token` is for one transaction and cannot be a default of a role or database.

Names and words are compared without regard to case. A number of milliseconds or kilobytes takes another unit as well: `'90s'`, `'5min'`, `'512MB'`.";

const CUSTOM: &str = "\
An application may set names of its own: words joined by a dot, such as `app.tenant`. Their values are text. Names that begin with `kiln.` are reserved.";

const FIXED: &str = "\
Kiln accepts these so that clients that set them go on, with one value alone. Another value is refused with `0A000`.";

const READ_ONLY: &str = "\
These can be shown but not set (`55P02`). The server fills in those that depend on the session.";

/// Returns the values that a setting accepts.
fn values(definition: &Definition) -> String {
    match definition.kind {
        ValueKind::Bool => "`on`, `off`".to_owned(),
        ValueKind::Integer { min, max, unit } => {
            let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
            format!("{min} to {max}{unit}")
        }
        ValueKind::Enum(words) => words.iter().map(|word| inline_code(word)).collect::<Vec<_>>().join(", "),
        ValueKind::Text => "text".to_owned(),
        ValueKind::PrintableText => "text; characters other than printable ASCII become `?`".to_owned(),
        ValueKind::ShortText(bytes_max) => format!("text of at most {bytes_max} bytes"),
        ValueKind::Names => "names, separated by commas".to_owned(),
        ValueKind::Zone => "a name of `pg_timezone_names`, or an offset".to_owned(),
        ValueKind::DateStyle => "`ISO` with `MDY`, `DMY` or `YMD`".to_owned(),
        ValueKind::Encoding => "`UTF8`".to_owned(),
        ValueKind::Fixed(spellings) => {
            let shown =
                spellings.iter().map(|word| if word.is_empty() { "empty".to_owned() } else { inline_code(word) });
            shown.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the built-in value as SHOW prints it.
fn default_value(definition: &Definition) -> String {
    let shown = definition.format(definition.boot);
    if shown.is_empty() { "empty".to_owned() } else { inline_code(&shown) }
}

fn is_fixed(definition: &Definition) -> bool {
    matches!(definition.kind, ValueKind::Fixed(_) | ValueKind::Encoding)
}

fn has_prefix(definition: &Definition) -> bool {
    definition.name.starts_with("kiln.")
}

/// Formats the settings that satisfy `is_in`, sorted by name.
fn settings_table(is_in: impl Fn(&Definition) -> bool) -> String {
    let mut found: Vec<&Definition> = DEFINITIONS.iter().filter(|definition| is_in(definition)).collect();
    found.sort_by_key(|definition| definition.name.to_ascii_lowercase());
    let rows = found.into_iter().map(|definition| {
        vec![
            inline_code(definition.name),
            definition.vartype().to_owned(),
            default_value(definition),
            values(definition),
            definition.description.to_owned(),
        ]
    });
    markdown_table(&["setting", "type", "default", "values", "description"], rows)
}

#[test]
fn the_page_of_settings_is_that_of_the_code() {
    let changeable = |definition: &Definition| definition.source == ChangeLevel::Session && !is_fixed(definition);
    let page = [
        format!("{INTRODUCTION}\n"),
        format!("## Settings of a session\n\n{CHANGEABLE}\n\n### Kiln's own\n"),
        settings_table(|definition| changeable(definition) && has_prefix(definition)),
        "### PostgreSQL's\n".to_owned(),
        settings_table(|definition| changeable(definition) && !has_prefix(definition)),
        format!("### Custom settings\n\n{CUSTOM}\n"),
        format!("## Settings with one value\n\n{FIXED}\n"),
        settings_table(|definition| definition.source == ChangeLevel::Session && is_fixed(definition)),
        format!("## Read-only settings\n\n{READ_ONLY}\n"),
        settings_table(|definition| definition.source == ChangeLevel::Internal),
    ];
    check_page("reference/settings.md", "Settings", &page.join("\n"));
}

#[test]
fn every_built_in_value_is_in_canonical_form() {
    for definition in DEFINITIONS.iter().filter(|definition| definition.source == ChangeLevel::Session) {
        assert_eq!(definition.canonicalize(definition.boot).as_deref(), Ok(definition.boot), "{}", definition.name);
    }
}
