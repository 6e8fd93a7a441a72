// code in an address
await import("data:text/javascript,export default 1"); // <-
