// parameters with famous names
export function run(eval_: string, process: { env: string }, require: (x: string) => string) {
  return process.env + require("vm") + eval_;
}
