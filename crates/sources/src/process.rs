//! Runs a process to its end and takes in what it says: a bounded head in memory, the rest spooled to disk.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use toolcrib_core::outputs::Whole;
use toolcrib_core::words::{CommandLine, inline};
use toolcrib_core::{CallError, ErrorCode, Hint, Mask, Masked, Outcome, Outputs, Spool};
use toolcrib_sandbox::{Command, Exit, StartError};

use crate::Place;

/// What is held of an output in memory; more than an outcome can carry, so the cut is decided in one place.
const HEAD: usize = 64 * 1_024;
/// How much of stderr is kept: its end, where the reason stands.
pub const MAX_STDERR: usize = 4 * 1_024;

/// What a process said and how it ended.
#[derive(Debug)]
pub struct Captured {
    pub stdout: Text,
    /// The end of stderr.
    pub stderr: String,
    pub exit: Exit,
}

/// Text that may be longer than what is held of it.
#[derive(Debug, Default)]
pub struct Text {
    pub head: String,
    pub whole: Option<Whole>,
    /// There was more, and it could not be kept.
    pub rest_is_lost: bool,
}

impl Text {
    /// Is all of it in `head`?
    pub fn is_whole(&self) -> bool {
        self.whole.is_none() && !self.rest_is_lost
    }
}

impl From<Text> for Outcome {
    fn from(text: Text) -> Outcome {
        Outcome {
            whole: text.whole,
            rest_is_lost: text.rest_is_lost,
            ..Outcome::text(text.head)
        }
    }
}

/// Starts the command, reads both streams to their end, and waits. Dropping the future kills the whole tree.
pub async fn capture(command: Command, place: &Place, owner: &str) -> Result<Captured, CallError> {
    capture_masked(command, place, owner, &Mask::default()).await
}

/// The same, and what the mask hides is in nothing that is kept.
pub async fn capture_masked(
    command: Command,
    place: &Place,
    owner: &str,
    mask: &Mask,
) -> Result<Captured, CallError> {
    let mut child = command
        .spawn(&place.launcher, &place.environment)
        .await
        .map_err(start_error)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read_out = async {
        let mut collector = Collector::new(place.outputs.as_ref(), owner, mask);
        if let Some(stream) = stdout {
            collector.read(stream).await?;
        }
        Ok(collector.finish().await)
    };
    let read_err = async {
        match stderr {
            Some(stream) => tail(stream, mask.stream()).await,
            None => String::new(),
        }
    };
    let (stdout, stderr) = tokio::join!(read_out, read_err);
    let exit = child
        .wait()
        .await
        .map_err(|error| CallError::internal(error.to_string()))?;
    Ok(Captured {
        stdout: stdout?,
        stderr,
        exit,
    })
}

pub fn start_error(error: StartError) -> CallError {
    if let StartError::Spawn(cause) = &error
        && matches!(
            cause.raw_os_error(),
            Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN)
        )
    {
        return CallError::new(
            ErrorCode::LimitReached,
            "too many calls run at once for this machine",
        )
        .hint("wait for some of them to end, then call again");
    }
    let hint: Hint = match &error {
        StartError::NotFound(program) if program.contains('/') => {
            "build it, or correct the path in the tool's command".into()
        }
        StartError::NotFound(program) => format!(
            "install {}, or give its path in the tool's command",
            inline(program)
        )
        .into(),
        StartError::Interpreter { interpreter, .. } => format!(
            "install {}, or correct the file's first line",
            inline(interpreter)
        )
        .into(),
        StartError::TooLarge(_) => "give it less, or put large values into a file".into(),
        StartError::NotExecutable(program) => {
            Hint::run(CommandLine::new("chmod +x").operand(program))
        }
        StartError::Directory(_) => "make the folder, or change the tool's `cwd`".into(),
        StartError::NullByte => return CallError::invalid(error.to_string()),
        StartError::Refused(refusal) => {
            format!("{}; `toolcrib doctor` says more", refusal.remedy).into()
        }
        StartError::Walls { .. } => "`toolcrib doctor` says what this machine offers".into(),
        StartError::Exec { .. } | StartError::Spawn(_) => {
            "check the program by hand in a shell".into()
        }
    };
    CallError::unavailable(error.to_string()).hint(hint)
}

