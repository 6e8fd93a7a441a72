// written backwards
globalThis["lave".split("").reverse().join("")]("1"); // <-
