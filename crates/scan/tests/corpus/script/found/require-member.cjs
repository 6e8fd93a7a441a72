// used at once
require("node:child_process").execSync("ls"); // <-
