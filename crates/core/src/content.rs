//! A result in MCP's own form: its blocks in their order, unchanged, and what else it carries.

use std::borrow::Cow;

use crate::json::scan::Parts;
use crate::{Json, Object};

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    Text,
    Image,
    Audio,
    /// An embedded resource.
    Resource,
    ResourceLink,
    /// A kind that is not known here.
    Other,
}

/// One block of a result, as the tool gave it. Fields that nobody here knows stay in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    kind: BlockKind,
    object: Object,
}

impl Block {
    /// Reads a block. One of a known kind has what that kind needs.
    pub fn read(text: &str) -> Option<Block> {
        let object = Object::parse(text).ok()?;
        let begins = |name: &str, with: char| {
            let mut members = object.members();
            members.any(|(known, value)| known == name && value.starts_with(with))
        };
        let texts = |names: &[&str]| names.iter().all(|name| begins(name, '"'));
        let named = object.member("type")?;
        let (kind, whole) = match &*named.as_str()? {
            "text" => (BlockKind::Text, texts(&["text"])),
            "image" => (BlockKind::Image, texts(&["data", "mimeType"])),
            "audio" => (BlockKind::Audio, texts(&["data", "mimeType"])),
            "resource" => (BlockKind::Resource, begins("resource", '{')),
            "resource_link" => (BlockKind::ResourceLink, texts(&["uri", "name"])),
            _ => (BlockKind::Other, true),
        };
        whole.then_some(Block { kind, object })
    }

    pub fn text(text: &str) -> Block {
        let fields = [("type", "text"), ("text", text)];
        let members = fields.map(|(name, text)| (name.to_owned(), text.into()));
        Block {
            kind: BlockKind::Text,
            object: Object::from_iter(members),
        }
    }

    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// The whole block.
    pub fn object(&self) -> &Object {
        &self.object
    }

    pub fn object_mut(&mut self) -> &mut Object {
        &mut self.object
    }

    pub fn into_object(self) -> Object {
        self.object
    }

    pub fn is_text(&self) -> bool {
        self.kind == BlockKind::Text
    }

    /// Its words, where it is text.
    pub(crate) fn words(&self) -> Option<String> {
        let is_text = self.is_text();
        is_text.then(|| text_of(&self.object, "text")).flatten()
    }

    /// What it is, for a person who does not see it.
    pub fn label(&self) -> String {
        let found = match self.kind {
            BlockKind::Text | BlockKind::Other => text_of(&self.object, "type"),
            BlockKind::Image | BlockKind::Audio => text_of(&self.object, "mimeType"),
            BlockKind::ResourceLink => text_of(&self.object, "uri"),
            BlockKind::Resource => {
                let inner = self.object.member("resource");
                let inner = inner.and_then(|inner| Object::parse(inner.text()).ok());
                inner.and_then(|inner| text_of(&inner, "uri"))
            }
        };
        found.unwrap_or_default()
    }
}

/// What a member says that is a string.
fn text_of(object: &Object, name: &str) -> Option<String> {
    let member = object.member(name)?;
    member.as_str().map(Cow::into_owned)
}

/// A `CallToolResult` of MCP but for its structured content, which is the outcome's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    pub blocks: Vec<Block>,
    /// Its `_meta`.
    pub meta: Option<Object>,
    /// Fields of the result that nobody here knows.
    pub rest: Object,
    /// It says itself whether it failed.
    pub says_is_error: bool,
}

/// A result in MCP's form, taken apart.
pub(crate) struct McpResult {
    pub content: Content,
    pub structured: Option<Json>,
    pub is_error: bool,
}

/// Whose result it is decides how much it may hold that is not MCP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Giver {
    /// A tool, which may as well return data that looks like it.
    Tool,
    /// An MCP server, which returns nothing else.
    Server,
}

impl McpResult {
    /// Reads a result, or gives nothing where it is none. A tool's is one where nothing but MCP's fields is in it.
    pub fn read(text: &str, giver: Giver) -> Option<McpResult> {
        let mut result = McpResult {
            content: Content::default(),
            structured: None,
            is_error: false,
        };
        let mut blocks = None;
        let mut rest = Vec::new();
        for (name, value) in Parts::of(text) {
            let json = || Json::trusted(value.to_owned());
            match &*name {
                "content" if value.starts_with('[') => {
                    let list = Parts::of(value).map(|(_, block)| Block::read(block));
                    blocks = Some(list.collect::<Option<Vec<_>>>()?);
                }
                "structuredContent" if value == "null" => {}
                "structuredContent" => result.structured = Some(json()),
                "_meta" if value.starts_with('{') => {
                    result.content.meta = Object::parse(value).ok();
                }
                "isError" if matches!(value, "true" | "false") => {
                    result.is_error = value == "true";
                    result.content.says_is_error = true;
                }
                _ if giver == Giver::Tool => return None,
                // Whoever sends the result on writes it anew.
                "resultType" => {}
                _ => rest.push((name, json())),
            }
        }
        let blocks = blocks?;
        let known = |block: &Block| block.kind != BlockKind::Other;
        let is_mcp = match blocks.is_empty() {
            true => result.structured.is_some(),
            false => blocks.iter().any(known),
        };
        if giver == Giver::Tool && !is_mcp {
            return None;
        }
        result.content.blocks = blocks;
        for (name, value) in rest {
            result.content.rest.set(&name, &value);
        }
        Some(result)
    }
}

