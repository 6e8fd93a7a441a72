//! What reading one text may take. All numbers are here; what goes beyond one of them is refused with a word.
//!
//! Parsers can't be interrupted, and some take time in proportion to the square of a nesting. So a pass over the tokens
//! measures a text before it is parsed ([`Gauge`]), and the walk after it counts its steps ([`Meter`]).

use std::time::{Duration, Instant};

use crate::place::Lines;
use crate::{Cause, SyntaxError};

/// What reading one text may take.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The longest text, in bytes.
    pub bytes: usize,
    /// How many words and signs a text may have. What a parser makes of one takes up to two hundred bytes.
    pub tokens: usize,
    /// How much may stand around one token: open brackets, blocks, and links of the chains that lead to it, as in
    /// `a.b.c`, `a + b + c`, `not not a` and `else if`.
    pub depth: usize,
    /// How deep a text may be on the whole: the depth of all its tokens, added up.
    pub area: usize,
    /// How much a parser may have to read again, because what it took it for turns out to be something else: for every
    /// token the number of such guesses that are open, added up.
    pub guesses: usize,
    /// Steps of the walk: one for each expression, more for those with large values.
    pub steps: usize,
    /// How many modules a text may import. Each part of a dotted name counts, and each name that is taken from it.
    pub imports: usize,
    /// The longest name of a module, in bytes.
    pub module: usize,
    /// How many tools a text may declare.
    pub tools: usize,
    /// The longest `# /// script` block, in bytes.
    pub metadata: usize,
    /// How long the walk may take. The other numbers end it long before; this one is for what they miss.
    pub time: Duration,
}

pub const BUDGET: Budget = Budget {
    bytes: 1 << 20,
    tokens: 300_000,
    depth: 2_000,
    area: 32 << 20,
    guesses: 1 << 20,
    steps: 4_000_000,
    imports: 5_000,
    module: 1_024,
    tools: 500,
    metadata: 64 << 10,
    time: Duration::from_secs(10),
};

/// What went beyond the budget, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    offset: usize,
    message: String,
}

impl Excess {
    pub fn new(offset: usize, message: impl Into<String>) -> Excess {
        let message = message.into();
        Excess { offset, message }
    }

    /// The same at another place.
    pub fn at(self, offset: usize) -> Excess {
        Excess { offset, ..self }
    }

    pub fn error(self, lines: &Lines<'_>) -> SyntaxError {
        SyntaxError {
            cause: Cause::Budget,
            message: self.message,
            at: lines.at(self.offset),
        }
    }
}

/// Measures how deep a text is, from its tokens alone.
pub struct Gauge {
    levels: Vec<Level>,
    /// What all levels hold together.
    depth: usize,
    area: usize,
    tokens: usize,
    /// How many guesses are open, and what they added up to.
    guesses: usize,
    guessed: usize,
}

/// What is between two brackets, or in a block.
#[derive(Default)]
struct Level {
    /// Links of the chain that is being read; a comma ends it.
    links: usize,
    /// Links that a comma does not end.
    lasting: usize,
    /// Guesses: which a comma ends, which a statement's end, and which only the level's.
    until_comma: usize,
    until_end: usize,
    until_close: usize,
}

impl Gauge {
    pub fn new() -> Gauge {
        Gauge {
            levels: vec![Level::default()],
            depth: 0,
            area: 0,
            tokens: 0,
            guesses: 0,
            guessed: 0,
        }
    }

    /// Anything at all: it is as deep as what stands around it.
    #[inline]
    pub fn token(&mut self, offset: usize) -> Result<(), Excess> {
        self.area += self.depth;
        self.tokens += 1;
        self.guessed += self.guesses;
        let within = self.tokens <= BUDGET.tokens
            && self.depth <= BUDGET.depth
            && self.area <= BUDGET.area
            && self.guessed <= BUDGET.guesses;
        match within {
            true => Ok(()),
            false => Err(self.excess(offset)),
        }
    }

    /// What went beyond the budget.
    #[cold]
    fn excess(&self, offset: usize) -> Excess {
        let (tokens, depth) = (BUDGET.tokens, BUDGET.depth);
        let message = if self.guessed > BUDGET.guesses {
            "so much of it can be read in several ways that it is not read on: brackets that may be parameters, `<` that may begin types, `var` in nested blocks; split it".to_owned()
        } else if self.tokens > tokens {
            format!(
                "the file has more than {tokens} words and signs, and no more is read; split it"
            )
        } else if self.depth > depth {
            format!(
                "it is nested or chained more than {depth} deep here, and that is the most that is read; split it"
            )
        } else {
            "so much of it is deeply nested or chained that it is not read on; split the file, or its long expressions".to_owned()
        };
        Excess::new(offset, message)
    }

    /// A token after which what follows may be deeper.
    #[inline]
    pub fn link(&mut self, offset: usize) -> Result<(), Excess> {
        self.depth += 1;
        self.level().links += 1;
        self.token(offset)
    }

