// a name in pieces
const cp = require(["child", "process"].join("_")); // <-
