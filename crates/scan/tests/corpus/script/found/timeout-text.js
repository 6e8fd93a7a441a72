// a string that a timer runs
setTimeout("go()", 10); // <-
