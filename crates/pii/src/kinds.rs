//! THE TABLE of what is looked for.
//!
//! A row says where candidates may stand ([`Seek`], a prefilter that passes over clean text quickly), what they look like
//! (a pattern), and what makes one a finding (a check, which sees the whole text around it). Of two findings that begin
//! and end together the upper row's counts.

use std::ops::Range;

use crate::seek::Seek;
use crate::spot::Spot;
use crate::{email, iban, keys, network, numbers, phone, url};

/// One kind of personal data.
pub struct Kind {
    /// What settings call it.
    pub name: &'static str,
    pub(crate) seek: Seek,
    /// What a candidate looks like within the part of the text that `seek` found.
    pub(crate) pattern: &'static str,
    /// Where exactly the finding is, if it is one.
    pub(crate) check: fn(&Spot) -> Option<Range<usize>>,
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "api_key",
        seek: Seek::Keys,
        // Each service has a pattern of its own: `keys::KEYS`.
        pattern: "",
        check: keys::check,
    },
    Kind {
        name: "iban",
        seek: Seek::Iban,
        pattern: iban::PATTERN,
        check: iban::check,
    },
    Kind {
        name: "credit_card",
        seek: Seek::Digits { least: 12 },
        pattern: numbers::CARD,
        check: numbers::is_card,
    },
    Kind {
        name: "ssn",
        seek: Seek::Digits { least: 9 },
        pattern: numbers::SSN,
        check: numbers::is_ssn,
    },
    Kind {
        name: "ip",
        seek: Seek::Addresses,
        pattern: network::IP,
        check: network::is_ip,
    },
    Kind {
        name: "mac_address",
        seek: Seek::Pairs,
        pattern: network::MAC,
        check: network::is_mac,
    },
    Kind {
        name: "phone",
        seek: Seek::Digits { least: 7 },
        pattern: phone::PATTERN,
        check: phone::check,
    },
    Kind {
        name: "email",
        seek: Seek::At,
        pattern: email::PATTERN,
        check: email::check,
    },
    Kind {
        name: "url",
        seek: Seek::Hosts,
        pattern: url::PATTERN,
        check: url::check,
    },
];
