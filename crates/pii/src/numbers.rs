//! Numbers of cards, with their issuers and check digit, and of the United States' social security.

use std::ops::Range;

use crate::spot::{Spot, digits};

/// Cards as people write them: in one piece, or in the groups that are printed on them.
pub const CARD: &str =
    r"\d{12,19}|\d{4}[ -]\d{6}[ -]\d{4,5}|\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}(?:[ -]\d{3})?";

/// The first digits of an issuer's numbers, from and to, and how many digits they have.
const ISSUERS: &[(u32, u32, &[usize])] = &[
    // Visa
    (4, 4, &[13, 16, 19]),
    // Mastercard
    (51, 55, &[16]),
    (2221, 2720, &[16]),
    // American Express
    (34, 34, &[15]),
    (37, 37, &[15]),
    // Diners Club
    (300, 305, &[14, 16]),
    (3095, 3095, &[14, 16]),
    (36, 36, &[14, 15, 16, 17, 18, 19]),
    (38, 39, &[14, 16]),
    // JCB
    (3528, 3589, &[16, 17, 18, 19]),
    (1800, 1800, &[15]),
    (2131, 2131, &[15]),
    // Discover, UnionPay, RuPay
    (60, 60, &[16, 17, 18, 19]),
    (62, 62, &[16, 17, 18, 19]),
    (644, 659, &[16, 17, 18, 19]),
    (81, 82, &[16]),
    // Maestro
    (5018, 5018, &[12, 13, 14, 15, 16, 17, 18, 19]),
    (5020, 5020, &[12, 13, 14, 15, 16, 17, 18, 19]),
    (5038, 5038, &[12, 13, 14, 15, 16, 17, 18, 19]),
    (5893, 5893, &[12, 13, 14, 15, 16, 17, 18, 19]),
    (6304, 6304, &[12, 13, 14, 15, 16, 17, 18, 19]),
    (6759, 6759, &[12, 13, 14, 15, 16, 17, 18, 19]),
    (6761, 6763, &[12, 13, 14, 15, 16, 17, 18, 19]),
    // Mir
    (2200, 2204, &[16, 17, 18, 19]),
];

pub fn is_card(spot: &Spot) -> Option<Range<usize>> {
    // Three digits more may be the last group of a long number, or what stands on the card's back.
    let shorter = spot.value().rsplit_once([' ', '-']);
    let shorter = shorter.filter(|(_, last)| last.len() == 3);
    let ends = [
        Some(spot.end),
        shorter.map(|(first, _)| spot.start + first.len()),
    ];
    let mut spots = ends.into_iter().flatten().map(|end| Spot { end, ..*spot });
    let card = spots.find(|spot| {
        let value = spot.value();
        let is_grouped = value.contains([' ', '-']);
        one_separator(value)
            && spot.stands_alone()
            && has_issuer(value)
            && luhn(value)
            && (is_grouped || !spot.is_called_id())
    })?;
    Some(card.start..card.end)
}

fn one_separator(value: &str) -> bool {
    !(value.contains(' ') && value.contains('-'))
}

fn has_issuer(value: &str) -> bool {
    let count = digits(value).count();
    let first = |length: usize| {
        let first = digits(value).take(length);
        first.fold(0, |number, digit| number * 10 + u32::from(digit))
    };
    ISSUERS.iter().any(|(from, to, lengths)| {
        let length = from.ilog10() as usize + 1;
        (*from..=*to).contains(&first(length)) && lengths.contains(&count)
    })
}

/// The check digit that every card has.
pub fn luhn(value: &str) -> bool {
    let count = digits(value).count();
    let sum: u32 = digits(value)
        .enumerate()
        .map(|(at, digit)| match (count - at).is_multiple_of(2) {
            true => u32::from(digit) * 2 / 10 + u32::from(digit) * 2 % 10,
            false => u32::from(digit),
        })
        .sum();
    sum.is_multiple_of(10)
}

pub const SSN: &str = r"\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}|\d{9}";

/// Words beside which nine digits in one piece are one.
const SSN_WORDS: [&str; 5] = [
    "ssn",
    "social security",
    "social_security",
    "socialsecurity",
    "tax id",
];

pub fn is_ssn(spot: &Spot) -> Option<Range<usize>> {
    let number = digits(spot.value()).fold(0_u32, |number, digit| number * 10 + u32::from(digit));
    let (area, group, serial) = (number / 1_000_000, number / 10_000 % 100, number % 10_000);
    let is_issued = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    // Only dashes say by themselves what it is.
    let says_so = || spot.value().contains('-') || spot.is_near(&SSN_WORDS);
    (is_issued && spot.stands_alone() && says_so()).then_some(spot.start..spot.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_digit_is_that_of_cards() {
        for right in [
            "4111111111111111",
            "378282246310005",
            "30569309025904",
            "0000",
        ] {
            assert!(luhn(right), "{right}");
        }
        for wrong in ["4111111111111112", "378282246310006", "1"] {
            assert!(!luhn(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_card_has_an_issuer_and_its_length() {
        for right in [
            "4222222222222",
            "5555 5555 5555 4444",
            "2223003122003222",
            "6011111111111117",
            "3530111333300000",
        ] {
            assert!(has_issuer(right), "{right}");
        }
        for wrong in [
            "42222222222",
            "0000000000000000",
            "1234567812345670",
            "37828224631000",
        ] {
            assert!(!has_issuer(wrong), "{wrong}");
        }
    }
}
