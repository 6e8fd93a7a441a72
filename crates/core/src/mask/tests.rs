//! What a mask hides, wherever it is cut and in whatever form it comes.

use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn values_are_hidden_wherever_the_pipe_cuts_them() {
    let mask = Mask::of(["s3cret-key", "s3cret", "on"]);
    let text = "key s3cret-key, s3cret, on and s3c";
    let hidden = "key ***, ***, on and s3c";
    assert_eq!(mask.text(text), hidden);
    for cut in 0..text.len() {
        let mut stream = mask.stream();
        let mut shown = stream.push(&text.as_bytes()[..cut]).into_owned();
        shown.extend_from_slice(&stream.push(&text.as_bytes()[cut..]));
        shown.extend_from_slice(&stream.finish());
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown, hidden, "{cut}");
    }
    assert_eq!(Mask::default().text("s3cret"), "s3cret");
}

#[test]
fn what_everybody_says_is_not_hidden() {
    assert!(Mask::of(["on", "1", "äöü", "true", "False", "none", "", "     "]).is_empty());
    assert!(!Mask::of(["äöüß"]).is_empty());
}

#[test]
fn every_form_of_a_value_is_hidden() {
    let value = "p/a s\"s\\wörd+1";
    let mask = Mask::of([value]);
    for form in [
        value.to_owned(),
        serde_json::to_string(value).unwrap(),
        json!(json!(value).to_string()).to_string(),
        r#""p/a s\"s\\w\u00f6rd+1""#.to_owned(),
        "p%2Fa%20s%22s%5Cw%C3%B6rd%2B1".to_owned(),
        "p/a%20s%22s%5Cw%C3%B6rd%2B1".to_owned(),
        "p%2fa+s%22s%5cw%c3%b6rd%2b1".to_owned(),
        STANDARD.encode(value),
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value),
    ] {
        let shown = mask.text(&form).into_owned();
        assert_eq!(shown.trim_matches(['"', '\\']), STARS, "{form}");
    }
    for before in ["u:", "us:", "use:"] {
        let text = STANDARD.encode(format!("{before}{value}!"));
        let shown = mask.text(&text).into_owned();
        assert!(shown.contains(STARS), "{text} {shown}");
        assert!(shown.len() < 14, "{text} {shown}");
    }
}

#[test]
fn lines_and_surrounding_space_do_not_help() {
    let mask = Mask::of(["-----KEY-----\nabcdefgh12\nno\n"]);
    assert_eq!(mask.text("got abcdefgh12, no"), "got ***, no");
    assert_eq!(Mask::of([" token-1 "]).text("<token-1>"), "<***>");
}

#[test]
fn json_is_hidden_in_texts_keys_and_numbers() {
    let mask = Mask::of(["s3cret", "4711"]);
    let mut value = json!({"s3cret": ["a s3cret", 1, 4711, true, null], "b": {"c": "s3cret"}});
    mask.cover_value(&mut value);
    assert_eq!(
        value,
        json!({"***": ["a ***", 1, "***", true, null], "b": {"c": "***"}})
    );
    let mut data = STANDARD.encode("bytes s3cret bytes");
    mask.cover_base64(&mut data);
    assert_eq!(STANDARD.decode(&data).unwrap(), b"bytes *** bytes");
    let mut other = STANDARD.encode([0_u8, 159, 146]);
    let before = other.clone();
    mask.cover_base64(&mut other);
    assert_eq!(other, before);
}

#[test]
fn what_comes_later_is_hidden_too_and_the_first_is_never_forgotten() {
    let hidden = Hidden::new(Mask::of(["first-value"]));
    let other = hidden.clone();
    for n in 0..300 {
        other.add([format!("later-{n:04}").as_str()]);
    }
    let mask = hidden.mask();
    assert_eq!(
        mask.text("first-value later-0299 later-0000"),
        "*** *** later-0000"
    );
    assert_eq!(format!("{hidden:?} {:?}", mask.stream()), "*** ***");
}

proptest! {
    #[test]
    fn a_value_never_comes_through(
        value in "[!-~äß€ ]{4,12}",
        before in ".{0,12}",
        after in ".{0,12}",
        cut in 0_usize..64,
    ) {
        prop_assume!(forms::is_worth_hiding(&value) && !STARS.contains(&value));
        let mask = Mask::of([value.as_str()]);
        let text = format!("{before}{value}{after}");
        let shown = mask.text(&text).into_owned();
        prop_assert!(shown.contains(STARS));
        let cut = cut.min(text.len());
        let mut stream = mask.stream();
        let mut streamed = stream.push(&text.as_bytes()[..cut]).into_owned();
        streamed.extend_from_slice(&stream.push(&text.as_bytes()[cut..]));
        streamed.extend_from_slice(&stream.finish());
        prop_assert_eq!(streamed, shown.into_bytes());
    }
}
