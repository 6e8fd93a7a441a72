// writes a file by Deno
await Deno.writeTextFile("x", "y"); // <-
