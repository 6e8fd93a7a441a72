// the module's own require
module.require("child_process"); // <-
