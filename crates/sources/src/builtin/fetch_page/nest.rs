//! Makes a page one whose parts lie properly in each other, not too deep and not too many, in one pass.
//!
//! The rules by which browsers repair pages let a small page become a huge tree: formatting that is never closed is
//! repeated in each part that follows. Here each end closes what it is the end of, formatting is at most eight deep, and
//! what can't be read by a person (scripts, styles, drawings) is left out. So the tree that comes of it has at most a few
//! nodes for each tag.

/// Tags that are looked at, parts in each other, and formatting in each other.
const MAX_TAGS: usize = 100_000;
const MAX_DEPTH: usize = 100;
const MAX_FORMATTING: usize = 8;
/// The longest tag that keeps its attributes, and the longest that is looked for its end.
const LONGEST_KEPT: usize = 4_096;
const LONGEST_TAG: usize = 64 * 1_024;

const VOID: [&str; 12] = [
    "area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
];
/// What nobody reads, with all that is in it.
const DROPPED: [&str; 16] = [
    "script", "style", "template", "svg", "math", "object", "applet", "iframe", "textarea", "xmp",
    "noembed", "noframes", "noscript", "canvas", "select", "marquee",
];
/// Tags that say nothing of their own here.
const PASSED: [&str; 7] = [
    "html",
    "head",
    "body",
    "frameset",
    "frame",
    "plaintext",
    "form",
];
const FORMATTING: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// What ends a paragraph that is open.
const BLOCKS: [&str; 28] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "div",
    "dl",
    "fieldset",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "ul",
];

pub struct Nested {
    pub html: String,
    /// There were more tags than are looked at.
    pub cut: bool,
}

/// The page, well nested.
pub fn nested(html: &str) -> Nested {
    let mut nest = Nest {
        out: String::with_capacity(html.len() + 64),
        open: Vec::new(),
    };
    nest.out.push_str("<!doctype html>");
    let (mut rest, mut tags, mut cut) = (html, 0, false);
    while let Some(at) = rest.find('<') {
        nest.out.push_str(&rest[..at]);
        rest = &rest[at..];
        if tags == MAX_TAGS {
            cut = true;
            rest = "";
            break;
        }
        tags += 1;
        rest = nest.tag(rest);
    }
    nest.out.push_str(rest);
    nest.close_to(0);
    Nested {
        html: nest.out,
        cut,
    }
}

struct Nest<'a> {
    out: String,
    open: Vec<&'a str>,
}

