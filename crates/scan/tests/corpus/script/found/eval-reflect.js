// by Reflect.get
Reflect.get(globalThis, "eval")("1"); // <-
