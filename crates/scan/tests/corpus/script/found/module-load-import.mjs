// the loader, imported
import Module from "module";
Module._load("child_process"); // <-
