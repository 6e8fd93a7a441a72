//! One tool as the index holds it: how much each term weighs, after the field it stands in and that field's length.

use std::collections::HashMap;

use serde_json::Value;

use super::words;
use crate::Tool;

/// How fields count: `weight` of a term in it, its usual `length` in terms, and how much a longer one `dilutes`.
/// The usual lengths are fixed, so that a tool weighs the same whichever others are there.
struct Field {
    weight: f32,
    length: f32,
    dilutes: f32,
}

const fn field(weight: f32, length: f32, dilutes: f32) -> Field {
    Field {
        weight,
        length,
        dilutes,
    }
}

const NAME: Field = field(3.0, 3.0, 0.3);
const ALIASES: Field = field(2.0, 3.0, 0.3);
const TITLE: Field = field(1.0, 3.0, 0.3);
const DESCRIPTION: Field = field(1.0, 15.0, 0.6);
const TAGS: Field = field(0.5, 2.0, 0.3);
const EXAMPLES: Field = field(0.5, 15.0, 0.6);
const PARAMETERS: Field = field(0.6, 6.0, 0.3);
const PARAMETER_TEXTS: Field = field(0.35, 25.0, 0.3);
const CHOICES: Field = field(0.2, 4.0, 0.3);
const MODULE: Field = field(0.3, 2.0, 0.3);

/// How soon a term that stands there often stops to count more.
const SATURATION: f32 = 0.8;

/// Longer texts are read so far.
const MAX_TEXT: usize = 8_000;
/// How deep parameters are looked for.
const MAX_DEPTH: usize = 4;
const MAX_PARAMETERS: usize = 400;

/// What the index holds of a tool.
pub struct Document {
    /// Each term and its weight, from 0 to about 1.8.
    pub weights: HashMap<String, f32>,
    /// The terms of its name alone.
    pub name: Vec<String>,
    /// Texts that name exactly this tool, in [`exact_key`]'s form.
    pub keys: Vec<String>,
}

impl Document {
    pub fn of(tool: &Tool) -> Document {
        let spec = &tool.spec;
        let own = own_name(tool);
        let mut sums = Sums::default();
        let name = sums.add(&NAME, &[own]);
        sums.add(&ALIASES, &spec.aliases);
        // A title that only repeats the name says nothing more.
        let title = Some(tool.title()).filter(|title| words::terms(title) != name);
        sums.add(&TITLE, title.as_slice());
        sums.add(&DESCRIPTION, &[&spec.description]);
        sums.add(&TAGS, &spec.tags);
        sums.add(&EXAMPLES, &examples(tool));
        let mut parameters = Parameters::default();
        parameters.read(spec.input_schema.value(), 0);
        sums.add(&PARAMETERS, &parameters.names);
        sums.add(&PARAMETER_TEXTS, &parameters.texts);
        sums.add(&CHOICES, &parameters.choices);
        sums.add(&MODULE, &[&tool.module]);
        let mut keys: Vec<String> = [tool.name(), own]
            .into_iter()
            .chain(spec.aliases.iter().map(String::as_str))
            .map(exact_key)
            .filter(|key| !key.is_empty())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        Document {
            weights: sums.saturated(),
            name,
            keys,
        }
    }
}

/// The name without the server that it came from.
fn own_name(tool: &Tool) -> &str {
    let name = tool.name();
    let server = tool.module.rsplit('.').next().unwrap_or_default();
    let rest = name.strip_prefix(server).unwrap_or(name);
    let own = rest.trim_start_matches(['_', '-']);
    match own.is_empty() || rest.len() == name.len() || own.len() == rest.len() {
        true => name,
        false => own,
    }
}

/// A name however it is spelled: `Get-Weather` is `get_weather`.
pub fn exact_key(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// What people or agents would ask for, where the tool says that.
fn examples(tool: &Tool) -> Vec<&str> {
    let said = ["examples", "keywords"].map(|key| tool.spec.metadata.get(key));
    let listed = said.into_iter().flatten().filter_map(Value::as_array);
    listed.flatten().filter_map(Value::as_str).collect()
}

#[derive(Default)]
struct Sums(HashMap<String, f32>);

impl Sums {
    /// Adds a field, and gives its terms.
    fn add<T: AsRef<str>>(&mut self, field: &Field, texts: &[T]) -> Vec<String> {
        let mut terms: Vec<String> = Vec::new();
        let mut left = MAX_TEXT;
        for text in texts {
            let text = text.as_ref();
            let text = &text[..text.floor_char_boundary(left)];
            left -= text.len();
            terms.extend(words::terms(text));
        }
        let longer = terms.len() as f32 / field.length;
        let each = field.weight / (1.0 - field.dilutes + field.dilutes * longer);
        for term in &terms {
            *self.0.entry(term.clone()).or_default() += each;
        }
        terms
    }

    fn saturated(self) -> HashMap<String, f32> {
        let saturate = |sum: f32| sum * (SATURATION + 1.0) / (sum + SATURATION);
        let weights = self.0.into_iter();
        weights.map(|(term, sum)| (term, saturate(sum))).collect()
    }
}

#[derive(Default)]
struct Parameters<'a> {
    names: Vec<&'a str>,
    texts: Vec<&'a str>,
    choices: Vec<&'a str>,
}

impl<'a> Parameters<'a> {
    fn read(&mut self, schema: &'a Value, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if self.names.len() == MAX_PARAMETERS {
                return;
            }
            self.names.push(name);
            let text = property.get("description").and_then(Value::as_str);
            self.texts.extend(text);
            let choices = property.get("enum").and_then(Value::as_array);
            let choices = choices.into_iter().flatten().filter_map(Value::as_str);
            self.choices.extend(choices);
            if depth < MAX_DEPTH {
                self.read(property, depth + 1);
                if let Some(items) = property.get("items") {
                    self.read(items, depth + 1);
                }
            }
        }
    }
}
