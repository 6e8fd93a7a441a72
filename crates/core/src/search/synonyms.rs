//! Words that mean nearly the same of tools, so that `delete` finds what says `remove`: a curated table.
//!
//! A line of `synonyms.txt` is a group; a word may stand in several. The table comes from what tools in general are
//! about, and never from what some list of tools is called: it would only help with that list.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::words::stem;

const TABLE: &str = include_str!("synonyms.txt");

/// The terms that may stand for this one.
pub fn of(term: &str) -> &'static [String] {
    static GROUPS: OnceLock<HashMap<String, Vec<String>>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| {
        let mut groups: HashMap<String, Vec<String>> = HashMap::new();
        for line in TABLE.lines() {
            let group: Vec<String> = line.split_whitespace().map(stem).collect();
            for word in &group {
                let others = groups.entry(word.clone()).or_default();
                for other in group.iter().filter(|other| *other != word) {
                    if !others.contains(other) {
                        others.push(other.clone());
                    }
                }
            }
        }
        groups
    });
    groups.get(term).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_works_in_all_directions_and_names_no_word_twice() {
        assert!(of("delet").contains(&"remov".to_owned()));
        assert!(of("remov").contains(&"delet".to_owned()));
        assert!(of("delet").iter().all(|other| other != "delet"));
        assert!(of("qwertz").is_empty());
        for line in TABLE.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(words.len() > 1, "{line:?}");
            assert!(
                line.chars().all(|c| c.is_ascii_lowercase() || c == ' '),
                "{line:?}"
            );
        }
    }
}
