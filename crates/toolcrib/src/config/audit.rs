//! The setting `audit`: a word (`audit = "required"`), or a table with the word in it (`[audit]`).

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// What happens to a call that can't be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum AuditMode {
    BestEffort,
    Required,
}

/// How calls are recorded. `audit = "required"` is short for this with `mode` alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditSection {
    /// What happens to a call that can't be recorded: it runs ("best-effort"), or it is refused ("required"). User's
    /// file only. Variable: TOOLCRIB_AUDIT.
    pub mode: Option<AuditMode>,
    /// How many days a call stays on record (90). User's file only.
    #[schemars(range(min = 1))]
    pub days: Option<u32>,
    /// The most calls that stay on record (1000000); the oldest go first. User's file only.
    #[schemars(range(min = 1))]
    pub max_rows: Option<u64>,
}

/// Both forms, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum AuditForm {
    #[expect(dead_code, reason = "only its schema is used")]
    Mode(AuditMode),
    #[expect(dead_code, reason = "only its schema is used")]
    Table(AuditSection),
}

/// Takes either form, and still says which key is unknown.
pub(super) fn either<'de, D: Deserializer<'de>>(from: D) -> Result<Option<AuditSection>, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = AuditSection;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("\"best-effort\", \"required\" or a table")
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<AuditSection, E> {
            let mode = AuditMode::deserialize(StrDeserializer::new(word))?;
            Ok(AuditSection {
                mode: Some(mode),
                ..AuditSection::default()
            })
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AuditSection, A::Error> {
            AuditSection::deserialize(MapAccessDeserializer::new(map))
        }
    }

    from.deserialize_any(Either).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::ConfigFile;

    fn audit(text: &str) -> Result<AuditSection, String> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Ok(file.audit.unwrap())
    }

    #[test]
    fn a_word_and_a_table_say_the_same() {
        let word = audit("audit = \"required\"").unwrap();
        assert_eq!(word.mode, Some(AuditMode::Required));
        assert_eq!(audit("[audit]\nmode = \"required\"").unwrap(), word);
        let table = audit("[audit]\ndays = 7\nmax_rows = 10\n").unwrap();
        assert_eq!(
            (table.mode, table.days, table.max_rows),
            (None, Some(7), Some(10))
        );
    }

    #[test]
    fn what_is_unknown_is_named() {
        let unknown = audit("[audit]\nday = 7").unwrap_err();
        assert!(unknown.starts_with("unknown field `day`"), "{unknown}");
        let unknown = audit("audit = \"always\"").unwrap_err();
        assert!(unknown.contains("`best-effort` or `required`"), "{unknown}");
        assert!(audit("audit = 3").is_err());
    }
}
