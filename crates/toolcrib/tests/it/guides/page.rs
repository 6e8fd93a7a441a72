//! Reads a page: its blocks, what comments say about them, and what they promise.

use super::promise::Promise;

/// One thing to do.
pub enum Step {
    /// Write this file.
    File { path: String, text: String },
    /// Run this to its end.
    Run(Block),
    /// Start this, and leave it running.
    RunOn(Block),
}

/// Commands, and what the page promises about them.
pub struct Block {
    /// The line on which it begins.
    pub line: usize,
    pub commands: String,
    /// The exit codes of the commands that fail.
    pub exits: Vec<String>,
    pub promise: Promise,
}

/// What a comment says about the block behind it.
enum Remark {
    NotRun,
    Exits(Vec<String>),
    RunsOn,
    File(String),
}

/// What there is to do on a page, or what it says that can't be.
pub fn read(text: &str) -> Result<Vec<Step>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut steps, mut remark, mut at) = (Vec::new(), None, 0);
    while let Some(line) = lines.get(at) {
        let number = at + 1;
        if let Some(language) = line.strip_prefix("```") {
            let (body, behind) = block(&lines, at);
            let (promise, behind) = match language {
                "sh" => promised(&lines, body.as_str(), behind),
                _ => (Promise::default(), behind),
            };
            let block = Block {
                line: number,
                commands: body,
                exits: Vec::new(),
                promise,
            };
            steps.extend(step(block, language, remark.take()));
            at = behind;
            continue;
        }
        if let Some(comment) = line.strip_prefix("<!--") {
            let (comment, behind) = whole(&lines, at, comment);
            match read_comment(comment.trim(), number)? {
                Comment::Run(commands) => steps.push(Step::Run(Block {
                    line: number,
                    commands,
                    exits: Vec::new(),
                    promise: Promise::default(),
                })),
                Comment::Remark(said) => {
                    remark = Some(said);
                    if !lines
                        .get(behind)
                        .is_some_and(|next| next.starts_with("```"))
                    {
                        return Err(format!("{number}: no block follows this comment"));
                    }
                }
                Comment::Other => {}
            }
            at = behind;
            continue;
        }
        at += 1;
    }
    Ok(steps)
}

fn step(mut block: Block, language: &str, remark: Option<Remark>) -> Option<Step> {
    match (remark, language) {
        (Some(Remark::File(path)), _) => Some(Step::File {
            path,
            text: block.commands,
        }),
        (Some(Remark::NotRun), _) => None,
        (Some(Remark::RunsOn), _) => Some(Step::RunOn(block)),
        (Some(Remark::Exits(exits)), _) => {
            block.exits = exits;
            Some(Step::Run(block))
        }
        (None, "sh") => Some(Step::Run(block)),
        (None, _) => None,
    }
}

/// The text of the block that begins here, and the line behind it.
fn block(lines: &[&str], at: usize) -> (String, usize) {
    let body: Vec<&str> = lines[at + 1..]
        .iter()
        .copied()
        .take_while(|line| !line.starts_with("```"))
        .collect();
    (body.join("\n") + "\n", at + body.len() + 2)
}

/// What a block of commands promises, and the line behind that.
fn promised(lines: &[&str], commands: &str, behind: usize) -> (Promise, usize) {
    let next = lines[behind.min(lines.len())..]
        .iter()
        .position(|line| !line.is_empty())
        .map_or(lines.len(), |blank| behind + blank);
    let beside = commands
        .lines()
        .filter_map(|line| line.split_once("# → "))
        .map(|(_, promise)| promise.to_owned())
        .collect();
    match lines.get(next).copied() {
        Some("```text") => {
            let (text, behind) = block(lines, next);
            (Promise::of_text(beside, text), behind)
        }
        Some("```json") => {
            let (text, behind) = block(lines, next);
            (Promise::of_json(beside, text), behind)
        }
        _ => (Promise::beside(beside), behind),
    }
}

enum Comment {
    Run(String),
    Remark(Remark),
    Other,
}

fn read_comment(comment: &str, line: usize) -> Result<Comment, String> {
    let (key, said) = comment.split_once(':').unwrap_or((comment, ""));
    let said = said.trim();
    Ok(match key {
        "run" => Comment::Run(said.to_owned() + "\n"),
        "runs on" => Comment::Remark(Remark::RunsOn),
        "file" => Comment::Remark(Remark::File(said.to_owned())),
        "exit" => {
            let codes = said.split(',').map(|code| code.trim().to_owned());
            Comment::Remark(Remark::Exits(codes.collect()))
        }
        "not run" if said.is_empty() => {
            return Err(format!("{line}: say why the block can't be run"));
        }
        "not run" => Comment::Remark(Remark::NotRun),
        _ => Comment::Other,
    })
}

/// A comment that may go over several lines, and the line behind it.
fn whole(lines: &[&str], at: usize, first: &str) -> (String, usize) {
    let mut comment = String::new();
    for (count, line) in std::iter::once(first)
        .chain(lines[at + 1..].iter().copied())
        .enumerate()
    {
        if let Some((end, _)) = line.split_once("-->") {
            comment.push_str(end);
            return (comment, at + count + 1);
        }
        comment.push_str(line);
        comment.push('\n');
    }
    (comment, lines.len())
}
