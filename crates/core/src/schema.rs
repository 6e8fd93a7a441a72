//! JSON Schema 2020-12 for arguments and results: checked when made, bounded, and never fetched from anywhere.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value, json};

use crate::Object;
use crate::json::{JsonError, scan::Parts, with_members};

/// Deeper nesting than this is no honest schema.
const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 20_000;
/// How many subschemas may apply to one value at one place, all `$ref`s followed. Bounds `anyOf` bombs.
const MAX_EXPANSION: u64 = 10_000;
/// How many reasons a refusal gives.
const MAX_VIOLATIONS: usize = 5;
const MAX_REASON: usize = 300;
const BACKTRACK_LIMIT: usize = 100_000;

/// A schema, cheap to clone. That of arguments has an object at its top.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    has_defaults: bool,
    accepts_any: bool,
    validator: OnceLock<Option<Validator>>,
    hash: OnceLock<u64>,
}

/// Why a schema was refused: at which place, and for what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", if path.is_empty() { "the schema" } else { path.as_str() })]
pub struct SchemaError {
    pub path: String,
    pub reason: String,
}

/// Why a value does not fit: at which place, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer into the value; empty for the value itself.
    pub path: String,
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

impl Schema {
    /// Checks a tool's schema. Its top must describe an object, because arguments are named.
    pub fn parse(mut value: Value) -> Result<Schema, SchemaError> {
        let Value::Object(top) = &mut value else {
            return Err(refuse(
                "",
                "must be a JSON object such as {\"type\": \"object\", \"properties\": {}}",
            ));
        };
        match top.get("type") {
            None => {
                top.insert("type".into(), "object".into());
            }
            Some(Value::String(kind)) if kind == "object" => {}
            Some(other) => {
                return Err(refuse(
                    "/type",
                    &format!("must be \"object\", not {}", shorten(&other.to_string())),
                ));
            }
        }
        let accepts_any = top.len() == 1;
        Schema::checked(value, accepts_any)
    }

    /// Checks the schema of what a tool gives, which may be data of any type. One that names properties and no type is
    /// meant for objects.
    pub fn parse_result(mut value: Value) -> Result<Schema, SchemaError> {
        let Value::Object(top) = &mut value else {
            return Err(refuse(
                "",
                "must be a JSON object such as {\"type\": \"integer\"}",
            ));
        };
        if !top.contains_key("type") && top.contains_key("properties") {
            top.insert("type".into(), "object".into());
        }
        Schema::checked(value, false)
    }

    /// The same for schemas that read alike. Every change of any tool asks all of them.
    pub(crate) fn hash(&self) -> u64 {
        *self.0.hash.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            self.0.value.hash(&mut hasher);
            hasher.finish()
        })
    }

    /// The schema that takes any object.
    pub fn any_object() -> Schema {
        Schema::unchecked(json!({"type": "object"}), false, true)
    }

    fn checked(value: Value, accepts_any: bool) -> Result<Schema, SchemaError> {
        let has_defaults = Survey::of(&value)?.has_defaults;
        build(&value)?;
        Ok(Schema::unchecked(value, has_defaults, accepts_any))
    }

    fn unchecked(value: Value, has_defaults: bool, accepts_any: bool) -> Schema {
        Schema(Arc::new(Inner {
            value,
            has_defaults,
            accepts_any,
            validator: OnceLock::new(),
            hash: OnceLock::new(),
        }))
    }

    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The names of the described properties.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0
            .value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// Does any object fit? Of a result's schema nobody knows before it is tried.
    pub fn accepts_any(&self) -> bool {
        self.0.accepts_any
    }

    /// What is wrong with `instance`, which is an object where it is arguments; empty when it fits.
    pub fn violations(&self, instance: &Value) -> Vec<Violation> {
        if self.accepts_any() {
            return Vec::new();
        }
        // Compiled on first use: most of a large catalog is never called.
        let Some(validator) = self.0.validator.get_or_init(|| build(&self.0.value).ok()) else {
            let message = "the tool's schema can't be compiled".to_owned();
            return vec![Violation {
                path: String::new(),
                message,
            }];
        };
        if validator.is_valid(instance) {
            return Vec::new();
        }
        let errors = validator.iter_errors(instance).take(MAX_VIOLATIONS);
        errors
            .map(|error| Violation {
                path: shorten(&error.instance_path().to_string()),
                message: shorten(&error.to_string()),
            })
            .collect()
    }

    /// Sets properties that are missing and have a `default`, also inside objects that are there. All else stays as it
    /// is written. Arguments that are nested too deep with them are refused.
    pub fn fill_defaults(&self, arguments: &mut Object) -> Result<(), JsonError> {
        if self.0.has_defaults
            && let Some(text) = filled(&self.0.value, arguments.text())
        {
            *arguments = Object::parse(&text)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema({})", self.0.value)
    }
}

