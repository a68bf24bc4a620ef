//! Options of CREATE and ALTER CLUSTER: `(NODE_COUNT = 2, AUTO_SUSPEND 60)`.

use cluster_model::{ClusterOption, ClusterOptions, OptionForm, OptionValue};
use types::{Condition, SqlError, SqlResult};

use crate::lex::Token;
use crate::token_cursor::Cursor;

impl Cursor<'_> {
    /// Parses `(name = value, …)`, where the equals signs and commas are optional.
    pub(super) fn cluster_options(&mut self) -> SqlResult<ClusterOptions> {
        self.expect_symbol('(')?;
        let mut options = ClusterOptions::default();
        loop {
            self.cluster_option(&mut options)?;
            if self.eat_symbol(',') {
                continue;
            }
            if self.eat_symbol(')') {
                return Ok(options);
            }
        }
    }

    fn cluster_option(&mut self, options: &mut ClusterOptions) -> SqlResult<()> {
        let start = self.next_index;
        let Some(name) = self.next_word() else { return Err(self.syntax_error()) };
        let Some(option) = ClusterOption::named(name) else {
            let message = format!("unrecognized cluster option \"{name}\"");
            return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
        };
        self.advance();
        self.eat_operator("=");
        let value = self.cluster_option_value(option.form)?;
        if options.assign(option, value) {
            return Ok(());
        }
        self.next_index = start;
        Err(self.with_next_position(SqlError::new(Condition::SyntaxError, "conflicting or redundant options")))
    }

    fn cluster_option_value(&mut self, form: OptionForm) -> SqlResult<OptionValue> {
        Ok(match form {
            OptionForm::Number { .. } => OptionValue::Number(self.count()?),
            OptionForm::NumberOrNull { .. } if self.eat("null") => OptionValue::Null,
            OptionForm::NumberOrNull { .. } => OptionValue::Number(self.count()?),
            OptionForm::Boolean => OptionValue::Boolean(self.boolean()?),
            OptionForm::Hardware | OptionForm::Profile => OptionValue::Name(self.option_name()?),
        })
    }

    /// Parses an integer; one beyond 64 bits becomes `i64::MAX`, which every option refuses.
    fn count(&mut self) -> SqlResult<i64> {
        let is_negative = self.eat_operator("-");
        let Token::Integer(digits) = self.peek() else { return Err(self.syntax_error()) };
        let count = digits.parse().unwrap_or(i64::MAX);
        self.advance();
        Ok(if is_negative { -count } else { count })
    }

    fn boolean(&mut self) -> SqlResult<bool> {
        match self.eat_one_of(&["true", "on", "false", "off"]) {
            Some(word) => Ok(matches!(word, "true" | "on")),
            None => Err(self.syntax_error()),
        }
    }

    /// Parses a name, which may be any word, or a string constant.
    fn option_name(&mut self) -> SqlResult<String> {
        match self.peek() {
            Token::Text(_) => self.text(),
            _ => self.label().map(|label| label.value),
        }
    }
}
