//! Numbers of bank accounts: a country, the length it has there, and the remainder by 97.

use std::ops::Range;

use crate::spot::Spot;

pub const PATTERN: &str = r"[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}";

/// How long each country's are.
const LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HN", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
    ("YE", 30),
];

/// The pattern takes what follows too: the country says where the number ends.
pub fn check(spot: &Spot) -> Option<Range<usize>> {
    let value = spot.value();
    let country = value[..2].to_ascii_uppercase();
    let (_, length) = LENGTHS.iter().find(|(name, _)| *name == country)?;
    let is_part = |c: &(usize, char)| c.1.is_ascii_alphanumeric();
    let (last, _) = value.char_indices().filter(is_part).nth(length - 1)?;
    let found = Spot {
        end: spot.start + last + 1,
        ..*spot
    };
    (found.stands_alone() && leaves_one(found.value())).then_some(found.start..found.end)
}

/// The remainder by 97, the first four characters put last and letters counted from ten on, is one.
fn leaves_one(value: &str) -> bool {
    let parts = || value.chars().filter(char::is_ascii_alphanumeric);
    let turned = parts().skip(4).chain(parts().take(4));
    let rest = turned.fold(0, |rest, c| match c.to_digit(36).unwrap_or_default() {
        digit @ 0..=9 => (rest * 10 + digit) % 97,
        letter => (rest * 100 + letter) % 97,
    });
    rest == 1
}
