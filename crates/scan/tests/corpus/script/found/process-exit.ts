// ends the process
process.exit(1); // <-
