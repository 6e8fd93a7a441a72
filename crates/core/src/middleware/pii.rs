//! Hides personal data in what a tool gives, and in its arguments where somebody wants that. What it is: `crates/pii`.
//!
//! Why: `docs/design/0016-pii.md`.

use std::io;
use std::sync::Arc;

use serde::Deserialize;
use toolcrib_pii::{DetectError, Detectors, PiiStream, Strategy, safe_end};

use super::cover::{Cover as _, cover_error, cover_outcome, cover_progress};
use super::{Listed, Middleware, Next};
use crate::call::Deed;
use crate::outputs::Whole;
use crate::store::CallBook;
use crate::{BoxFuture, Call, CallError, CallResult, ErrorCode, Object, Outcome, Outputs};

mod cover;
use cover::{Counts, PiiCover, add};

/// How much of an output on disk is read at once.
const PAGE: usize = 256 * 1_024;

/// Parameters as settings list them, in the seed's names and LangChain's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    #[serde(alias = "pii_type")]
    pii_types: OneOrMany,
    /// A pattern for the one type that is named.
    detector: Option<String>,
    #[serde(default)]
    strategy: StrategyName,
    #[serde(default)]
    apply_to_input: bool,
    apply_to_output: Option<bool>,
    /// LangChain's name for what a tool gives; its `apply_to_output` is what a model says.
    apply_to_tool_results: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<PiiType>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PiiType {
    Name(String),
    Pattern(NamedPattern),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedPattern {
    name: String,
    pattern: String,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum StrategyName {
    #[default]
    Redact,
    Mask,
    Hash,
    Block,
}

#[derive(Deserialize)]
#[serde(try_from = "Parameters")]
pub(super) struct Pii {
    rules: Arc<PiiRules>,
    on_input: bool,
    on_output: bool,
}

/// What is looked for, and what happens to it.
struct PiiRules {
    detectors: Detectors,
    strategy: Strategy,
}

impl TryFrom<Parameters> for Pii {
    type Error = String;

    fn try_from(parameters: Parameters) -> Result<Pii, String> {
        let types = match parameters.pii_types {
            OneOrMany::One(name) => vec![PiiType::Name(name)],
            OneOrMany::Many(types) => types,
        };
        let mut names = Vec::new();
        let mut patterns = Vec::new();
        for one in &types {
            match (one, &parameters.detector) {
                (PiiType::Name(name), Some(pattern)) => patterns.push((&**name, &**pattern)),
                (PiiType::Name(name), None) => names.push(&**name),
                (PiiType::Pattern(one), _) => patterns.push((&*one.name, &*one.pattern)),
            }
        }
        if types.is_empty() {
            return Err("`pii_types` names no type".to_owned());
        }
        if parameters.detector.is_some() && types.len() > 1 {
            return Err("`detector` is the pattern of one type, and several are named".to_owned());
        }
        let detectors = Detectors::new(names, patterns).map_err(|error| error.to_string())?;
        let strategy = match parameters.strategy {
            StrategyName::Redact => Strategy::Redact,
            StrategyName::Mask => Strategy::Mask,
            StrategyName::Hash => Strategy::Hash,
            StrategyName::Block => Strategy::Block,
        };
        let results = parameters.apply_to_tool_results;
        Ok(Pii {
            rules: Arc::new(PiiRules {
                detectors,
                strategy,
            }),
            on_input: parameters.apply_to_input,
            on_output: results.or(parameters.apply_to_output).unwrap_or(true),
        })
    }
}

impl Listed for Pii {
    const NAME: &'static str = "pii";
}

impl Middleware for Pii {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let shared = next.shared();
        Box::pin(async move {
            if self.on_input {
                self.rules.arguments(call, shared.book.as_deref())?;
            }
            if !self.on_output {
                return next.run(call).await;
            }
            let (rules, book) = (self.rules.clone(), shared.book.clone());
            call.context.filter_progress(Arc::new(move |mut progress| {
                let hash = |kind: &str, value: &str| hash(book.as_deref(), kind, value);
                let cover = PiiCover::new(&rules.detectors, rules.strategy, &hash);
                cover_progress(&cover, &mut progress);
                match cover.end() {
                    Ok(_) => progress,
                    Err(_) => crate::Progress::default(),
                }
            }));
            let result = next.run(call).await;
            let (outputs, owner) = (&*shared.outputs, &*call.caller.agent);
            let book = shared.book.as_deref();
            let mut counts = Counts::new();
            let (changed, result) = match result {
                Ok(outcome) => {
                    let covered = self
                        .rules
                        .outcome(outcome, outputs, owner, book, &mut counts);
                    let covered = covered.await;
                    (!counts.is_empty(), covered)
                }
                Err(error) => {
                    let covered = self.rules.error(error.clone(), book);
                    (covered != error, Err(covered))
                }
            };
            if changed {
                let refused = result.is_err() && !counts.is_empty();
                let deed = if refused {
                    Deed::Refused
                } else {
                    Deed::Changed
                };
                call.context.mark(Pii::NAME, deed);
            }
            result
        })
    }
}

impl PiiRules {
    fn arguments(&self, call: &mut Call, book: Option<&dyn CallBook>) -> Result<(), CallError> {
        let hash = |kind: &str, value: &str| hash(book, kind, value);
        let cover = PiiCover::new(&self.detectors, self.strategy, &hash);
        cover.object(&mut call.arguments);
        let counts = cover.end().map_err(unsearched);
        if counts.as_ref().is_ok_and(|counts| !counts.is_empty()) && !self.blocks() {
            call.context.mark(Pii::NAME, Deed::Changed);
        }
        let judged = counts.and_then(|counts| self.judge(&counts, Side::Arguments));
        judged.map_err(|error| {
            call.context.mark(Pii::NAME, Deed::Refused);
            // Who blocks wants nobody to read them.
            call.arguments = Object::default();
            error.unreached()
        })
    }

    async fn outcome(
        &self,
        mut outcome: Outcome,
        outputs: &dyn Outputs,
        owner: &str,
        book: Option<&dyn CallBook>,
        counts: &mut Counts,
    ) -> CallResult {
        if let Some(whole) = outcome.whole.take() {
            let hash = |kind: &str, value: &str| hash(book, kind, value);
            let stream = PiiStream::new(&self.detectors, self.strategy, &hash);
            match cover_whole(stream, outputs, owner, &whole).await {
                Ok((kept, found)) => {
                    *counts = found;
                    if kept.id != whole.id {
                        forget(outputs, owner, &whole).await;
                    }
                    outcome.output = beginning(outputs, owner, &kept, &outcome).await;
                    outcome.whole = Some(kept);
                }
                // What nobody could look at is shown to nobody.
                Err(error) => {
                    tracing::warn!(%error, "an output on disk could not be searched for personal data");
                    forget(outputs, owner, &whole).await;
                    outcome.rest_is_lost = true;
                }
            }
        }
        if outcome.rest_is_lost {
            outcome.output.truncate(safe_end(&outcome.output));
        }
        let found = self.cover(&mut outcome, book);
        let judged = found.and_then(|found| {
            found
                .iter()
                .for_each(|(kind, count)| add(counts, kind, *count));
            self.judge(counts, Side::Outcome)
        });
        if judged.is_err()
            && let Some(whole) = &outcome.whole
        {
            forget(outputs, owner, whole).await;
        }
        judged.map(|()| outcome)
    }

    fn cover(
        &self,
        outcome: &mut Outcome,
        book: Option<&dyn CallBook>,
    ) -> Result<Counts, CallError> {
        let hash = |kind: &str, value: &str| hash(book, kind, value);
        let cover = PiiCover::new(&self.detectors, self.strategy, &hash);
        let before = outcome.content.as_ref().map(|content| content.words());
        let is_its_words = before.is_some_and(|words| words == outcome.output);
        cover_outcome(&cover, outcome);
        if let Some(content) = outcome.content.as_ref().filter(|_| is_its_words) {
            outcome.output = content.words();
        }
        cover.end().map_err(unsearched)
    }

    /// An error can't be refused, only covered.
    fn error(&self, mut error: CallError, book: Option<&dyn CallBook>) -> CallError {
        let hash = |kind: &str, value: &str| hash(book, kind, value);
        let cover = PiiCover::new(&self.detectors, self.strategy, &hash);
        cover_error(&cover, &mut error);
        match cover.end() {
            Ok(_) => error,
            Err(unsearchable) => CallError {
                code: error.code,
                ..unsearched(unsearchable)
            },
        }
    }

    fn blocks(&self) -> bool {
        self.strategy == Strategy::Block
    }

    fn judge(&self, counts: &Counts, side: Side) -> Result<(), CallError> {
        if !self.blocks() || counts.is_empty() {
            return Ok(());
        }
        let found = counts
            .iter()
            .map(|(kind, count)| format!("{count} instance(s) of {kind}"));
        let found = found.collect::<Vec<_>>().join(", ");
        let message = format!("Detected {found} in text content");
        let hint = match side {
            Side::Arguments => {
                "the middleware `pii` blocks arguments that hold such data; leave it out"
            }
            Side::Outcome => {
                "the middleware `pii` blocks results that hold such data; ask for less, or for something else"
            }
        };
        Err(CallError::new(ErrorCode::Denied, message).hint(hint))
    }
}

enum Side {
    Arguments,
    Outcome,
}

fn unsearched(error: DetectError) -> CallError {
    let message = format!("the call could not be searched for personal data: {error}");
    CallError::new(ErrorCode::Denied, message)
        .hint("the middleware `pii` of this agent has that pattern; a simpler one takes less time")
}

/// The hash that the crib's store keys: equal here, and telling nothing elsewhere.
fn hash(book: Option<&dyn CallBook>, kind: &str, value: &str) -> Option<String> {
    let hashed = [("toolcrib/pii", kind), ("value", value)];
    let hashed = hashed.map(|(name, text)| (name.to_owned(), text.into()));
    book?.argument_hash(&Object::from_iter(hashed))
}

async fn forget(outputs: &dyn Outputs, owner: &str, whole: &Whole) {
    if let Err(error) = outputs.remove(owner, &whole.id).await {
        tracing::warn!(%error, "an output that may hold personal data could not be removed");
    }
}

/// The same output without personal data: itself, where there is none in it.
async fn cover_whole(
    mut stream: PiiStream<'_>,
    outputs: &dyn Outputs,
    owner: &str,
    whole: &Whole,
) -> io::Result<(Whole, Counts)> {
    let mut spool = outputs.spool(owner).await?;
    let mut offset = 0;
    loop {
        let page = outputs.read(owner, &whole.id, offset, PAGE).await?;
        if page.bytes.is_empty() {
            break;
        }
        offset += page.bytes.len() as u64;
        let shown = stream.push(&page.bytes).map_err(io::Error::other)?;
        spool.write(&shown).await?;
    }
    if whole.cut {
        stream.cut();
    }
    let (rest, found) = stream.finish().map_err(io::Error::other)?;
    let mut counts = Counts::new();
    found
        .iter()
        .for_each(|(kind, count)| add(&mut counts, kind, *count));
    if counts.is_empty() && !whole.cut {
        return Ok((whole.clone(), counts));
    }
    spool.write(&rest).await?;
    let mut kept = spool.finish().await?;
    kept.cut |= whole.cut;
    Ok((kept, counts))
}

/// As much of the output on disk as was shown of it before.
async fn beginning(outputs: &dyn Outputs, owner: &str, whole: &Whole, outcome: &Outcome) -> String {
    let page = outputs
        .read(owner, &whole.id, 0, outcome.output.len())
        .await;
    let bytes = page.map(|page| page.bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // Half a character at the end is none.
    text.trim_end_matches(char::REPLACEMENT_CHARACTER)
        .to_owned()
}

#[cfg(test)]
#[path = "pii_tests.rs"]
mod tests;
