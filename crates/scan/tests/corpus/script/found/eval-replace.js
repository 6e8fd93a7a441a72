// with a letter replaced
globalThis["evil".replace("i", "a")]("1"); // <-
