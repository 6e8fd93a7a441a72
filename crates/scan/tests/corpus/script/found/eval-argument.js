// handed to another function
["1"].map(eval); // <-
