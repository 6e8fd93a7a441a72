//! Reads a text a line, as JSON strings, and writes what is found in each: for `scripts/compare-pii`.

use std::io::{BufRead, Write};

use toolcrib_pii::Detectors;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let detectors = Detectors::all()?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        // Others count characters.
        let place = |at: usize| text[..at].chars().count();
        let found = detectors.find(&text, None)?;
        let found = found.iter().map(|finding| {
            let (start, end) = (place(finding.start), place(finding.end));
            serde_json::json!([finding.kind, start, end])
        });
        let found: Vec<_> = found.collect();
        writeln!(out, "{}", serde_json::Value::from(found))?;
    }
    Ok(())
}
