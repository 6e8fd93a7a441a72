// under another name
const e = eval; // <-
e("1"); // <-
