// require bound
const load = require.bind(null);
load("child_process"); // <-
