//! Byte offsets become lines and columns.

/// Where something is in a text. Both count from 1; a column is a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

const BLOCK: usize = 128;

/// The lines of one text, found once, so that each lookup is cheap even in a file of one long line.
pub struct Lines<'a> {
    text: &'a str,
    /// Where each line begins.
    starts: Vec<usize>,
    /// How many characters begin before each block of bytes.
    blocks: Vec<u32>,
}

impl<'a> Lines<'a> {
    pub fn of(text: &'a str) -> Lines<'a> {
        let bytes = text.as_bytes();
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes)
            .filter(|at| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'));
        let starts = std::iter::once(0).chain(ends.map(|at| at + 1)).collect();
        let mut blocks = Vec::with_capacity(bytes.len() / BLOCK + 1);
        let mut count = 0;
        for chunk in bytes.chunks(BLOCK) {
            blocks.push(count);
            count += begun(chunk);
        }
        if blocks.is_empty() {
            blocks.push(0);
        }
        Lines {
            text,
            starts,
            blocks,
        }
    }

    pub fn at(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let mut start = self.starts[line - 1];
        if start == 0 && self.text.starts_with('\u{feff}') {
            start = '\u{feff}'.len_utf8().min(offset);
        }
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: self.characters(offset) - self.characters(start) + 1,
        }
    }

    /// How many characters begin before `offset`.
    fn characters(&self, offset: usize) -> u32 {
        let block = (offset / BLOCK).min(self.blocks.len() - 1);
        self.blocks[block] + begun(&self.text.as_bytes()[block * BLOCK..offset])
    }
}

/// How many characters begin in these bytes of UTF-8.
fn begun(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, offset: usize) -> (u32, u32) {
        let found = Lines::of(text).at(offset);
        (found.line, found.column)
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        assert_eq!(at("", 0), (1, 1));
        assert_eq!(at("a\nbc", 3), (2, 2));
        assert_eq!(at("a\r\nbc", 3), (2, 1));
        assert_eq!(at("a\rb", 2), (2, 1));
        assert_eq!(at("a\n", 99), (2, 1));
    }

    #[test]
    fn a_column_is_a_character() {
        assert_eq!(at("\u{e4}\u{1f600}x", 6), (1, 3));
        let long = "\u{e4}".repeat(1000);
        assert_eq!(at(&long, 1000), (1, 501));
        assert_eq!(at("\u{feff}x", 3), (1, 1));
    }
}
