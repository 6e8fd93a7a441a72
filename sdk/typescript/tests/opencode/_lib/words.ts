import stop from "./stop.json";

export enum Order {
  Alphabet = "alphabet",
  Length = "length",
}

export function words(text: string, order: Order): string[] {
  const all = text.toLowerCase().split(/\W+/).filter((word) => word !== "" && !stop.includes(word));
  return all.sort((a, b) => (order === Order.Length ? a.length - b.length : a.localeCompare(b)));
}
