// writes a file through promises
import fs from "fs";
await fs.promises.appendFile("x", "y"); // <-
