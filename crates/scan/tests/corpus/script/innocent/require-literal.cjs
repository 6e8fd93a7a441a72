// a require of known modules
const path = require("path");
const { z } = require("zod");
module.exports = { path, z };
