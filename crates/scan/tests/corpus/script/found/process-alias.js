// process under another name
const p = process;
p["mainMod" + "ule"].require("child_process"); // <-