    /// The same for what a comma does not end.
    #[inline]
    pub fn lasting(&mut self, offset: usize) -> Result<(), Excess> {
        self.depth += 1;
        self.level().lasting += 1;
        self.token(offset)
    }

    /// What was [`Gauge::lasting`] may have ended.
    pub fn relent(&mut self) {
        let level = self.level();
        let (lasting, guess) = (level.lasting.min(1), level.until_end.min(1));
        level.lasting -= lasting;
        level.until_end -= guess;
        self.depth -= lasting;
        self.guesses -= guess;
    }

    /// The parser guesses from here to the next comma.
    pub fn guess_until_comma(&mut self) {
        self.guesses += 1;
        self.level().until_comma += 1;
    }

    /// The parser guesses from here to the statement's end, or until [`Gauge::relent`].
    pub fn guess(&mut self) {
        self.guesses += 1;
        self.level().until_end += 1;
    }

    /// The parser guesses up to the end of this level.
    pub fn guess_until_close(&mut self) {
        self.guesses += 1;
        self.level().until_close += 1;
    }

    /// Something is carried through all blocks around it, which are two links each.
    pub fn guess_through(&mut self, offset: usize) -> Result<(), Excess> {
        self.guessed += self.depth / 2;
        match self.guessed <= BUDGET.guesses {
            true => Ok(()),
            false => Err(self.excess(offset)),
        }
    }

    #[inline]
    pub fn open(&mut self, offset: usize) -> Result<(), Excess> {
        self.link(offset)?;
        self.levels.push(Level::default());
        Ok(())
    }

    #[inline]
    pub fn close(&mut self) {
        self.end();
        let guesses = std::mem::take(&mut self.level().until_close);
        self.guesses -= guesses;
        if self.levels.len() > 1 {
            self.levels.pop();
        }
    }

    /// What stood before a comma has ended.
    #[inline]
    pub fn comma(&mut self) {
        let level = self.level();
        let links = std::mem::take(&mut level.links);
        let guesses = std::mem::take(&mut level.until_comma);
        self.depth -= links;
        self.guesses -= guesses;
    }

    /// A statement has ended.
    #[inline]
    pub fn end(&mut self) {
        self.comma();
        let level = self.level();
        let lasting = std::mem::take(&mut level.lasting);
        let guesses = std::mem::take(&mut level.until_end);
        self.depth -= lasting;
        self.guesses -= guesses;
    }

    #[inline]
    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }
}

/// How many steps there are between two looks at the clock.
const TICK: usize = 4_096;

/// Counts the steps of a walk. Where they are used up, the walk goes no further.
pub struct Meter {
    left: usize,
    began: Instant,
    excess: Option<Excess>,
}

impl Meter {
    pub fn new() -> Meter {
        Meter {
            left: BUDGET.steps,
            began: Instant::now(),
            excess: None,
        }
    }

    /// Takes one step; false where the walk has to end.
    #[inline]
    pub fn step(&mut self, offset: usize) -> bool {
        self.spend(offset, 1);
        self.excess.is_none()
    }

    #[inline]
    pub fn spend(&mut self, offset: usize, steps: usize) {
        match self.left.checked_sub(steps) {
            Some(left) if self.left / TICK == left / TICK && self.excess.is_none() => {
                self.left = left;
            }
            left => self.tick(offset, left),
        }
    }

    /// Now and then, and at the end.
    #[cold]
    fn tick(&mut self, offset: usize, left: Option<usize>) {
        let Some(left) = left else {
            let message = "following what its strings and lists become takes too much work from here on; write values out, and split the file";
            return self.refuse(offset, message);
        };
        self.left = left;
        if self.began.elapsed() > BUDGET.time {
            let most = BUDGET.time.as_secs();
            self.refuse(
                offset,
                format!("reading it takes longer than {most} s; split the file"),
            );
        }
    }

    /// Ends the walk for another reason.
    pub fn refuse(&mut self, offset: usize, message: impl Into<String>) {
        self.excess
            .get_or_insert_with(|| Excess::new(offset, message));
    }

    pub fn finish(self) -> Result<(), Excess> {
        self.excess.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_goes_down_again_by_all_that_it_went_up() {
        let mut gauge = Gauge::new();
        for _ in 0..3 {
            gauge.link(0).unwrap();
            gauge.open(0).unwrap();
            gauge.lasting(0).unwrap();
            gauge.comma();
            gauge.link(0).unwrap();
            gauge.relent();
        }
        assert_eq!(gauge.depth, 9);
        for _ in 0..5 {
            gauge.close();
        }
        assert_eq!((gauge.depth, gauge.levels.len()), (0, 1));
    }

    #[test]
    fn steps_are_used_up_once() {
        let mut meter = Meter::new();
        meter.spend(7, BUDGET.steps);
        assert!(!meter.step(8));
        meter.refuse(9, "later");
        assert_eq!(meter.finish().unwrap_err().offset, 8);
    }
}
