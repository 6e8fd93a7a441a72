// the main module's require
process.mainModule.require("child_process"); // <-
