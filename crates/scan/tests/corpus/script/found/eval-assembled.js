// through the global object, in pieces
globalThis["ev" + "al"]("1"); // <-
