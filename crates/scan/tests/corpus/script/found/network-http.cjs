// a request
const https = require("https"); // <-
https.get("x");
