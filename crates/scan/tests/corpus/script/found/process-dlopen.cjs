// a native library
process.dlopen(module, "x.node"); // <-
