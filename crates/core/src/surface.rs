//! What an agent is handed of its tools: all of them, or a few and a search for the others.

use std::str::FromStr;

use crate::{Tool, ToolPattern, View, tokens};

/// What an agent is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Surface {
    /// All its tools as long as they cost little, else a search.
    #[default]
    Auto,
    /// All its tools, for clients that put some aside themselves.
    List,
    /// A few tools, and a search for the others.
    Search,
}

/// From this many tokens on, `auto` is a search.
pub const TOO_MANY: usize = 8_000;
/// Down to this many it stays one.
pub const FEW_AGAIN: usize = 6_000;

impl Surface {
    pub const ALL: [Surface; 3] = [Surface::Auto, Surface::List, Surface::Search];

    pub fn as_str(self) -> &'static str {
        match self {
            Surface::Auto => "auto",
            Surface::List => "list",
            Surface::Search => "search",
        }
    }

    /// Is it a search, when all tools cost so many tokens, and it was one (or not) the last time?
    pub fn searches(self, tokens: usize, did: bool) -> bool {
        match self {
            Surface::Auto => tokens > if did { FEW_AGAIN } else { TOO_MANY },
            Surface::List => false,
            Surface::Search => true,
        }
    }
}

impl FromStr for Surface {
    type Err = ();

    fn from_str(text: &str) -> Result<Surface, ()> {
        let named = |surface: &Surface| surface.as_str() == text;
        Surface::ALL.into_iter().find(named).ok_or(())
    }
}

/// What a profile says about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurfaceRule {
    pub surface: Surface,
    /// The tools that a search lists all the same.
    pub pinned: Vec<ToolPattern>,
}

impl SurfaceRule {
    pub fn pins(&self, tool: &Tool) -> bool {
        let (out, named): (Vec<_>, Vec<_>) = self.pinned.iter().partition(|one| one.leaves_out());
        named.iter().any(|one| one.matches(tool)) && !out.iter().any(|one| one.matches(tool))
    }
}

/// How many tokens a model pays for one tool in a list, about.
pub fn tokens_of(tool: &Tool) -> usize {
    let spec = &tool.spec;
    let schemas = [Some(&spec.input_schema), spec.output_schema.as_ref()];
    let schemas = schemas.into_iter().flatten();
    let schemas: usize = schemas
        .map(|schema| tokens::estimate(&schema.value().to_string()))
        .sum();
    // The names and marks around all that.
    const FRAME: usize = 12;
    tokens::estimate(tool.name()) + tokens::estimate(&spec.description) + schemas + FRAME
}

impl View {
    /// How many tokens all listed tools cost, about.
    pub fn list_tokens(&self) -> usize {
        struct Total(usize);
        self.derived(|view| Total(view.listed().map(|tool| tokens_of(tool)).sum()))
            .0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_turns_at_one_figure_and_back_at_another() {
        let turns = [
            (8_000, false, false),
            (8_001, false, true),
            (7_000, true, true),
            (7_000, false, false),
            (6_000, true, false),
        ];
        for (tokens, did, searches) in turns {
            assert_eq!(
                Surface::Auto.searches(tokens, did),
                searches,
                "{tokens} {did}"
            );
        }
        assert!(!Surface::List.searches(1_000_000, true));
        assert!(Surface::Search.searches(0, false));
        assert_eq!("flat".parse::<Surface>(), Err(()));
    }
}
