// inside of a function
function go() {
  return require("cluster"); // <-
}
