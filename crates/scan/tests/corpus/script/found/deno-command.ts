// a process by Deno
new Deno.Command("ls"); // <-
