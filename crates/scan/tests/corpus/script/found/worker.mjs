// a thread
new Worker("x.js"); // <-
