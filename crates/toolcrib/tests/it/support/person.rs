//! A person at a terminal of their own: commands that decide take nobody else.

use super::tool::python;
use super::{Ran, World};

/// Opens a terminal, runs the command in it, and prints what it shows. It ends as the command does.
pub const TERMINAL: &str = r#"
import os, pty, sys
child, screen = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
shown = b""
while True:
    try:
        part = os.read(screen, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
_, status = os.waitpid(child, 0)
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.stdout.flush()
os._exit(os.waitstatus_to_exitcode(status) & 255)
"#;

impl World {
    /// Runs a command as a person does, in a terminal. What it says on stderr comes with the rest.
    pub fn person(&self, args: &[&str]) -> Ran {
        let wrapper = [python(), "-c", TERMINAL];
        self.finish(self.wrapped(&wrapper, &self.binary, args))
    }
}
