// packages with similar names
import a from "child_processes";
import b from "@scope/vm";
import c from "https-status";
import d from "network";
export default [a, b, c, d];
