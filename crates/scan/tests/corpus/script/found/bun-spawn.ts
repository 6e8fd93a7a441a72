// a process by Bun
Bun.spawn(["ls"]); // <-
