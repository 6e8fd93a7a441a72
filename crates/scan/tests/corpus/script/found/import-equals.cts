// the old way of TypeScript
import cp = require("child_process"); // <-
cp.exec("ls"); // <-
