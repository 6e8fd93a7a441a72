// require in an object
const table = { load: require };
table.load("child_process"); // <-
