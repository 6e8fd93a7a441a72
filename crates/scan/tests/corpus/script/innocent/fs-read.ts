// files, read only
import { readFile, readdir, stat } from "node:fs/promises";
import * as fs from "fs";
export const read = async (name: string) => [await readFile(name, "utf8"), await readdir("."), await stat("."), fs.existsSync(name), fs.createReadStream(name)];
