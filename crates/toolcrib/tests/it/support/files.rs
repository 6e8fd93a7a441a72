//! What lies on the disk after a test.

use std::path::Path;

/// Every file below a folder that holds one of these texts.
pub fn holding(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, texts));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            let held = texts.iter().filter(|secret| text.contains(**secret));
            found.extend(held.map(|secret| format!("{}: {secret}", path.display())));
        }
    }
    found
}
