// keys of an own object
const table: Record<string, number> = { eval: 1, process: 2 };
export const get = (name: string) => table[name] + table["eval"] + table["pro" + "file"];
