//! What stands in place of an output that is too long, where its caller is shown previews.

use super::trim::{NOTICE_BYTES, NOTICE_LINES};
use crate::outputs::Whole;
use crate::preview::{Sample, preview};
use crate::{Outcome, OutputLimit, Outputs};

/// An output on disk is read whole up to this size; of a longer one only the end.
const READ_WHOLE: u64 = 64 * 1_024 * 1_024;
const CHUNK: usize = 1_024 * 1_024;
const END: u64 = 16 * 1_024;

/// What notices leave of a limit.
pub(super) fn room(limit: OutputLimit) -> OutputLimit {
    OutputLimit {
        bytes: limit.bytes.saturating_sub(2 * NOTICE_BYTES),
        lines: limit.lines.saturating_sub(2 * NOTICE_LINES),
    }
}

/// The output in little, where there is room for that and it is not in a form of its own.
pub(super) async fn of(
    outputs: &dyn Outputs,
    owner: &str,
    outcome: &Outcome,
    whole: Option<&Whole>,
    room: Option<OutputLimit>,
) -> Option<String> {
    let room = room.filter(|_| outcome.content.is_none())?;
    Some(told(outputs, owner, &outcome.output, whole, room).await)
}

async fn told(
    outputs: &dyn Outputs,
    owner: &str,
    at_hand: &str,
    whole: Option<&Whole>,
    room: OutputLimit,
) -> String {
    let spooled = whole.filter(|whole| whole.bytes > at_hand.len() as u64);
    let Some(whole) = spooled else {
        return preview(Sample::of(at_hand), room);
    };
    let is_short = whole.bytes <= READ_WHOLE;
    let from = match is_short {
        true => 0,
        false => whole.bytes.saturating_sub(END).max(at_hand.len() as u64),
    };
    let rest = read(outputs, owner, whole, from).await;
    if is_short && rest.len() as u64 >= whole.bytes {
        return preview(Sample::of(&rest), room);
    }
    // Its first line may be the rest of one.
    let end = rest
        .split_once('\n')
        .map_or(rest.as_str(), |(_, rest)| rest);
    let sample = Sample {
        start: at_hand,
        end: Some(end),
        bytes: whole.bytes,
        lines: whole.lines,
    };
    preview(sample, room)
}

/// What is kept from here on, as far as it can be read.
async fn read(outputs: &dyn Outputs, owner: &str, whole: &Whole, from: u64) -> String {
    let mut bytes = Vec::new();
    loop {
        let at = from + bytes.len() as u64;
        match outputs.read(owner, &whole.id, at, CHUNK).await {
            Ok(page) if !page.bytes.is_empty() => bytes.extend_from_slice(&page.bytes),
            _ => {
                return String::from_utf8(bytes).unwrap_or_else(|error| {
                    String::from_utf8_lossy(error.as_bytes()).into_owned()
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use crate::testing::{NoOutputs, builtins, request, tool};
    use crate::{
        BoxFuture, Call, CallResult, ChainSettings, Crib, Outcome, OutputLimit, OutputRule,
        OutputRules, Profiles, Run,
    };

    /// Gives five thousand plants as JSON.
    struct Plants;

    impl Run for Plants {
        fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
            let plants: Vec<_> = (0..5_000)
                .map(|n| json!({"id": n, "name": "rose"}))
                .collect();
            Box::pin(async move { Ok(Outcome::text(json!(plants).to_string())) })
        }
    }

    async fn shown(agent: OutputRule, all: OutputRule) -> String {
        let mut settings = ChainSettings::new(Duration::from_secs(1));
        settings.output = OutputRules {
            all,
            agents: [("default".to_owned(), agent)].into(),
            ..OutputRules::default()
        };
        let profiles = Profiles::everybody(settings);
        let crib = Crib::new(Arc::new(NoOutputs), || 0, profiles);
        crib.apply(builtins([tool("plants", Arc::new(Plants))]));
        crib.call(request("plants", json!({})))
            .await
            .unwrap()
            .output
    }

    fn rule(bytes: Option<usize>, preview: Option<bool>) -> OutputRule {
        OutputRule {
            bytes,
            preview,
            ..OutputRule::default()
        }
    }

    #[tokio::test]
    async fn an_agent_with_a_lower_limit_or_that_asks_is_shown_an_output_in_little() {
        let unsaid = OutputRule::default();
        let told = "JSON: list of 5000 {id: number, name: string}\n";
        for (agent, all, is_preview) in [
            (rule(Some(8_000), None), unsaid, true),
            (rule(None, Some(true)), unsaid, true),
            (unsaid, rule(None, Some(true)), true),
            (rule(Some(8_000), Some(false)), unsaid, false),
            (unsaid, rule(Some(8_000), None), false),
            (unsaid, unsaid, false),
        ] {
            let text = shown(agent, all).await;
            assert_eq!(text.contains(told), is_preview, "{agent:?} {all:?}: {text}");
            let bytes = agent
                .bytes
                .or(all.bytes)
                .unwrap_or(OutputLimit::DEFAULT.bytes);
            assert!(
                text.starts_with("[truncated: ") && text.len() <= bytes,
                "{}",
                text.len()
            );
            assert!(!is_preview || text.len() < 3_000, "{}", text.len());
        }
    }
}
