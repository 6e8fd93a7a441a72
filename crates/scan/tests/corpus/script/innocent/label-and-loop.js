// loops with famous names
outer: for (const process of [1]) {
  for (const env in { a: 1 }) {
    if (env === process) continue outer;
  }
}
module.exports = {};
