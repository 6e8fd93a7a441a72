//! How much memory and processor a tool has: the default of every tool, and the bounds of what can be asked for.

/// Megabytes of memory that every tool has.
pub const DEFAULT_MEMORY_MB: u64 = 512;
/// Processor time that every tool has: one processor.
pub const DEFAULT_CPU_PERCENT: u32 = 100;

/// The most that a tool may declare and a person may grant: a terabyte, and a thousand processors.
pub const MAX_MEMORY_MB: u64 = 1_024 * 1_024;
pub const MAX_CPU_PERCENT: u32 = 1_000 * 100;

/// What one tool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub memory_mb: u64,
    /// 100 is one processor.
    pub cpu_percent: u32,
}

/// Processor time in words: `2 processors (200 %)`.
pub fn processors(percent: u32) -> String {
    let (whole, rest) = (percent / 100, percent % 100);
    let count = match rest {
        0 => whole.to_string(),
        rest if rest % 10 == 0 => format!("{whole}.{}", rest / 10),
        rest => format!("{whole}.{rest:02}"),
    };
    let noun = if percent == 100 {
        "processor"
    } else {
        "processors"
    };
    format!("{count} {noun} ({percent} %)")
}
