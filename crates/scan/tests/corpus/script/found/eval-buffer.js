// from hex digits
globalThis[Buffer.from("6576616c", "hex").toString()]("1"); // <-
