//! How a tool stands in the catalog, and how the process behind it is doing.

/// How a tool stands in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    Active,
    /// What it is, or what it needs, is not there yet.
    Loading,
    /// Its program is not there.
    Unavailable,
    Untrusted,
    Denied,
    /// Agents do not see it until a person wants it.
    Off,
    /// Its process died too often in a row. A call still tries one start.
    Error,
}

impl Status {
    pub const ALL: [Status; 7] = [
        Status::Active,
        Status::Loading,
        Status::Unavailable,
        Status::Untrusted,
        Status::Denied,
        Status::Off,
        Status::Error,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Loading => "loading",
            Status::Unavailable => "unavailable",
            Status::Untrusted => "untrusted",
            Status::Denied => "denied",
            Status::Off => "off",
            Status::Error => "error",
        }
    }
}

/// What a tool's process says about itself, or what its end says about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Health {
    Healthy,
    Degraded,
    Unhealthy,
    /// Nobody asked yet, or there is no process to ask.
    #[default]
    Unknown,
}

impl Health {
    pub const ALL: [Health; 4] = [
        Health::Healthy,
        Health::Degraded,
        Health::Unhealthy,
        Health::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unhealthy => "unhealthy",
            Health::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Option<Health> {
        Health::ALL
            .into_iter()
            .find(|health| health.as_str() == text)
    }
}

/// How a tool's process stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Did it die more often in a row than the tool's `maxRetries` allows?
    pub failed: bool,
    /// How many starts failed since the last that went well.
    pub failed_starts: u32,
    pub health: Health,
    /// When it was last asked, in milliseconds since the epoch.
    pub checked_ms: Option<u64>,
    /// What it said, or how it ended.
    pub message: Option<String>,
}
