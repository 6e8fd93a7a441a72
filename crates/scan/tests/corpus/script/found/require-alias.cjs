// require under another name
const r = require;
const cp = r("child_process"); // <-
