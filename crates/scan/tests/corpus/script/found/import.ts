// a plain import of a banned module
import { exec } from "child_process"; // <-
