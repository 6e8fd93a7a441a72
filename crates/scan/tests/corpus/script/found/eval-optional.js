// with an optional call
globalThis?.eval?.("1"); // <-
