// a template without expressions
const vm = require(`vm`); // <-
