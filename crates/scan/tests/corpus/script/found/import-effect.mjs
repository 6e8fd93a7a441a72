// an import for its effect alone
import "node:cluster"; // <-