impl<'a> Nest<'a> {
    /// Takes one tag or comment at the beginning of `text`, and gives what is left.
    fn tag(&mut self, text: &'a str) -> &'a str {
        if let Some(comment) = text.strip_prefix("<!--") {
            return comment.find("-->").map_or("", |end| &comment[end + 3..]);
        }
        if text.starts_with("<!") || text.starts_with("<?") {
            return text.find('>').map_or("", |end| &text[end + 1..]);
        }
        let (closes, begin) = match text.as_bytes().get(1) {
            Some(b'/') => (true, 2),
            Some(_) => (false, 1),
            None => return "",
        };
        let name = &text[begin..];
        let length = name
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            .count();
        let name = &name[..length];
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            // No tag: the sign itself.
            self.out.push_str("&lt;");
            return &text[1..];
        }
        let Some(end) = end_of(text) else {
            return "";
        };
        let (tag, rest) = text.split_at(end);
        let is = |list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(name));
        if is(&DROPPED) {
            return match closes {
                true => rest,
                false => behind(rest, name),
            };
        }
        match (closes, is(&PASSED)) {
            (_, true) => {}
            (true, _) => self.end(name),
            (false, _) => self.begin(name, tag),
        }
        rest
    }

    fn begin(&mut self, name: &'a str, tag: &'a str) {
        let is = |list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(name));
        self.end_implied(name);
        let kept = match tag.len() <= LONGEST_KEPT {
            true => &tag[name.len() + 1..],
            false => ">",
        };
        if is(&VOID) {
            self.out.push('<');
            self.out.push_str(name);
            self.out.push_str(kept);
            return;
        }
        let formatting = |one: &&&str| FORMATTING.iter().any(|two| two.eq_ignore_ascii_case(one));
        let deep = self.open.len() >= MAX_DEPTH
            || is(&FORMATTING) && self.open.iter().filter(formatting).count() >= MAX_FORMATTING;
        if deep {
            return;
        }
        self.out.push('<');
        self.out.push_str(name);
        // What closes itself is closed by nothing in a page.
        let kept = kept
            .strip_suffix("/>")
            .map_or((kept, ""), |front| (front, ">"));
        self.out.push_str(kept.0);
        self.out.push_str(kept.1);
        self.open.push(name);
    }

    /// Closes what begins of this name close by themselves.
    fn end_implied(&mut self, name: &str) {
        let any = |list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(name));
        if any(&BLOCKS)
            && self
                .open
                .last()
                .is_some_and(|last| last.eq_ignore_ascii_case("p"))
        {
            self.close_to(self.open.len() - 1);
        }
        let name = name.to_ascii_lowercase();
        let (ends, within): (&[&str], &[&str]) = match name.as_str() {
            "a" => (&["a"], &[]),
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dd" | "dt" => (&["dd", "dt"], &["dl"]),
            "td" | "th" => (&["td", "th"], &["table"]),
            "tr" => (&["tr"], &["table"]),
            "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
            "option" => (&["option"], &["select", "datalist"]),
            _ => return,
        };
        for (at, open) in self.open.iter().enumerate().rev() {
            let is = |list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(open));
            if is(within) {
                return;
            }
            if is(ends) {
                return self.close_to(at);
            }
        }
    }

    /// An end closes what it is the end of, and all that is open in that. The end of nothing is left out.
    fn end(&mut self, name: &str) {
        let open = self
            .open
            .iter()
            .rposition(|open| open.eq_ignore_ascii_case(name));
        if let Some(at) = open {
            self.close_to(at);
        }
    }

    fn close_to(&mut self, depth: usize) {
        for name in self.open.drain(depth..).rev() {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
    }
}

/// Where the tag at the beginning ends, quotes considered; a quote that is never closed is none.
fn end_of(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let bytes = &bytes[..bytes.len().min(LONGEST_TAG)];
    let mut quote = None;
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
    }
    text.find('>').map(|at| at + 1)
}

/// What follows the end of a part that is left out; nothing where it never ends.
fn behind<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        let named = rest
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name));
        if named {
            return rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(html: &str) -> String {
        nested(html)
            .html
            .strip_prefix("<!doctype html>")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn parts_lie_in_each_other() {
        for (html, expected) in [
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<b><i>x</b>y</i>", "<b><i>x</i></b>y"),
            ("<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"),
            (
                "<table><tr><td>a<td>b<tr><td>c</table>",
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>",
            ),
            ("a < b && c", "a &lt; b && c"),
            ("<a href='x>y'>z</a>", "<a href='x>y'>z</a>"),
            ("<a href=1>x<a href=2>y", "<a href=1>x</a><a href=2>y</a>"),
            ("<div/>x", "<div>x</div>"),
            ("x<!-- <b> -->y<?php z ?>", "xy"),
            ("<script>if (a</b>1) </script>y", "y"),
            ("<STYLE>x</Style >y<svg><b></svg>z", "yz"),
            ("<html><body><main>x</main></body></html>", "<main>x</main>"),
            ("<img src=a><br/>x", "<img src=a><br/>x"),
            ("</p></div>x", "x"),
            ("<script>never ends", ""),
            ("<p title=\"never ends>x", "<p title=\"never ends>x</p>"),
        ] {
            assert_eq!(body(html), expected, "{html}");
        }
    }

    #[test]
    fn a_small_page_never_becomes_a_huge_one() {
        let unclosed: String = (0..20_000).map(|n| format!("<b id={n}><p>")).collect();
        let deep = "<div>".repeat(200_000);
        let objects: String = (0..20_000)
            .map(|n| format!("<b id={n}><td></b></td>"))
            .collect();
        for html in [
            unclosed,
            deep,
            objects,
            "<".repeat(500_000),
            "<a \"".repeat(50_000),
        ] {
            let nested = nested(&html);
            let document = dom_query::Document::from(nested.html.as_str());
            let nodes = document.root().descendants_it().count();
            assert!(
                nodes < 20 * MAX_TAGS,
                "{nodes} nodes of {} bytes",
                html.len()
            );
        }
    }
}
