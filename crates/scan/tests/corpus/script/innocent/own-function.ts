// own functions with famous names
function fetch(x: string) { return x; }
const require = (x: string) => x;
fetch("a");
require("child_process");