impl Content {
    /// The words of all text blocks, one below the other.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.blocks.iter().filter_map(Block::words).collect();
        words.join("\n")
    }

    /// Cuts the text blocks to the first `end` bytes of [`Content::words`]; all other blocks stay.
    pub(crate) fn cut(&mut self, end: usize) {
        let mut room = Some(end);
        self.blocks.retain_mut(|block| {
            let Some(words) = block.words() else {
                return true;
            };
            let Some(left) = room else {
                return false;
            };
            if words.len() > left {
                let kept = &words[..words.floor_char_boundary(left)];
                block.object_mut().insert("text", kept);
                room = None;
                return !kept.is_empty();
            }
            // The line break between two blocks counts too.
            room = left.checked_sub(words.len() + 1);
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn read(text: &str) -> Outcome {
        Outcome::from_json(Json::parse(text).unwrap())
    }

    #[test]
    fn blocks_stay_in_their_order_and_as_they_are() {
        let blocks = [
            r#"{"text":"a","type":"text","annotations":{"priority":1.0}}"#,
            r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
            r#"{"type":"text","text":"b"}"#,
            r#"{"type":"future","n":123456789012345678901234567890}"#,
        ];
        let outcome = read(&format!(
            r#"{{"content":[{}],"_meta":{{"a/b":1.0}},"isError":true,"structuredContent":{{"x":1.0}}}}"#,
            blocks.join(",")
        ));
        let content = outcome.content.unwrap();
        let kept: Vec<&str> = content
            .blocks
            .iter()
            .map(|block| block.object().text())
            .collect();
        assert_eq!(kept, blocks);
        assert_eq!(outcome.output, "a\nb");
        assert_eq!(outcome.structured.unwrap().text(), r#"{"x":1.0}"#);
        assert_eq!(content.meta.unwrap().text(), r#"{"a/b":1.0}"#);
        assert!(outcome.is_error && content.says_is_error);
    }

    #[test]
    fn what_only_looks_like_it_is_data() {
        for text in [
            r#"{"content":[{"type":"text","text":"a"}],"role":"assistant"}"#,
            r#"{"content":[{"type":"paragraph"}]}"#,
            r#"{"content":[{"type":"text","text":1}]}"#,
            r#"{"content":[{"text":"a"}]}"#,
            r#"{"content":["a"]}"#,
            r#"{"content":[]}"#,
            r#"{"content":"a"}"#,
            r#"{"content":[{"type":"text","text":"a"}],"isError":"yes"}"#,
        ] {
            let outcome = read(text);
            assert_eq!(outcome.content, None, "{text}");
            assert_eq!(outcome.structured.unwrap().text(), text);
        }
        let contract = read(r#"{"output":"o","content":[{"type":"text","text":"a"}]}"#);
        assert_eq!((contract.content, &*contract.output), (None, "o"));
        assert!(contract.metadata.contains_key("content"));
    }

    #[test]
    fn a_servers_result_is_one_whatever_is_in_it() {
        let text = r#"{"content":[{"type":"new"}],"later":1.0,"resultType":"complete"}"#;
        let outcome = Outcome::from_mcp(&Json::parse(text).unwrap()).unwrap();
        let content = outcome.content.unwrap();
        assert_eq!(content.blocks[0].object().text(), r#"{"type":"new"}"#);
        assert_eq!(content.rest.text(), r#"{"later":1.0}"#);
        assert!(Outcome::from_mcp(&Json::parse("{}").unwrap()).is_err());
    }

    #[test]
    fn text_is_cut_across_blocks_and_the_rest_stays() {
        let blocks = r#"{"content":[{"type":"text","text":"ab"},{"type":"image","data":"","mimeType":"i"},
            {"type":"text","text":"cdef","_meta":{}},{"type":"text","text":"g"},{"type":"new","x":1}]}"#;
        for (end, shown) in [
            (9, "ab\ncdef\ng"),
            (8, "ab\ncdef"),
            (5, "ab\ncd"),
            (3, "ab"),
            (1, "a"),
            (0, ""),
        ] {
            let mut content = read(blocks).content.unwrap();
            content.cut(end);
            assert_eq!(content.words(), shown, "{end}");
            assert_eq!(
                content
                    .blocks
                    .iter()
                    .filter(|block| !block.is_text())
                    .count(),
                2
            );
        }
        let mut content = read(blocks).content.unwrap();
        content.cut(5);
        assert_eq!(
            content.blocks[2].object().text(),
            r#"{"type":"text","text":"cd","_meta":{}}"#
        );
    }
}
