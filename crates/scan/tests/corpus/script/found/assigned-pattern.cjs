// taken apart by an assignment
let exec;
({ exec } = require("child_process")); // <-
exec("ls"); // <-
