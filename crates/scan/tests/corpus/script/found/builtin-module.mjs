// a module by process
process.getBuiltinModule("child_process").execSync("ls"); // <-
