// a name made at run time
module.exports = (name) => require(name); // <-
