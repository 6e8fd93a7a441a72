//! Each kind of output shows what it is, and every preview stays in its room.

use proptest::prelude::*;

use super::*;

fn of(text: &str) -> String {
    preview(Sample::of(text), OutputLimit::DEFAULT)
}

#[test]
fn json_tells_its_shape_its_counts_and_its_first_items() {
    let items: Vec<String> = (0..5_000)
        .map(|n| format!(r#"{{"id": {n}, "name": "plant {n}", "tags": ["a", "b"]}}"#))
        .collect();
    let list = of(&format!("[{}]", items.join(", ")));
    assert!(
        list.starts_with("JSON: list of 5000 {id: number, name: string, tags: list of 2 string}\n"),
        "{list}"
    );
    assert!(
        list.contains(r#"{"id":0,"name":"plant 0","tags":["a","b"]}"#) && list.contains("plant 2"),
        "{list}"
    );
    assert!(!list.contains("plant 3"), "{list}");
    let page = of(&format!(
        r#"{{"total": 5000, "plants": [{}]}}"#,
        items.join(",")
    ));
    assert!(
        page.starts_with("JSON: {total: number, plants: list of 5000 {id"),
        "{page}"
    );
    assert!(page.contains("first items of /plants:"), "{page}");
    assert!(crate::tokens::estimate(&page) < 300, "{page}");
}

#[test]
fn a_table_tells_its_columns() {
    let rows: String = (0..9_000)
        .map(|n| format!("{n},plant {n},north\n"))
        .collect();
    let told = of(&format!("id,name,site\n{rows}"));
    assert!(told.starts_with("table: 9001 lines, "), "{told}");
    assert!(
        told.contains("3 columns: id, name, site\nfirst rows:\n0,plant 0,north\n"),
        "{told}"
    );
    assert!(told.ends_with("last row:\n8999,plant 8999,north"), "{told}");
}

#[test]
fn a_log_tells_its_ends_and_the_errors_in_between() {
    let mut lines: Vec<String> = (0..8_000)
        .map(|n| format!("12:00 INFO pump {n} runs"))
        .collect();
    lines[4_321] = "12:01 ERROR pump 4321 is dry".to_owned();
    let told = of(&lines.join("\n"));
    assert!(
        told.contains("first lines:\n12:00 INFO pump 0 runs"),
        "{told}"
    );
    assert!(
        told.contains("errors (1):\n4322: 12:01 ERROR pump 4321 is dry"),
        "{told}"
    );
    assert!(told.ends_with("12:00 INFO pump 7999 runs"), "{told}");
    let spooled = Sample {
        start: "begin\nx\n",
        end: Some("y\nthe end\n"),
        bytes: 50_000_000,
        lines: 700_000,
    };
    let told = preview(spooled, OutputLimit::DEFAULT);
    assert!(
        told.starts_with("text: 700000 lines, 50000000 bytes") && told.ends_with("the end"),
        "{told}"
    );
}

#[test]
fn code_tells_what_it_defines() {
    let body = "    let x = 1;\n".repeat(50);
    let text: String = (0..60)
        .map(|n| format!("pub fn plant_{n}() {{\n{body}}}\n\n"))
        .collect();
    let told = of(&text);
    assert!(
        told.starts_with("code: ") && told.contains("1: pub fn plant_0() {"),
        "{told}"
    );
    assert!(told.contains("… 35 more"), "{told}");
}

proptest! {
    #[test]
    fn a_preview_stays_in_its_room(text in "(?s).{0,400}", bytes in 10_usize..5_000, lines in 1_usize..80) {
        let told = preview(Sample::of(&text), OutputLimit::of(bytes, lines));
        prop_assert!(told.len() <= bytes && told.lines().count() <= lines);
    }

    #[test]
    fn json_of_any_kind_is_told(depth in 0_usize..20, text in "[a-z\\[\\]{},:\"]{0,60}") {
        let nested = format!("{}{}{}", "[".repeat(depth), 1, "]".repeat(depth));
        of(&nested);
        of(&text);
    }
}
