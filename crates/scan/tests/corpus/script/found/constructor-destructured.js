// a constructor taken apart
const { constructor: F } = () => {};
F("return 1")(); // <-
