// an import in an expression
import("node:vm").then((vm) => vm); // <-
