//! `toolcrib logs --calls`: the record of calls, as a table or as JSON.

use std::collections::HashSet;
use std::time::Duration;

use toolcrib_core::ErrorCode;

use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::printer::Column;
use crate::wire::{RecordList, RecordView};

/// How often the record is looked at when it is followed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A call is on record from its end on and stands at its beginning, so a look begins this long before now.
const WINDOW_MS: u64 = 10 * 60 * 1_000;
const MAX_PAGE: usize = 1_000;

/// Which calls are shown.
pub struct Shown {
    pub tool: Option<String>,
    pub all_projects: bool,
    pub failed: bool,
    pub since: Option<Duration>,
    pub limit: usize,
    pub follow: bool,
}

/// Reads `90s`, `15m`, `1h`, `7d`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and s, m, h or d, such as 90s, 15m, 1h or 7d".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number = &text[..text.len() - unit.len_utf8()];
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 24 * 3_600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

impl Shown {
    pub async fn run(self, scene: &Scene, target: &Target) -> Done {
        let project = Reach::project(scene);
        let record = Reach::records(scene, target, project.as_ref()).await?;
        let since_ms = self.since.map(ago);
        let list = self.read(&record, since_ms).await?;
        if !self.follow {
            self.print(scene, list);
            return Ok(0);
        }
        // From here on a line each: a table can't grow.
        let mut seen = HashSet::new();
        let mut list = list.calls;
        loop {
            list.retain(|call| seen.insert(call.id.clone()));
            for call in list.iter().rev() {
                print_line(scene, call);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            let recently = ago(Duration::from_millis(WINDOW_MS));
            let since_ms = since_ms.map_or(recently, |since| since.max(recently));
            let look = Shown {
                limit: MAX_PAGE,
                tool: self.tool.clone(),
                ..self
            };
            list = look.read(&record, Some(since_ms)).await?.calls;
        }
    }

    async fn read(&self, record: &Reach, since_ms: Option<u64>) -> Result<RecordList, Failure> {
        let mut list = RecordList {
            calls: Vec::new(),
            next: None,
        };
        loop {
            let left = (self.limit - list.calls.len()).min(MAX_PAGE);
            let page = self
                .page(record, since_ms, list.next.as_deref(), left)
                .await?;
            list.calls.extend(page.calls);
            list.next = page.next;
            if list.next.is_none() || list.calls.len() >= self.limit {
                return Ok(list);
            }
        }
    }

    async fn page(
        &self,
        record: &Reach,
        since_ms: Option<u64>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<RecordList, Failure> {
        let mut query = vec![("limit", limit.to_string())];
        let maybe = [
            ("tool", self.tool.clone()),
            ("project", self.all_projects.then(|| "*".to_owned())),
            ("outcome", self.failed.then(|| "failed".to_owned())),
            ("since", since_ms.map(|ms| ms.to_string())),
            ("cursor", cursor.map(str::to_owned)),
        ];
        let given = maybe.into_iter();
        query.extend(given.filter_map(|(key, value)| Some((key, value?))));
        record.ask("/calls", &query).await
    }

    fn print(&self, scene: &Scene, list: RecordList) {
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&list);
            return;
        }
        if list.calls.is_empty() {
            printer.note("no call is on record that fits");
            if !self.all_projects {
                printer.hint("`--all-projects` shows the calls of other projects too");
            }
            return;
        }
        // Columns that would be empty or the same all over are left out.
        let noted = list.calls.iter().any(|call| !call.notes().is_empty());
        let row = |call: &RecordView| {
            let project = call.project.as_deref().unwrap_or("-").to_owned();
            let mut row = vec![
                second(&call.timestamp),
                call.tool.clone(),
                call.ending().to_owned(),
                format!("{:.1} ms", call.duration_ms),
                call.client.clone(),
                call.agent.clone(),
            ];
            row.extend(noted.then(|| call.notes()));
            row.push(call.id.clone());
            row.extend(self.all_projects.then_some(project));
            row
        };
        let mut columns = vec![
            Column::whole("time"),
            Column::whole("tool"),
            Column::whole("outcome"),
            Column::spare("took", 4),
            Column::spare("client", 3),
            Column::spare("agent", 1),
        ];
        columns.extend(noted.then(|| Column::whole("middleware")));
        columns.push(Column::spare("id", 2));
        columns.extend(self.all_projects.then(|| Column::whole("project")));
        let rows: Vec<_> = list.calls.iter().map(row).collect();
        printer.table(&columns, &rows);
        if list.next.is_some() {
            printer.note("there are more: `--limit` shows them");
        }
    }
}

fn print_line(scene: &Scene, call: &RecordView) {
    if scene.printer.is_json() {
        scene.printer.json_line(call);
        return;
    }
    let took = format!("{:.1} ms", call.duration_ms);
    let line = format!(
        "{}  {:<24} {:<18} {took:>12}  {}  {}  {}",
        second(&call.timestamp),
        call.tool,
        call.ending(),
        call.client,
        call.id,
        call.notes()
    );
    scene.printer.line(crate::printer::plain(line.trim_end()));
}

/// A moment without its fraction.
fn second(timestamp: &str) -> String {
    let whole = timestamp.split(['.', 'Z']).next().unwrap_or_default();
    format!("{}Z", whole)
}

fn ago(age: Duration) -> u64 {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    crate::now_ms().saturating_sub(age)
}

/// A name and the record do not go together.
pub fn not_both() -> Failure {
    Failure::new(
        ErrorCode::BadRequest,
        "a name shows what a worker said, `--calls` shows the record of calls",
    )
    .hint("leave one out; `--calls --tool NAME` shows the calls of one tool")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("1h", 3_600), ("7d", 604_800)] {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in [
            "",
            "h",
            "1",
            "1w",
            "-1h",
            "1.5h",
            "9999999999999999999d",
            "1ä",
        ] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_shown_to_the_second() {
        assert_eq!(second("2023-11-14T22:13:20.123Z"), "2023-11-14T22:13:20Z");
        assert_eq!(second("2023-11-14T22:13:20Z"), "2023-11-14T22:13:20Z");
    }
}
