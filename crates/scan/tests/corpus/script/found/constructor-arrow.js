// the constructor of a function
(() => {}).constructor("return process")(); // <-
