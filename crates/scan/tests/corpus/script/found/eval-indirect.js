// an indirect call
(0, eval)("1 + 1"); // <-
