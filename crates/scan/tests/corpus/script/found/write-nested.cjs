// a function taken out of two objects
const { promises: { writeFile } } = require("fs");
writeFile("a", "b"); // <-
