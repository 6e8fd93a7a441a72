// the loader behind require
module.constructor._load("child_process"); // <-