/// The text of an object with all that is missing in it; nothing where nothing is.
fn filled(schema: &Value, text: &str) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    let there: HashMap<_, _> = Parts::of(text).collect();
    let mut missing = Vec::new();
    // Where an object within stands, and its new text.
    let mut within = Vec::new();
    for (name, property) in properties {
        match there.get(name.as_str()) {
            None => {
                let default = property.get("default");
                missing.extend(default.map(|default| (name.as_str(), default.to_string())));
            }
            Some(value) if value.starts_with('{') => {
                let start = value.as_ptr() as usize - text.as_ptr() as usize;
                let new = filled(property, value);
                within.extend(new.map(|new| (start..start + value.len(), new)));
            }
            Some(_) => {}
        }
    }
    if missing.is_empty() && within.is_empty() {
        return None;
    }
    within.sort_by_key(|(place, _)| place.start);
    let mut made = text.to_owned();
    for (place, new) in within.into_iter().rev() {
        made.replace_range(place, &new);
    }
    let missing = missing.iter().map(|(name, default)| (*name, &**default));
    Some(with_members(&made, missing))
}

fn build(value: &Value) -> Result<Validator, SchemaError> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
        .build(value)
        .map_err(|error| {
            refuse(
                &error.instance_path().to_string(),
                &shorten(&error.to_string()),
            )
        })
}

fn refuse(path: &str, reason: &str) -> SchemaError {
    SchemaError {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_REASON) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Keywords whose subschemas judge the same value as the schema they stand in.
const IN_PLACE_ONE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAP: [&str; 1] = ["dependentSchemas"];

/// Keywords that hold schemas by names which are the tool's to choose: what is called `default` in there is no default.
const BY_NAME: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Keywords that hold data, not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// What makes a part a schema of its own: references in it would lead where nobody looked.
const OF_A_WHOLE: [&str; 2] = ["$id", "$schema"];

/// What a part of a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Schema,
    /// Schemas by name.
    Names,
}

