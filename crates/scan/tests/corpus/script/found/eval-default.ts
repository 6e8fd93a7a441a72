// as a default
export function go(run = eval) { // <-
  return run("1"); // <-
}
