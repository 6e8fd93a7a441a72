// asking where a module lies
module.exports = require.resolve("zod");
