// an import that is waited for
const { execSync } = await import("child_process"); // <-
execSync("ls"); // <-
