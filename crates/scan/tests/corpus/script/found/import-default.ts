// the default export
import cp from "node:child_process"; // <-
export const run = () => cp.spawn("ls"); // <-
