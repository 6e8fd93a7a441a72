// writes a file at once
import * as fs from "fs";
fs.writeFileSync("x", "y"); // <-