/// One walk over a schema: bounds, and that every reference stays inside and ends.
struct Survey<'a> {
    root: &'a Value,
    nodes: usize,
    has_defaults: bool,
    referrers: Vec<(String, &'a Value)>,
    /// Every part that was looked at as a schema. References lead to these and nowhere else.
    schemas: HashSet<*const Value>,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> Survey<'a> {
    fn of(root: &'a Value) -> Result<Survey<'a>, SchemaError> {
        let mut survey = Survey {
            root,
            nodes: 0,
            has_defaults: false,
            referrers: Vec::new(),
            schemas: HashSet::new(),
            anchors: HashMap::new(),
        };
        survey.walk(root, Part::Schema, "", 0)?;
        let mut costs = HashMap::new();
        for (path, schema) in std::mem::take(&mut survey.referrers) {
            survey.expansion(schema, &path, &mut costs)?;
        }
        Ok(survey)
    }

    fn walk(
        &mut self,
        value: &'a Value,
        part: Part,
        path: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(refuse(
                &shorten(path),
                &format!("is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        if self.nodes > MAX_NODES {
            return Err(refuse("", &format!("has more than {MAX_NODES} parts")));
        }
        match value {
            Value::Object(map) => {
                if part == Part::Schema {
                    self.note(value, map, path)?;
                }
                for (key, inner) in map {
                    let key = key.as_str();
                    let inside = match part {
                        Part::Schema if DATA.contains(&key) => continue,
                        Part::Schema if BY_NAME.contains(&key) => Part::Names,
                        _ => Part::Schema,
                    };
                    self.walk(inner, inside, &format!("{path}/{key}"), depth + 1)?;
                }
                Ok(())
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    self.walk(inner, Part::Schema, &format!("{path}/{index}"), depth + 1)?;
                }
                Ok(())
            }
            _ => {
                self.schemas.insert(std::ptr::from_ref(value));
                Ok(())
            }
        }
    }

    /// Notes one schema: what refers from it and to it.
    fn note(
        &mut self,
        value: &'a Value,
        map: &'a Map<String, Value>,
        path: &str,
    ) -> Result<(), SchemaError> {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let own = OF_A_WHOLE.iter().find(|key| text(key).is_some());
        if let Some(key) = own.filter(|_| !path.is_empty()) {
            return Err(refuse(
                &shorten(path),
                &format!("has `{key}`, which only a whole schema may have; remove it"),
            ));
        }
        self.schemas.insert(std::ptr::from_ref(value));
        let anchors = ["$anchor", "$dynamicAnchor"].map(|key| map.get(key)?.as_str());
        for anchor in anchors.into_iter().flatten() {
            let before = self.anchors.insert(anchor, value);
            if before.is_some_and(|before| !std::ptr::eq(before, value)) {
                let reason = format!(
                    "has the anchor `{}`, which another part has too",
                    shorten(anchor)
                );
                return Err(refuse(&shorten(path), &reason));
            }
        }
        self.has_defaults |= map.contains_key("default");
        let branches = IN_PLACE_LIST.iter().any(|key| map.contains_key(*key));
        if branches || map.contains_key("$ref") || map.contains_key("$dynamicRef") {
            self.referrers.push((path.to_owned(), value));
        }
        Ok(())
    }

    /// How many subschemas judge a value at this place. A loop among them would never end.
    fn expansion(
        &self,
        schema: &'a Value,
        path: &str,
        costs: &mut HashMap<*const Value, Option<u64>>,
    ) -> Result<u64, SchemaError> {
        let here = std::ptr::from_ref(schema);
        match costs.get(&here) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(refuse(path, "refers to itself without end")),
            None => {}
        }
        costs.insert(here, None);
        let mut cost: u64 = 1;
        for inner in self.in_place(schema, path)? {
            cost = cost.saturating_add(self.expansion(inner, path, costs)?);
            if cost > MAX_EXPANSION {
                return Err(refuse(path, "combines too many alternatives"));
            }
        }
        costs.insert(here, Some(cost));
        Ok(cost)
    }

    fn in_place(&self, schema: &'a Value, path: &str) -> Result<Vec<&'a Value>, SchemaError> {
        let Some(map) = schema.as_object() else {
            return Ok(Vec::new());
        };
        let mut found: Vec<&Value> = IN_PLACE_ONE
            .iter()
            .filter_map(|key| map.get(*key))
            .collect();
        let lists = IN_PLACE_LIST
            .iter()
            .filter_map(|key| map.get(*key)?.as_array());
        found.extend(lists.flatten());
        let maps = IN_PLACE_MAP
            .iter()
            .filter_map(|key| map.get(*key)?.as_object());
        found.extend(maps.flat_map(Map::values));
        for key in ["$ref", "$dynamicRef"] {
            if let Some(reference) = map.get(key) {
                found.push(self.resolve(reference, path)?);
            }
        }
        Ok(found)
    }

    /// Only references inside the schema: `#`, `#/json/pointer`, `#anchor`.
    fn resolve(&self, reference: &Value, path: &str) -> Result<&'a Value, SchemaError> {
        let Some(text) = reference.as_str() else {
            return Err(refuse(path, "has a `$ref` that is not a string"));
        };
        let Some(inside) = text.strip_prefix('#') else {
            let reason = format!(
                "refers to `{}`; only references inside the schema (`#/…`) are followed",
                shorten(text)
            );
            return Err(refuse(path, &reason));
        };
        let target = match inside {
            "" => Some(self.root),
            pointer if pointer.starts_with('/') => {
                decoded(pointer).and_then(|pointer| self.root.pointer(&pointer))
            }
            anchor => self.anchors.get(anchor).copied(),
        };
        let refused = |why: &str| {
            refuse(
                path,
                &format!("refers to `{}`, which is {why}", shorten(text)),
            )
        };
        match target {
            None => Err(refused("not there")),
            Some(target) if !self.schemas.contains(&std::ptr::from_ref(target)) => {
                Err(refused("no schema"))
            }
            Some(target) => Ok(target),
        }
    }
}

/// A pointer without the `%` that a fragment of a URI is written with; nothing where that is no text.
fn decoded(pointer: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = match behind {
            [high, low, ..] if *first == b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                digit(*high).zip(digit(*low))
            }
            _ => None,
        };
        match code {
            Some((high, low)) => {
                bytes.push(u8::try_from(high * 16 + low).ok()?);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
