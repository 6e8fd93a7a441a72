// the constructor of an own function
function own() {}
own.constructor("return 1")(); // <-
