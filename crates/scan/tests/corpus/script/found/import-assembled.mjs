// an import by pieces
const name = "child_" + "process";
await import(name); // <-
