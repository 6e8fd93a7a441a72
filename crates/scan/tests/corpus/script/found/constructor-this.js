// the constructor of a constructor of anything
this.constructor.constructor("return process")(); // <-
