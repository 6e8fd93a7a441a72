// the constructor of an async function
const AsyncFunction = Object.getPrototypeOf(async function () {}).constructor; // <-
