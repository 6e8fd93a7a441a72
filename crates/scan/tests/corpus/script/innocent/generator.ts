// generators and async iteration
export async function* walk(rows: AsyncIterable<string>) {
  for await (const row of rows) yield row.split(",").reverse().join("");
}
