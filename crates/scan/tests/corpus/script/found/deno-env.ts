// the environment by Deno
Deno.env.get("X"); // <-
