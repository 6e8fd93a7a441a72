// a value beside a type
import { type ChildProcess, spawn } from "child_process"; // <-
