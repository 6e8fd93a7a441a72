// data
module.exports = JSON.parse("{\"eval\": 1}");
