// comments that mention what is banned
// import { exec } from "child_process"; eval("x");
/* process.env */
export const value = 1;
