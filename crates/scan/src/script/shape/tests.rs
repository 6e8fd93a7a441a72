//! What is deep, what is not, and what can be read in two ways.

use super::*;

fn refused(text: &str, types: bool) -> bool {
    check(text, types).is_err()
}

#[test]
fn what_nests_is_seen_however_it_is_written() {
    let many = |unit: &str| unit.repeat(2_500);
    for text in [
        many("with(a)"),
        many("with(a)\n"),
        many("if(a);else "),
        many("if(a){}\nelse "),
        many("if(a)b\nelse "),
        many("a:"),
        many("a:\n"),
        many("a."),
        many("a?."),
        many("x=>"),
        many("!"),
        many("typeof\u{a0}"),
        many("typeof\n"),
        many("a+\n"),
        many("a<b,"),
        many("'a'+"),
        many("a?b:"),
        many("do "),
        many("for(;;)"),
        many("@a\n"),
        many("a``+"),
        format!("f{}", many("()")),
        format!("f{}", many("[0]")),
        format!("f{}", many("``")),
        format!("a{}", many("\n.a")),
        format!("a={{}}/2;{}", many("!")),
        format!("if(a)/'/;{}", many("!")),
        format!("a\n/'/;{}", many("!")),
        format!("a//'\n+{}", many("!")),
        format!("a/*'*/+{}", many("!")),
        format!("'\\\n'+{}", many("!")),
        format!("`${{a}}'`+{}", many("!")),
        format!("`${{{{}}}}'`+{}", many("!")),
        format!("//\u{2028}+{}", many("!")),
    ] {
        for types in [false, true] {
            let head: String = text.chars().take(30).collect();
            // A line that begins with `/` goes on with the last: `a\n/'/` divides.
            let divides = text.starts_with("a\n/'/");
            assert_eq!(refused(&text, types), !divides, "{head}");
        }
    }
    assert!(refused(&many("a<b>\nc"), false));
}

#[test]
fn what_follows_one_after_another_is_not_deep() {
    let many = |unit: &str| unit.repeat(20_000);
    for text in [
        many("a;"),
        many("const a = 1\n"),
        many("a.b.c()\n"),
        many("if(a){b}"),
        many("if (a)\n  b()\n"),
        many("function a(){}"),
        many("case 1:\n"),
        many("a, "),
        many("/'/.test(a);"),
        many("{a: 'b', c: [1]},\n"),
        many("@a b(){}"),
        many("'use strict'\n"),
        format!("class A {{ {} }}", many("a = 1\n b() { c }\n")),
        format!("x = `{}`", many("${a} b")),
        format!("x = [{}]", many("-1, ")),
        format!("x = '{}'", many("+(")),
    ] {
        for types in [false, true] {
            let head: String = text.chars().take(30).collect();
            assert_eq!(check(&text, types), Ok(true), "{head}");
        }
    }
    assert!(!refused(&many("a: Map<b, c>\n"), true));
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for text in [
        "if(a){}/'/.test(b)",
        "a++/'/",
        "x<!--y\n",
        "a\n--> b",
        "{}/[(]/",
        "{}/a//b/",
    ] {
        assert!(refused(text, false), "{text}");
    }
    for text in ["}/a/.test(b)", "a/b/c", "a--\n/b/c", "a-->b", "(a)/'b'/c"] {
        assert!(!refused(text, false), "{text}");
    }
}
