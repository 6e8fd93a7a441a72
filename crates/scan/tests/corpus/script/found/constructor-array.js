// the constructor of a constructor
[]["constructor"]["constructor"]("return this")(); // <-
