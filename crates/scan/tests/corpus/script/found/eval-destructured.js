// taken from the global object
const { eval: run } = globalThis;
run("1"); // <-
