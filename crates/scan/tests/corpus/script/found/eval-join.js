// joined
globalThis[["ev", "al"].join("")]("1"); // <-
