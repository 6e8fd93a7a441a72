// writes a file by Bun
await Bun.write("x", "y"); // <-
