//! Options of CREATE and ALTER CLUSTER: `(NODE_COUNT = 2, AUTO_SUSPEND 60)`.

use cluster_model::ClusterOptions;
use types::{Condition, SqlError, SqlResult};

use crate::cursor::Cursor;
use crate::lex::Token;

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
        let start = self.at;
        let Some(option) = self.word() else { return Err(self.syntax_error()) };
        self.advance();
        self.eat_operator("=");
        let is_first = match option {
            "node_count" => options.node_count.replace(self.count()?).is_none(),
            "hardware_instance" => options.hardware_instance.replace(self.option_name()?).is_none(),
            "wlm_profile" => options.wlm_profile.replace(self.option_name()?).is_none(),
            "auto_suspend" => options.auto_suspend.replace(self.count_or_null()?).is_none(),
            "auto_resume" => options.auto_resume.replace(self.boolean()?).is_none(),
            "max_spill_pct" => options.max_spill_pct.replace(self.count_or_null()?).is_none(),
            "max_cache_pct" => options.max_cache_pct.replace(self.count_or_null()?).is_none(),
            unknown => {
                self.at = start;
                let message = format!("unrecognized cluster option \"{unknown}\"");
                return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
            }
        };
        if is_first {
            return Ok(());
        }
        self.at = start;
        Err(self.with_next_position(SqlError::new(Condition::SyntaxError, "conflicting or redundant options")))
    }

    /// Parses an integer; one beyond 64 bits becomes `i64::MAX`, which every option refuses.
    fn count(&mut self) -> SqlResult<i64> {
        let is_negative = self.eat_operator("-");
        let Token::Integer(digits) = self.peek() else { return Err(self.syntax_error()) };
        let count = digits.parse().unwrap_or(i64::MAX);
        self.advance();
        Ok(if is_negative { -count } else { count })
    }

    fn count_or_null(&mut self) -> SqlResult<Option<i64>> {
        if self.eat("null") { Ok(None) } else { self.count().map(Some) }
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
