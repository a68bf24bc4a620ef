use super::{Config, ServeArguments};

fn parse(toml: &str) -> anyhow::Result<ServeArguments> {
    Ok(toml::from_str(toml)?)
}

#[test]
fn the_command_line_wins_over_the_file() {
    let file = parse("listen = \"127.0.0.1:1\"\nhttp = \"127.0.0.1:2\"").expect("the file is well formed");
    let line = ServeArguments { listen: Some(([127, 0, 0, 1], 9).into()), ..ServeArguments::default() };
    let config = line.over(file).into_config().expect("both are complete");
    assert_eq!((config.listen.port(), config.http.port()), (9, 2));
}

#[test]
fn an_unknown_option_in_the_file_is_refused() {
    assert!(parse("lisen = \"127.0.0.1:1\"").is_err());
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let line = ServeArguments { tls_cert: Some("a.pem".into()), ..ServeArguments::default() };
    assert!(line.into_config().is_err());
}

#[test]
fn storage_lies_in_the_data_folder_unless_said_otherwise() {
    let line = ServeArguments { data: Some("/somewhere".into()), config: None, ..ServeArguments::default() };
    let config = Config::load(line).expect("defaults are complete");
    assert_eq!(config.storage, "file:///somewhere/storage");
}
