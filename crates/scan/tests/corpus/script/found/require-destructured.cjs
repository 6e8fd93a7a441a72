// taken apart
const { exec: run } = require("child_process"); // <-
run("ls"); // <-
