// the constructor of a global function
setTimeout.constructor("return 1")(); // <-
