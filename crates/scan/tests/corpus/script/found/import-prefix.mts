// with the prefix of the runtime
import * as cp from "node:child_process"; // <-
cp.execSync("ls"); // <-
