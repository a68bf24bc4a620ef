//! SET, RESET and SHOW.

use types::SqlResult;

use super::lex::Token;
use super::session_statement::SessionStatement;
use super::token_cursor::Cursor;

/// Settings whose values are lists of names: each name is quoted where necessary.
const NAME_LIST_SETTINGS: [&str; 4] =
    ["search_path", "temp_tablespaces", "local_preload_libraries", "session_preload_libraries"];

impl Cursor<'_> {
    pub(super) fn set_statement(&mut self) -> SqlResult<SessionStatement> {
        self.expect("set")?;
        if self.eat("session characteristics as transaction") {
            return Ok(SessionStatement::SetTransaction { modes: self.transaction_modes()?, session: true });
        }
        if self.eat("constraints all") {
            // No constraint is deferrable, so there is nothing to change.
            return match self.eat_one_of(&["deferred", "immediate"]) {
                Some(_) => Ok(SessionStatement::NoOp("SET CONSTRAINTS")),
                None => Err(self.syntax_error()),
            };
        }
        if self.next_is("constraints")
            && !matches!(self.peek_at(1), Token::Operator(_))
            && !self.next_is("constraints to")
        {
            return Err(self.unsupported("SET CONSTRAINTS"));
        }
        if self.next_is("transaction snapshot") {
            return Err(self.unsupported("SET TRANSACTION SNAPSHOT"));
        }
        let local = self.eat("local");
        if !local && !self.next_is("session authorization") {
            self.eat("session");
        }
        if self.next_is("transaction") && matches!(self.peek_at(1), Token::Word(word) if word != "to") {
            self.advance();
            return Ok(SessionStatement::SetTransaction { modes: self.transaction_modes()?, session: false });
        }
        if self.eat("session authorization") {
            let role = if self.eat("default") { None } else { Some(self.name_or_text()?) };
            return Ok(SessionStatement::SetSessionAuthorization { role, local });
        }
        if self.next_is("role") && !matches!(self.peek_at(1), Token::Operator(_)) && !self.next_is("role to") {
            self.advance();
            let role = if self.eat("none") { None } else { Some(self.name_or_text()?) };
            return Ok(SessionStatement::SetRole { role, local });
        }
        let (name, value) = self.assignment()?;
        Ok(SessionStatement::Set { name, value, local })
    }

    /// Parses `name = value` or a setting with syntax of its own, such as TIME ZONE; `None` is DEFAULT.
    pub(super) fn assignment(&mut self) -> SqlResult<(String, Option<String>)> {
        if self.eat("time zone") {
            return Ok(("TimeZone".to_owned(), self.time_zone_value()?));
        }
        if self.eat("names") {
            let value = if self.is_at_end() || self.eat("default") { None } else { Some(self.text()?) };
            return Ok(("client_encoding".to_owned(), value));
        }
        if self.next_is("schema") && matches!(self.peek_at(1), Token::Text(_)) {
            self.advance();
            return Ok(("search_path".to_owned(), Some(quote_list(&[self.text()?]))));
        }
        if self.next_is("xml option") || self.next_is("catalog") && matches!(self.peek_at(1), Token::Text(_)) {
            return Err(self.unsupported("SET XML OPTION and SET CATALOG"));
        }
        let name = self.setting_name()?;
        if self.next_is("from current") {
            return Err(self.unsupported("FROM CURRENT"));
        }
        if !self.eat_operator("=") && !self.eat("to") {
            return Err(self.syntax_error());
        }
        if self.eat("default") {
            return Ok((name, None));
        }
        let values = self.list(Self::setting_value)?;
        let value = if NAME_LIST_SETTINGS.contains(&name.as_str()) { quote_list(&values) } else { values.join(", ") };
        Ok((name, Some(value)))
    }

    /// Parses `name` or `extension.name`.
    pub(super) fn setting_name(&mut self) -> SqlResult<String> {
        let mut name = self.name()?.value;
        while self.eat_symbol('.') {
            name.push('.');
            name.push_str(&self.name()?.value);
        }
        Ok(name)
    }

    fn setting_value(&mut self) -> SqlResult<String> {
        let mut sign = "";
        if let Some(operator @ ("-" | "+")) = self.operator() {
            if operator == "-" {
                sign = "-";
            }
            self.advance();
            if !matches!(self.peek(), Token::Integer(_) | Token::Decimal(_)) {
                return Err(self.syntax_error());
            }
        }
        match self.peek() {
            Token::Integer(digits) | Token::Decimal(digits) => {
                self.advance();
                Ok(format!("{sign}{digits}"))
            }
            Token::Text(_) => self.text(),
            Token::Word(word) if matches!(word.as_str(), "true" | "false" | "on") => {
                self.advance();
                Ok(word.clone())
            }
            _ => {
                let value = self.type_or_column_name()?;
                Ok(value)
            }
        }
    }

    /// Parses a word that is not reserved.
    fn type_or_column_name(&mut self) -> SqlResult<String> {
        let start = self.next_index;
        if let Ok(name) = self.name() {
            return Ok(name.value);
        }
        self.next_index = start;
        self.type_name().map(|name| name.value)
    }

    fn name_or_text(&mut self) -> SqlResult<String> {
        match self.peek() {
            Token::Text(_) => self.text(),
            _ => self.type_or_column_name(),
        }
    }

    /// Parses the value after TIME ZONE.
    fn time_zone_value(&mut self) -> SqlResult<Option<String>> {
        if self.eat("local") || self.eat("default") {
            return Ok(None);
        }
        if self.next_is("interval") && matches!(self.peek_at(1), Token::Text(_)) {
            self.advance();
            let text = self.text()?;
            // Fields of `INTERVAL '+02:00' HOUR TO MINUTE` are ignored: a time zone has only hours and minutes.
            self.interval_fields();
            return Ok(Some(text));
        }
        self.setting_value().map(Some)
    }

    pub(super) fn reset(&mut self) -> SqlResult<SessionStatement> {
        self.expect("reset")?;
        if self.eat("all") {
            return Ok(SessionStatement::Reset(None));
        }
        if self.eat("session authorization") {
            return Ok(SessionStatement::SetSessionAuthorization { role: None, local: false });
        }
        let name = self.name_to_show()?;
        if name == "role" {
            return Ok(SessionStatement::SetRole { role: None, local: false });
        }
        Ok(SessionStatement::Reset(Some(name)))
    }

    pub(super) fn show(&mut self) -> SqlResult<SessionStatement> {
        self.expect("show")?;
        if self.eat("all") {
            return Ok(SessionStatement::Show(None));
        }
        if self.eat("session authorization") {
            return Ok(SessionStatement::Show(Some("session_authorization".to_owned())));
        }
        self.name_to_show().map(|name| SessionStatement::Show(Some(name)))
    }

    fn name_to_show(&mut self) -> SqlResult<String> {
        if self.eat("time zone") {
            return Ok("TimeZone".to_owned());
        }
        if self.eat("transaction isolation level") {
            return Ok("transaction_isolation".to_owned());
        }
        self.setting_name()
    }
}

/// Formats names as the value of a list setting: each is quoted where necessary, so that parsing the value returns the
/// same names.
pub fn quote_list(names: &[String]) -> String {
    let plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let quoted = |name: &String| {
        if plain(name) { name.clone() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    names.iter().map(quoted).collect::<Vec<_>>().join(", ")
}
