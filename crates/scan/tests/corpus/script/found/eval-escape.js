// with an escape
globalThis["\x65val"]("1"); // <-
