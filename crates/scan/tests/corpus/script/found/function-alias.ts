// the same under another name
const F = Function;
new F("return 1"); // <-
