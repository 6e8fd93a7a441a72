import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface Recipe {
  name: string;
  serves: number;
  /** Grams by ingredient. */
  grams: Record<string, number>;
}

/** All recipes of the project. A file is a line with the name, one with the persons, then an ingredient per line. */
export async function recipes(directory: string): Promise<Recipe[]> {
  const folder = join(directory, "recipes");
  const files = (await readdir(folder)).filter((file) => file.endsWith(".txt")).sort();
  return Promise.all(files.map(async (file) => parse(await readFile(join(folder, file), "utf8"))));
}

function parse(text: string): Recipe {
  const [name = "", serves = "", ...lines] = text.trim().split("\n");
  const grams = lines.map((line) => line.split(":").map((part) => part.trim()) as [string, string]);
  return {
    name,
    serves: Number(serves.replace(/\D/g, "")),
    grams: Object.fromEntries(grams.map(([what, much]) => [what, Number.parseFloat(much)])),
  };
}
