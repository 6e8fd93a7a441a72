// where the file lies
export const url = new URL("./x.txt", import.meta.url);
export const dir = import.meta.dirname;
