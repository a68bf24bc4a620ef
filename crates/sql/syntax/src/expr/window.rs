//! OVER: window specifications and frames.

use sqlparser::ast::{
    NamedWindowDefinition, NamedWindowExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use types::{Condition, SqlError, SqlResult};

use super::Cursor;
use crate::lex::Token;

impl Cursor<'_> {
    /// Parses the name of a window or its specification, after OVER.
    pub(super) fn over_clause(&mut self) -> SqlResult<WindowType> {
        if self.is_symbol('(') {
            return self.window_spec().map(WindowType::WindowSpec);
        }
        self.name().map(WindowType::NamedWindow)
    }

    /// Parses `name AS (specification)` of WINDOW.
    pub(crate) fn named_window(&mut self) -> SqlResult<NamedWindowDefinition> {
        let name = self.name()?;
        self.expect("as")?;
        Ok(NamedWindowDefinition(name, NamedWindowExpr::WindowSpec(self.window_spec()?)))
    }

    fn window_spec(&mut self) -> SqlResult<WindowSpec> {
        self.expect_symbol('(')?;
        let begins_clause = matches!(self.next_word(), Some("partition" | "order" | "range" | "rows" | "groups"));
        let window_name = if begins_clause || self.is_symbol(')') { None } else { Some(self.name()?) };
        let partition_by = if self.eat("partition by") { self.list(Self::expr)? } else { Vec::new() };
        let order_by = if self.eat("order by") { self.list(Self::order_by_expr)? } else { Vec::new() };
        let window_frame = self.window_frame()?;
        self.expect_symbol(')')?;
        Ok(WindowSpec { window_name, partition_by, order_by, window_frame })
    }

    fn window_frame(&mut self) -> SqlResult<Option<WindowFrame>> {
        let units = match self.eat_one_of(&["rows", "range", "groups"]) {
            Some("rows") => WindowFrameUnits::Rows,
            Some("range") => WindowFrameUnits::Range,
            Some(_) => WindowFrameUnits::Groups,
            None => return Ok(None),
        };
        let (start_bound, end_bound) = if self.eat("between") {
            let start = self.frame_bound()?;
            self.expect("and")?;
            (start, Some(self.frame_bound()?))
        } else {
            (self.frame_bound()?, None)
        };
        check_bounds(&start_bound, end_bound.as_ref())?;
        if self.eat("exclude") && !self.eat("no others") {
            return Err(self.unsupported("EXCLUDE in a window frame"));
        }
        Ok(Some(WindowFrame { units, start_bound, end_bound }))
    }

    fn frame_bound(&mut self) -> SqlResult<WindowFrameBound> {
        if self.eat("current row") {
            return Ok(WindowFrameBound::CurrentRow);
        }
        let unbounded = self.next_is("unbounded") && matches!(self.peek_at(1), Token::Word(_));
        let distance = if unbounded {
            self.advance();
            None
        } else {
            Some(Box::new(self.expr()?))
        };
        match self.eat_one_of(&["preceding", "following"]) {
            Some("preceding") => Ok(WindowFrameBound::Preceding(distance)),
            Some(_) => Ok(WindowFrameBound::Following(distance)),
            None => Err(self.syntax_error()),
        }
    }
}

/// Refuses combinations of frame bounds that PostgreSQL refuses (`42P20`).
fn check_bounds(start: &WindowFrameBound, end: Option<&WindowFrameBound>) -> SqlResult<()> {
    use WindowFrameBound as B;
    let message = match (start, end.unwrap_or(&B::CurrentRow)) {
        (B::Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, B::Preceding(None)) => "frame end cannot be UNBOUNDED PRECEDING",
        (B::CurrentRow, B::Preceding(_)) => "frame starting from current row cannot have preceding rows",
        (B::Following(_), B::Preceding(_) | B::CurrentRow) => {
            if end.is_none() {
                "frame starting from following row cannot end with current row"
            } else {
                "frame starting from following row cannot have preceding rows"
            }
        }
        _ => return Ok(()),
    };
    Err(SqlError::new(Condition::WindowingError, message))
}
