//! What a query holds by its form: whoever writes `a@b.org` wants a tool that takes an email address.

use super::words::stem;

/// The terms that the forms in a query stand for.
pub fn terms(query: &str) -> Vec<String> {
    let lower = query.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().map(bare).collect();
    let mut found: Vec<&str> = Vec::new();
    let mut holds = |is: &dyn Fn(&str) -> bool, terms: &[&'static str]| {
        if words.iter().any(|word| is(word)) {
            found.extend_from_slice(terms);
        }
    };
    holds(&is_url, &["url"]);
    holds(&is_email, &["email", "address"]);
    holds(&is_date, &["date"]);
    holds(&is_time, &["time"]);
    holds(&is_money, &["amount", "price", "currency"]);
    holds(&is_share, &["percentage", "rate"]);
    holds(&is_file, &["file", "path"]);
    for pair in words.windows(2) {
        match (pair[0], pair[1]) {
            (month, day) if MONTHS.contains(&month) && starts_with_digit(day) => found.push("date"),
            (hour, "am" | "pm") if starts_with_digit(hour) => found.push("time"),
            (amount, "dollars" | "euros" | "usd" | "eur") if starts_with_digit(amount) => {
                found.extend(["amount", "price", "currency"]);
            }
            _ => {}
        }
    }
    found.into_iter().map(stem).collect()
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A word without the punctuation around it.
fn bare(word: &str) -> &str {
    let around = |c: char| "\"'`()[]{}<>,;!?".contains(c);
    word.trim_matches(around).trim_end_matches(['.', ':'])
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

fn is_url(word: &str) -> bool {
    word.contains("http://") || word.contains("https://") || word.starts_with("www.")
}

fn is_email(word: &str) -> bool {
    let parts = word.split_once('@');
    parts.is_some_and(|(who, host)| !who.is_empty() && host.contains('.') && !host.contains('/'))
}

/// Are these numbers with one mark between them, that many?
fn numbers(word: &str, mark: char, counts: std::ops::RangeInclusive<usize>) -> bool {
    let parts: Vec<&str> = word.split(mark).collect();
    let number = |part: &&str| {
        !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    counts.contains(&parts.len()) && parts.iter().all(number)
}

fn is_date(word: &str) -> bool {
    ['-', '/', '.']
        .into_iter()
        .any(|mark| numbers(word, mark, 3..=3) && word.len() >= 6)
}

fn is_time(word: &str) -> bool {
    let clock = word.trim_end_matches("am").trim_end_matches("pm");
    numbers(clock, ':', 2..=3) || (clock.len() < word.len() && numbers(clock, ':', 1..=1))
}

fn is_money(word: &str) -> bool {
    let amount = word.strip_prefix(['$', '€', '£']);
    amount.is_some_and(starts_with_digit)
}

fn is_share(word: &str) -> bool {
    word == "percent" || word.strip_suffix('%').is_some_and(starts_with_digit)
}

fn is_file(word: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        "csv", "xlsx", "pdf", "doc", "docx", "txt", "json", "png", "jpg", "jpeg", "mp3", "mp4",
        "md", "yaml",
    ];
    let parts = word.rsplit_once('.');
    parts.is_some_and(|(name, ending)| !name.is_empty() && ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_stand_for_what_takes_them() {
        let cases: [(&str, &[&str]); 10] = [
            ("open https://example.org/a now", &["url"]),
            ("write to ann@example.org.", &["email", "address"]),
            ("between 2024-01-31 and 3/4/2025", &["date"]),
            ("on March 8th", &["date"]),
            ("at 10:30", &["time"]),
            ("at 10 pm", &["time"]),
            ("under $30", &["amount", "pric", "currenci"]),
            ("grow 5% a year", &["percentag", "rate"]),
            ("read \"notes.csv\"", &["file", "path"]),
            ("nothing of that 1.2.3.4", &[]),
        ];
        for (query, want) in cases {
            assert_eq!(terms(query), want, "{query}");
        }
    }
}
