// through the global object
globalThis.eval("1"); // <-