/// Collects text: up to [`HEAD`] bytes in memory, everything in a spool once there is more.
pub struct Collector<'a> {
    outputs: &'a dyn Outputs,
    owner: &'a str,
    head: String,
    masked: Masked,
    /// Bytes of a character whose end has not arrived.
    partial: Vec<u8>,
    spool: Option<Box<dyn Spool>>,
    /// The disk did not take it. The call goes on with what is held.
    lost: bool,
}

impl<'a> Collector<'a> {
    pub fn new(outputs: &'a dyn Outputs, owner: &'a str, mask: &Mask) -> Collector<'a> {
        Collector {
            outputs,
            owner,
            head: String::new(),
            masked: mask.stream(),
            partial: Vec::new(),
            spool: None,
            lost: false,
        }
    }

    pub async fn read(&mut self, mut stream: impl AsyncRead + Unpin) -> Result<(), CallError> {
        let mut buffer = vec![0; 32 * 1_024];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return Ok(()),
                Ok(read) => self.push(&buffer[..read]).await,
                Err(error) => {
                    return Err(CallError::internal(format!(
                        "reading output failed: {error}"
                    )));
                }
            }
        }
    }

    /// Takes bytes as they come; what is not UTF-8 becomes `U+FFFD`, so that offsets hold for what an agent sees.
    pub async fn push(&mut self, bytes: &[u8]) {
        let shown = self.masked.push(bytes);
        self.partial.extend_from_slice(&shown);
        let complete = complete_prefix(&self.partial);
        let rest = self.partial.split_off(complete);
        let text = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial = rest;
        self.push_text(&text).await;
    }

    async fn push_text(&mut self, text: &str) {
        if let Err(error) = self.keep(text).await {
            self.lose(&error);
        }
        let room = HEAD.saturating_sub(self.head.len()).min(text.len());
        let end = (0..=room)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        self.head.push_str(&text[..end]);
    }

    async fn keep(&mut self, text: &str) -> io::Result<()> {
        if self.lost {
            return Ok(());
        }
        if self.spool.is_none() && self.head.len() + text.len() > HEAD {
            let mut spool = self.outputs.spool(self.owner).await?;
            spool.write(self.head.as_bytes()).await?;
            self.spool = Some(spool);
        }
        match &mut self.spool {
            Some(spool) => spool.write(text.as_bytes()).await,
            None => Ok(()),
        }
    }

    /// Half an output on a full disk helps nobody, so what was written goes.
    fn lose(&mut self, error: &io::Error) {
        tracing::warn!(%error, "a large output could not be kept");
        self.lost = true;
        self.spool = None;
    }

    pub async fn finish(mut self) -> Text {
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend(std::mem::replace(&mut self.masked, Mask::default().stream()).finish());
        let last = String::from_utf8_lossy(&partial).into_owned();
        self.push_text(&last).await;
        let whole = match self.spool.take() {
            Some(spool) => match spool.finish().await {
                Ok(whole) => Some(whole),
                Err(error) => {
                    self.lose(&error);
                    None
                }
            },
            None => None,
        };
        Text {
            head: self.head,
            whole,
            rest_is_lost: self.lost,
        }
    }
}

/// How many bytes from the start hold no unfinished character at their end.
fn complete_prefix(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needed = match bytes[at] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return bytes.len(),
        };
        return if back < needed { at } else { bytes.len() };
    }
    bytes.len()
}

/// Reads a stream to its end and keeps its last [`MAX_STDERR`] bytes.
async fn tail(mut stream: impl AsyncRead + Unpin, mut masked: Masked) -> String {
    let mut kept: Vec<u8> = Vec::new();
    let mut keep = |bytes: &[u8]| {
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..surplus);
    };
    let mut buffer = vec![0; 8 * 1_024];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        keep(&masked.push(&buffer[..read]));
    }
    keep(&masked.finish());
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_character_waits() {
        let text = "aä€😀".as_bytes();
        let expected = [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10];
        for (length, complete) in expected.into_iter().enumerate() {
            assert_eq!(complete_prefix(&text[..length]), complete, "{length}");
        }
        assert_eq!(complete_prefix(&[0xFF, 0x80]), 2);
    }
}
