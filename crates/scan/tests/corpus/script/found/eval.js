// a plain call
eval("1 + 1"); // <-
