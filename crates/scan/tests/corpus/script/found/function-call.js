// the same without new
Function("return 1")(); // <-
