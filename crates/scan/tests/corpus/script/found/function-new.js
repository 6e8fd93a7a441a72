// a function from text
new Function("return 1")(); // <-
