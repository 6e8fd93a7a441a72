// a plain require
const cp = require("child_process"); // <-
cp.exec("ls"); // <-
