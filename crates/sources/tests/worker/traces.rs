//! What a test leaves behind, if anything: processes and descriptors.

use std::collections::BTreeSet;
use std::path::Path;

/// The processes that have this folder in their command line or environment; every tool of a world has.
pub fn processes(root: &Path) -> Vec<u32> {
    let marker = root.as_os_str().as_encoded_bytes();
    let names = |file: &str, pid: u32| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(marker.len()).any(|part| part == marker)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| names("cmdline", *pid) || names("environ", *pid))
        .collect()
}

/// The pipes, sockets and processes that this process holds open, each once.
pub fn descriptors() -> BTreeSet<String> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let names = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| {
            ["pipe:", "socket:"]
                .iter()
                .any(|kind| name.starts_with(kind))
        })
        .collect()
}

/// How much memory this process holds, in bytes.
pub fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

/// A process and what it was started with, as people read it.
pub fn described(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!(
        "{pid}: {}",
        String::from_utf8_lossy(&line).replace('\0', " ")
    )
}
