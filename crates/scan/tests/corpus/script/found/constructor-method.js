// the constructor of a method
[].filter.constructor("return this")(); // <-
