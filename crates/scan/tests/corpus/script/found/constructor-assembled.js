// in pieces
const key = "constr" + "uctor";
(() => {})[key]("return 1")(); // <-
