//! The README and the guides, done as they say: every `sh` block is run in order, in one scratch home, and must exit and print as promised.
//!
//! A page speaks to this test in comments that nobody sees when it is rendered. Each stands right before the block it is about:
//!
//! - `<!-- not run: REASON -->`: the block can't be run here
//! - `<!-- exit: 1 -->`: the exit codes of the commands that fail, in order
//! - `<!-- runs on -->`: the block goes on until the page ends, such as `toolcrib serve`
//! - `<!-- file: PATH -->`: the block is that file's text
//! - `<!-- run: COMMANDS -->`: run as well, unseen: what the page takes for granted. `$said` is the file that what runs on prints to
//!
//! What a block promises to print is the `text` or `json` block right behind it, or behind a `# →` in it. `…` stands for anything.

mod page;
mod promise;
mod session;

use std::path::{Path, PathBuf};

use crate::tidy::root;
use page::Step;
use session::{Home, Session};

/// The pages in the order in which the README names them.
fn pages() -> Vec<PathBuf> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut pages = vec![PathBuf::from("README.md")];
    for (at, _) in readme.match_indices("](docs/guides/") {
        let link = readme[at + 2..].split([')', '#']).next().unwrap();
        if readme[..at].contains("## Where to read on") && !pages.contains(&link.into()) {
            pages.push(link.into());
        }
    }
    for entry in std::fs::read_dir(root().join("docs/guides")).unwrap() {
        let page = Path::new("docs/guides").join(entry.unwrap().file_name());
        assert!(pages.contains(&page), "the README does not name {page:?}");
    }
    pages
}

#[test]
fn the_readme_and_the_guides_do_what_they_say() {
    let home = Home::new();
    let wrong: Vec<String> = pages()
        .iter()
        .flat_map(|page| {
            let text = std::fs::read_to_string(root().join(page)).unwrap();
            let name = page.display().to_string();
            let found = run_page(&home, &name, &text);
            found.into_iter().map(move |what| format!("{name}:{what}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

/// The files that a guide has its reader write: paths and texts.
pub fn files_of(page: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("docs/guides").join(page)).unwrap();
    let steps = page::read(&text).unwrap().into_iter();
    let file = |step| match step {
        Step::File { path, text } => Some((path, text)),
        Step::Run(_) | Step::RunOn(_) => None,
    };
    steps.filter_map(file).collect()
}

/// Runs one page, and says what differs from what it promises.
fn run_page(home: &Home, name: &str, text: &str) -> Vec<String> {
    let steps = match page::read(text) {
        Ok(steps) => steps,
        Err(wrong) => return vec![wrong],
    };
    let mut session = Session::start(home, name == "README.md");
    let mut wrong = Vec::new();
    for step in &steps {
        match step {
            Step::File { path, text } => session.write(path, text),
            Step::Run(block) => wrong.extend(session.run(block)),
            Step::RunOn(block) => session.run_on(block),
        }
        if session.hangs {
            break;
        }
    }
    wrong.extend(session.end());
    wrong
}

/// What is wrong with a page of one block, which the page promises this about.
fn wrong_with(page: &str) -> Vec<String> {
    run_page(&Home::new(), "made-up.md", page)
}

#[test]
fn a_page_that_holds_is_not_complained_about() {
    let page = "\
<!-- run: mkdir here -->\n<!-- file: here/a.txt -->\n```text\none\ntwo\n```\n\n\
```sh\ncd here\ncat a.txt\n```\n\n```text\none\n…\n```\n\n\
<!-- exit: 1, 2 -->\n```sh\nfalse\nsh -c 'exit 2'\npwd   # → /srv/here\n```\n\n\
<!-- not run: it is somebody else's -->\n```sh\nrm -rf everything\n```\n";
    assert_eq!(wrong_with(page), Vec::<String>::new());
}

#[test]
fn a_page_that_does_not_hold_is_told_with_its_line() {
    for (page, told) in [
        ("```sh\nfalse\n```\n", "1: `false` exits with 1"),
        ("<!-- exit: 1 -->\n```sh\ntrue\n```\n", "2: the exit codes"),
        ("```sh\necho a\n```\n\n```text\nb\n```\n", "1: promised"),
        ("```sh\necho a  # → b\n```\n", "1: promised"),
        (
            "```sh\necho '{\"a\": 1}'\n```\n\n```json\n{\"a\": 2}\n```\n",
            "1: promised",
        ),
        ("<!-- not run: -->\n```sh\ntrue\n```\n", "1: say why"),
        ("<!-- exit: 1 -->\nA word.\n", "1: no block follows"),
        ("```sh\ncurl -s 127.0.0.1:1/\n```\n", "exits with 7"),
    ] {
        let wrong = wrong_with(page);
        assert!(
            wrong.first().is_some_and(|wrong| wrong.contains(told)),
            "{page}: {wrong:?}"
        );
    }
}
