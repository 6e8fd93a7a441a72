// opens a file for writing
import { open } from "fs/promises";
const file = await open("x", "w"); // <-
