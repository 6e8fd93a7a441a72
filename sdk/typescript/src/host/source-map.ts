// Where a place in a text lies in the file as its author wrote it: read from the map at the text's end.

/** Counted from 1, both. */
export interface Place {
  line: number;
  column: number;
}

const MARK = /\/\/# sourceMappingURL=data:application\/json[^,]*;base64,([A-Za-z0-9+/=]+)\s*$/;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUE_OF = new Map([...DIGITS].map((digit, value) => [digit, value]));

/** A column of the text, and the line and column it came from; all from 0. */
type Step = [from: number, line: number, column: number];

const maps = new Map<string, Step[][] | undefined>();

/** The text without its map: a runtime that reads maps would tell places that are changed already. */
export function codeOf(text: string): string {
  const at = text.lastIndexOf("//# sourceMappingURL=data:");
  return at < 0 ? text : text.slice(0, at);
}

/**
 * The text with a map, of itself if it has none. Deno would take the map of what lies on the disk under that name.
 */
export function withMap(text: string, url: string): string {
  if (text.includes("//# sourceMappingURL=data:")) return text;
  let line = 0;
  let column = 0;
  const lines = text.split("\n").map((words, row) => {
    let from = 0;
    const steps = [...words.matchAll(/\w+|[^\w\s]/g)].map(({ index }) => {
      const step = [index - from, 0, row - line, index - column].map(digits).join("");
      [from, line, column] = [index, row, index];
      return step;
    });
    return steps.join(",");
  });
  const map = { version: 3, sources: [url], names: [], mappings: lines.join(";") };
  const data = Buffer.from(JSON.stringify(map)).toString("base64");
  return `${text}\n//# sourceMappingURL=data:application/json;base64,${data}`;
}

function digits(number: number): string {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let written = "";
  do {
    written += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>= 5;
  } while (rest > 0);
  return written;
}

/** The place in the author's file. A text without a map has its author's lines. */
export function original(text: string, place: Place): Place {
  if (!maps.has(text)) maps.set(text, read(text));
  const lines = maps.get(text);
  if (!lines) return place;
  let best: Step | undefined;
  for (const step of lines[place.line - 1] ?? []) {
    if (step[0] > place.column - 1 && best) break;
    best = step;
  }
  return best ? { line: best[1] + 1, column: best[2] + 1 } : place;
}

function read(text: string): Step[][] | undefined {
  const mark = MARK.exec(text);
  if (!mark) return undefined;
  try {
    const map = JSON.parse(Buffer.from(mark[1]!, "base64").toString("utf8")) as { mappings: string };
    return decode(map.mappings);
  } catch {
    return undefined; // a bad map costs right lines, nothing else
  }
}

function decode(mappings: string): Step[][] {
  let line = 0;
  let column = 0;
  return mappings.split(";").map((part) => {
    let from = 0;
    const steps: Step[] = [];
    for (const segment of part.split(",")) {
      const numbers = readNumbers(segment);
      from += numbers[0] ?? 0;
      if (numbers.length < 4) continue;
      line += numbers[2]!;
      column += numbers[3]!;
      steps.push([from, line, column]);
    }
    return steps;
  });
}

/** Five bits a digit, the sixth says that more follow; the lowest bit of all is the sign. */
function readNumbers(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const digit of segment) {
    const bits = VALUE_OF.get(digit) ?? 0;
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}
