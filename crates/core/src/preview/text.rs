//! Text in little: a table by its columns and first rows, code by what it defines, anything else by its first and last
//! lines and by what looks like an error in between.

use super::{Sample, line};

const FIRST: usize = 8;
const LAST: usize = 5;
const ERRORS: usize = 10;
const ROWS: usize = 5;
const DEFINED: usize = 25;
/// So many lines are looked at to tell what a text is.
const LOOKED_AT: usize = 20;

pub fn preview(sample: Sample<'_>) -> String {
    let size = format!("{} lines, {} bytes", sample.lines, sample.bytes);
    let head: Vec<&str> = sample.start.lines().take(LOOKED_AT).collect();
    if let Some(mark) = table_mark(&head) {
        return table(sample, mark, &size);
    }
    let defined = definitions(sample.start);
    if defined.len() >= 3 && defined.len() * 200 >= sample.start.lines().count() {
        let mut told = format!("code: {size}; it defines:\n");
        for (number, text) in defined.iter().take(DEFINED) {
            told.push_str(&format!("{number}: {}\n", line(text)));
        }
        if defined.len() > DEFINED {
            told.push_str(&format!("… {} more\n", defined.len() - DEFINED));
        }
        return told;
    }
    plain(sample, &size)
}

/// What separates the columns, if every line has as many of it.
fn table_mark(head: &[&str]) -> Option<char> {
    let head: Vec<&&str> = head.iter().filter(|line| !line.trim().is_empty()).collect();
    ['\t', ',', ';', '|'].into_iter().find(|mark| {
        let counts: Vec<usize> = head
            .iter()
            .map(|line| line.matches(*mark).count())
            .collect();
        let first = counts.first().copied().unwrap_or_default();
        // Prose has commas too, but not as many in each line.
        head.len() >= 3 && first > 0 && counts.iter().all(|count| *count == first)
    })
}

fn table(sample: Sample<'_>, mark: char, size: &str) -> String {
    let mut lines = sample.start.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().unwrap_or_default();
    let columns: Vec<&str> = header
        .split(mark)
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .collect();
    let mut told = format!(
        "table: {size}; {} columns: {}\nfirst rows:\n",
        columns.len(),
        line(&columns.join(", "))
    );
    for row in lines.take(ROWS) {
        told.push_str(&line(row));
        told.push('\n');
    }
    told.push_str("last row:\n");
    let last = sample.end.unwrap_or(sample.start).lines().rev();
    let last = last.into_iter().find(|line| !line.trim().is_empty());
    told.push_str(&line(last.unwrap_or_default()));
    told
}

/// Lines that define something, in most languages, with their numbers.
fn definitions(text: &str) -> Vec<(usize, &str)> {
    const STARTS: [&str; 20] = [
        "fn ",
        "pub fn ",
        "pub struct ",
        "struct ",
        "pub enum ",
        "enum ",
        "impl ",
        "pub trait ",
        "trait ",
        "def ",
        "async def ",
        "class ",
        "function ",
        "export ",
        "async function ",
        "interface ",
        "func ",
        "public class ",
        "pub(crate) fn ",
        "module ",
    ];
    let defines = |line: &&str| {
        let text = line.trim_start();
        let deep = line.len() - text.len() > 4;
        let code = |c: char| "({:;=<".contains(c);
        !deep && STARTS.iter().any(|start| text.starts_with(start)) && text.contains(code)
    };
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| defines(line))
        .collect()
}

/// Does a line of a log tell that something went wrong?
fn is_error(line: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "error",
        "Error",
        "ERROR",
        "FATAL",
        "fatal",
        "panic",
        "Exception",
        "Traceback",
        "FAILED",
        "failed",
        "CRITICAL",
        "WARN",
    ];
    SIGNS.iter().any(|sign| line.contains(sign))
}

fn plain(sample: Sample<'_>, size: &str) -> String {
    let lines: Vec<&str> = sample.start.lines().collect();
    let mut told = format!("text: {size}\nfirst lines:\n");
    for text in lines.iter().take(FIRST) {
        told.push_str(&line(text));
        told.push('\n');
    }
    // The last lines come out of the end, where that is another part.
    let between = match sample.end {
        Some(_) => lines.get(FIRST..),
        None => lines.get(FIRST..lines.len().saturating_sub(LAST)),
    };
    let errors: Vec<(usize, &str)> = (FIRST + 1..)
        .zip(between.unwrap_or_default().iter().copied())
        .filter(|(_, line)| is_error(line))
        .collect();
    if !errors.is_empty() {
        told.push_str(&format!(
            "lines in between that look like errors ({}):\n",
            errors.len()
        ));
        for (number, text) in errors.iter().take(ERRORS) {
            told.push_str(&format!("{number}: {}\n", line(text)));
        }
    }
    let end: Vec<&str> = match sample.end {
        Some(end) => end.lines().collect(),
        None => lines.get(FIRST..).unwrap_or_default().to_vec(),
    };
    if !end.is_empty() {
        told.push_str("last lines:\n");
        for text in &end[end.len().saturating_sub(LAST)..] {
            told.push_str(&line(text));
            told.push('\n');
        }
    }
    told
}
