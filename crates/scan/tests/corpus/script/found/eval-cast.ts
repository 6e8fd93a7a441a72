// behind a cast
(globalThis as any)["eval"]("1"); // <-
