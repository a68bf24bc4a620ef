use super::{Config, ServeArguments};

fn parse(toml: &str) -> anyhow::Result<ServeArguments> {
    Ok(toml::from_str(toml)?)
}

#[test]
fn the_command_line_wins_over_the_file() {
    let file = parse("listen = \"127.0.0.1:1\"\nhttp = \"127.0.0.1:2\"").expect("the file is well formed");
    let line = ServeArguments { listen: Some(([127, 0, 0, 1], 9).into()), ..ServeArguments::default() };
    let config = line.with_fallback(file).into_config().expect("both are complete");
    assert_eq!((config.pg_listen_address.port(), config.http_listen_address.port()), (9, 2));
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
    assert_eq!(config.storage_url, "file:///somewhere/storage");
}

#[test]
fn workers_come_to_an_address_with_or_without_a_port_and_are_started_by_what_is_said() {
    let config = |door: &str, launcher: &str| {
        let file = format!("worker_door = \"{door}\"\nworker_launcher = \"{launcher}\"");
        parse(&file).expect("the file is well formed").into_config()
    };
    for (text, address) in [("10.0.0.1", "10.0.0.1:0"), ("[::1]:47", "[::1]:47"), ("::1", "[::1]:0")] {
        let door = config(text, "nice -n {slot}").expect("both are complete").worker_listen_address;
        assert_eq!(door, Some(address.parse().expect("it is one")), "{text}");
    }
    assert!(config("somewhere", "nice").is_err());
    assert!(config("::1", "nice {pod}").is_err());
}
