//! Text as terms: identifiers split, words without their endings, and no words that say nothing about a tool.

use std::collections::HashSet;
use std::sync::OnceLock;

/// A longer run of letters is no word that anybody types.
const MAX_WORD: usize = 48;

/// Words that say nothing about what a tool does: articles, pronouns, auxiliaries, and how people ask for something.
const SAYS_NOTHING: &str = "\
a able about across actually additionally after again all along also always am among an and any anyone anything are as \
assist assistance at away back based be because been before being between bit bored both but by can cant certain come \
could curious currently d did do does doesnt doing done dont down during each either etc even ever every everybody \
everything few fifth finally first following for four fourth from furthermore get getting give given go going good got \
great guy guys had has have having he hello help her here hey hi him his how however hows i id if ill im in interest \
interested into is isnt it its ive just kindly know lastly let lets like ll look looking lot m many may me might mood \
more moreover most much must my need needed needs neither never nice no nor not now of off ok okay on one only or other \
our out over own particular per please possible possibly provide provides re really s same say second shall she should \
show since so some someone something somebody specific still such sure t task tasks tell than thank thanks that the \
their them then there these they thing things third this those three to today tomorrow tonight too try trying two under \
up upon us use used using ve very via want wanted wants was we well were what whats when where whether which while who \
whom whose why will with within without wonder wondering would yesterday you your youre although around against";

/// Does this word, in small letters, say nothing about a tool?
fn says_nothing(word: &str) -> bool {
    static WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WORDS
        .get_or_init(|| SAYS_NOTHING.split_whitespace().collect())
        .contains(word)
}

/// Every term of a text, in its order, as often as it stands there.
pub fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| {
        let lower = word.to_lowercase();
        if says_nothing(&lower) || lower.len() > MAX_WORD {
            return;
        }
        match lower.chars().any(is_unspaced) {
            true => found.extend(pairs(&lower)),
            false => found.push(stem(&lower)),
        }
    });
    found
}

/// Words and the parts of identifiers: `getHTTPStatus_code` has four.
fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut start = None;
    let (mut before, mut last) = (' ', ' ');
    let mut last_at = 0;
    for (at, c) in text.char_indices() {
        if !c.is_alphanumeric() {
            if let Some(from) = start.take() {
                take(&text[from..at]);
            }
        } else if let Some(from) = start {
            let starts_word = c.is_uppercase() && (last.is_lowercase() || last.is_ascii_digit());
            // In `HTTPStatus` a word begins at the last capital.
            let ended_acronym = c.is_lowercase() && last.is_uppercase() && before.is_uppercase();
            if starts_word {
                take(&text[from..at]);
                start = Some(at);
            } else if ended_acronym && last_at > from {
                take(&text[from..last_at]);
                start = Some(last_at);
            }
        } else {
            start = Some(at);
        }
        (before, last, last_at) = (last, c, at);
    }
    if let Some(from) = start {
        take(&text[from..]);
    }
}

/// Is this a letter of a script that puts no spaces between words?
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Every two neighbouring letters, which is how text without spaces is searched.
fn pairs(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    match letters.len() {
        0 | 1 => vec![word.to_owned()],
        _ => letters.windows(2).map(String::from_iter).collect(),
    }
}

/// An English word without the endings of number, tense and kind: `calculates`, `calculated`, `calculation` and
/// `calculator` are one. It need not be a word; it only has to be the same for all of them.
pub fn stem(word: &str) -> String {
    if word.len() <= 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stem = singular(word);
    without_tense(&mut stem);
    if stem.ends_with("ly") && stem.len() > 5 {
        stem.truncate(stem.len() - 2);
    }
    if (stem.ends_with("tion") || stem.ends_with("sion")) && stem.len() > 6 {
        stem.truncate(stem.len() - 3);
    } else if stem.ends_with("ator") && stem.len() > 6 {
        stem.truncate(stem.len() - 2);
    }
    if stem.ends_with('e') && stem.len() > 4 {
        stem.pop();
    }
    let bytes = stem.as_bytes();
    if let [.., before, b'y'] = bytes
        && bytes.len() > 3
        && !b"aeiou".contains(before)
    {
        stem.pop();
        stem.push('i');
    }
    stem
}

fn singular(word: &str) -> String {
    let cut = |end: usize| word[..word.len() - end].to_owned();
    if word.ends_with("sses") {
        cut(2)
    } else if word.ends_with("ies") && word.len() > 4 {
        cut(3) + "y"
    } else if ["xes", "ches", "shes", "zes"]
        .iter()
        .any(|end| word.ends_with(end))
    {
        cut(2)
    } else if word.ends_with('s') && !word.ends_with("ss") {
        cut(1)
    } else {
        word.to_owned()
    }
}

fn without_tense(word: &mut String) {
    let Some(rest) = ["ing", "ed"].iter().find_map(|end| word.strip_suffix(end)) else {
        return;
    };
    let has_vowel = rest.bytes().any(|byte| b"aeiouy".contains(&byte));
    if rest.len() < 3 || !has_vowel || word.ends_with("eed") {
        return;
    }
    let mut end = rest.len();
    if let [.., a, b] = rest.as_bytes()
        && a == b
        && !b"lsz".contains(a)
    {
        end -= 1;
    }
    word.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_split_at_their_joints() {
        assert_eq!(
            terms("getHTTPStatus_code v2"),
            ["http", "statu", "code", "v2"]
        );
        assert_eq!(
            terms("list-open-pull_requests"),
            ["list", "open", "pull", "request"]
        );
        assert_eq!(terms("Please, could you show me…"), Vec::<String>::new());
        assert_eq!(
            terms("a天气预报b 雨"),
            ["a天", "天气", "气预", "预报", "报b", "雨"]
        );
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        for forms in [
            &[
                "calculate",
                "calculates",
                "calculated",
                "calculating",
                "calculation",
                "calculator",
            ][..],
            &["city", "cities"],
            &["box", "boxes"],
            &["cache", "caches", "cached", "caching"],
            &["plan", "plans", "planned", "planning"],
            &["menu", "menus"],
            &["address", "addresses"],
        ] {
            let stems: HashSet<String> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{forms:?}: {stems:?}");
        }
        for apart in [["status", "stat"], ["process", "proces"], ["news", "newt"]] {
            assert_ne!(stem(apart[0]), stem(apart[1]), "{apart:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_terms(text in ".{0,200}") {
            for term in terms(&text) {
                proptest::prop_assert!(!term.is_empty());
            }
        }
    }
}
