// an export of somebody else's
export { exec } from "child_process"; // <-
