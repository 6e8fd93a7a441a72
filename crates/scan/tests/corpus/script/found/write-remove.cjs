// removes a folder
const { rmSync } = require("fs");
rmSync("x", { recursive: true }); // <-
