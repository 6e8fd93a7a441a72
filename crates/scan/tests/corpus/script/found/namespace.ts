// in a namespace and an enum
namespace Inner {
  export const run = () => eval("1"); // <-
}
enum Kind {
  A = process.pid,
  B = eval("2"), // <-
}
