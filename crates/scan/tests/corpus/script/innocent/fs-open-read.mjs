// a file opened for reading
import { open } from "fs/promises";
export const file = await open("x", "r");
export const same = await open("x");
