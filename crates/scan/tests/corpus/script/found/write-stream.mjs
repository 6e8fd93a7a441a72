// a stream into a file
import { createWriteStream } from "fs";
createWriteStream("x"); // <-
