// writes a file
import { writeFile } from "node:fs/promises";
export const save = (text: string) => writeFile("x", text); // <-
