// a class of functions
new (class extends Function {})("return 1"); // <-
