// a constructor by an element of a list
const keys = ["constructor"];
(() => 1)[keys[0]]("return 1"); // <-
