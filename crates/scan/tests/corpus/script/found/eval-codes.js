// from character codes
globalThis[String.fromCharCode(101, 118, 97, 108)]("1"); // <-
