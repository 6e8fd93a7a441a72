// used above its definition
export const go = () => load("child_process"); // <-
const load = require;
