// ends another process
import process from "node:process";
process.kill(1); // <-
